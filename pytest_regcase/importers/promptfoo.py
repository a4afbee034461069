"""promptfoo results: `results.json` of version 3 and 2, the table of version 2, and JSON lines of results.

Field names after `createOutputData` of promptfoo 0.121.20. One trial a result: a test, a prompt, a provider and a
repeat. Must import no other importer.

What surprises: `--repeat` writes results with the same test index; `failureReason` 1 is a wrong answer, 2 an
error, and an error is no wrong answer; a grader that failed is reported as a wrong answer too; of a provider that
is an agent only the last output is there.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ChatLines, arguments_text
from pytest_regcase.importers.json_records import JsonRecords, LastRecords, decoded
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import digests_of, filled, mapping, present, refused, sequence, whole
from pytest_regcase.importers.steps import failing_step
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import TranscriptLine, Trial, TrialError, TrialRef
from pytest_regcase.records.words import Expectation, Outcome, Termination

_LINE: Final = frozenset({"promptIdx", "testIdx", "provider", "success"})
_UNUSED: Final = ("vars", "testCase", "metadata")
_STRIPPED: Final = ("[output stripped]", "[prompt stripped]")
_CONDITIONS: Final = ("maxConcurrency", "repeat", "delay", "timeoutMs", "maxEvalTimeMs", "cache")
_SHOWS: Final[tuple[Expectation, ...]] = ("log_failure", "no_fabricated_output", "mark_failure")


class Promptfoo:
    """Importer of promptfoo results."""

    name = "promptfoo"

    def __init__(self) -> None:
        self._last = LastRecords()

    def handles(self, peek: Peek) -> bool:
        """Say whether it is an evaluation with its results, or its first line one result."""
        if peek.kind != "file" or peek.shape.kind != "object":
            return False
        keys = peek.shape.keys
        if keys >= _LINE:
            return True
        wrapped = "results" in keys and {"version", "timestamp"} <= peek.shape.inner_keys
        return wrapped and bool(keys & {"evalId", "shareableUrl", "createdAt", "config"})

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield each result; the key is test.prompt, with #n where a test was repeated."""
        for row in _read(source, self._last).rows:
            failed = row.outcome == "failed" or row.error is not None
            why_not, refusal = None, None
            if row.outcome == "passed":
                why_not, refusal = "its result says that it passed", "passed"
            elif not failed:
                why_not, refusal = "nothing in its result says that it failed", "no-sign-of-failure"
            yield TrialRef(
                key=row.key,
                task_id=row.task_id,
                attempt=row.attempt,
                termination=row.termination,
                outcome=row.outcome,
                failed=failed,
                why_not=why_not,
                refusal=refusal,
            )

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one result."""
        evaluation = _read(source, self._last)
        row = next((each for each in evaluation.rows if each.key == ref.key), None)
        if row is None:
            raise refused("no-such-trial", source, f"it holds no result {ref.key} any more", "Look it up again.")
        recorded_id = filled(row.result.get("id"))
        lines, missing = row.lines()
        version = filled(evaluation.metadata.get("promptfooVersion"))
        return Trial(
            format=Promptfoo.name,
            harness=f"promptfoo {version}" if version else "promptfoo",
            run_id=evaluation.eval_id,
            task_id=row.task_id,
            attempt=row.attempt,
            event_id=recorded_id or digest_of(row.result),
            event_id_from="recorded" if recorded_id else "digest",
            model=row.provider,
            task_text=next((line.text for line in lines if line.role == "user" and line.step == 0), None),
            steps=lines,
            failing_step=failing_step(lines, next_reply_failed=row.termination == "error"),
            termination=row.termination,
            outcome=row.outcome,
            outcome_from="log" if row.outcome != "undetermined" else None,
            error=row.error,
            labels=row.labels,
            conditions=evaluation.conditions,
            final_text=row.output,
            can_show=_SHOWS,
            source_digests=digests_of(source),
            missing=(*evaluation.missing, *missing),
        )


@dataclass(frozen=True)
class _Row:
    result: Mapping[str, Any]
    origin: str
    key: str
    attempt: int | None
    """Which of several results of one test, prompt and provider; None where there is one."""

    @property
    def task_id(self) -> str | None:
        index = whole(self.result.get("testIdx"))
        return str(index) if index is not None else None

    @property
    def provider(self) -> str | None:
        provider = self.result.get("provider")
        return filled(provider) or filled(mapping(provider).get("id")) or filled(mapping(provider).get("label"))

    @property
    def _is_error(self) -> bool:
        reason = self.result.get("failureReason")
        if reason is not None:
            return bool(reason == 2)
        # Older results name no reason: what was graded was answered.
        graded = isinstance(self.result.get("gradingResult"), dict)
        return self.result.get("success") is False and not graded and filled(self.result.get("error")) is not None

    @property
    def _grading(self) -> Mapping[str, Any]:
        return mapping(self.result.get("gradingResult"))

    @property
    def _grader_failed(self) -> bool:
        return any(
            mapping(mapping(each).get("metadata")).get("graderError") is True
            for each in (self._grading, *sequence(self._grading.get("componentResults")))
        )

    @property
    def outcome(self) -> Outcome:
        success = self.result.get("success")
        if self._is_error or self._grader_failed or not isinstance(success, bool):
            return "undetermined"
        return "passed" if success else "failed"

    @property
    def error(self) -> TrialError | None:
        response = mapping(self.result.get("response"))
        if self._is_error:
            return TrialError(message=filled(self.result.get("error")) or filled(response.get("error")))
        if self._grader_failed:
            words = filled(self._grading.get("reason")) or filled(self.result.get("error"))
            return TrialError(message=words, raised_by="grader")
        return None

    @property
    def termination(self) -> Termination | None:
        if self._is_error:
            return "error"
        return "finished" if self.output is not None or "output" in mapping(self.result.get("response")) else None

    @property
    def output(self) -> str | None:
        output = mapping(self.result.get("response")).get("output")
        if output is None or output in _STRIPPED:
            return None
        return output if isinstance(output, str) else arguments_text(output)

    @property
    def labels(self) -> tuple[str, ...]:
        reason = whole(self.result.get("failureReason"))
        failed_asserts = [
            filled(mapping(mapping(each).get("assertion")).get("type"))
            for each in sequence(self._grading.get("componentResults"))
            if mapping(each).get("pass") is False
        ]
        found = [f"promptfoo:failureReason:{reason}"] if reason else []
        return (*found, *(f"promptfoo:assert:{kind}" for kind in failed_asserts if kind))

    def lines(self) -> tuple[tuple[TranscriptLine, ...], list[str]]:
        """Return the prompt and what came of it as lines, and what is not in them."""
        chat = ChatLines()
        missing = ["the steps between: a result holds the prompt and the last output of its provider"]
        prompt = self.result.get("prompt")
        raw = filled(prompt) or filled(mapping(prompt).get("raw"))
        messages = decoded(raw)
        if isinstance(messages, list) and messages and all(isinstance(each, dict) for each in messages):
            chat.take_all(messages, f"{self.origin} prompt")
        elif raw is not None and raw not in _STRIPPED:
            chat.said(f"{self.origin} prompt", "user", raw)
        else:
            missing.append("the prompt is not recorded")
        error = self.error
        response = mapping(self.result.get("response"))
        if self._is_error and error is not None:
            chat.failed_call(f"{self.origin} response", error.message or "error")
        elif response or self.output is not None:
            usage = present(dict(mapping(response.get("tokenUsage")))) or None
            chat.reply(f"{self.origin} response", self.output, usage=usage)
            if self.output is None:
                missing.append("the output is not recorded: replaying it gives an empty answer")
        return tuple(chat.lines), [*missing, *chat.missing]


@dataclass(frozen=True)
class _Evaluation:
    eval_id: str | None
    metadata: Mapping[str, Any]
    conditions: dict[str, Any]
    rows: tuple[_Row, ...]
    missing: tuple[str, ...]


def _read(source: Path, last: LastRecords) -> _Evaluation:
    eval_id: str | None = None
    metadata: Mapping[str, Any] = {}
    options: dict[str, Any] = {}
    found: list[tuple[str, Mapping[str, Any]]] = []
    records = JsonRecords(source, last=last)
    for origin, record in records:
        if "results" not in record:
            found.append((origin, {name: fact for name, fact in record.items() if name not in _UNUSED}))
            eval_id = eval_id or filled(record.get("evalId"))
            continue
        eval_id = filled(record.get("evalId"))
        metadata = mapping(record.get("metadata"))
        config = mapping(record.get("config"))
        options = {**mapping(config.get("commandLineOptions")), **mapping(config.get("evaluateOptions"))}
        results = mapping(record.get("results"))
        if isinstance(results.get("results"), list):
            found.extend((f"results[{index}]", mapping(each)) for index, each in enumerate(results["results"]))
        else:
            found.extend(_of_table(mapping(results.get("table"))))
    conditions: dict[str, Any] = present({name: options.get(name) for name in _CONDITIONS})
    return _Evaluation(eval_id, metadata, conditions, tuple(_rows(found)), tuple(records.missing))


def _rows(found: list[tuple[str, Mapping[str, Any]]]) -> Iterator[_Row]:
    """Name each result. Of those with one test and prompt the place in the file says which repeat it is."""
    keys = [f"{_index(each, 'testIdx')}.{_index(each, 'promptIdx')}" for _, each in found]
    alike = Counter(keys)
    seen: Counter[str] = Counter()
    for (origin, result), key in zip(found, keys, strict=True):
        seen[key] += 1
        repeated = alike[key] > 1
        yield _Row(result, origin, f"{key}#{seen[key]}" if repeated else key, seen[key] if repeated else None)


def _index(result: Mapping[str, Any], name: str) -> str:
    found = whole(result.get(name))
    return "-" if found is None else str(found)


def _of_table(table: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the results of a table: a row is a test, a column a prompt with a provider."""
    for row_index, row in enumerate(map(mapping, sequence(table.get("body")))):
        test_index = whole(row.get("testIdx"))
        for column, output in enumerate(map(mapping, sequence(row.get("outputs")))):
            said = output.get("text")
            error = filled(output.get("error"))
            failed_call = output.get("failureReason") == 2
            yield (
                f"table.body[{row_index}].outputs[{column}]",
                {
                    **{
                        key: output.get(key)
                        for key in ("id", "prompt", "provider", "failureReason", "gradingResult")
                    },
                    "success": output.get("pass"),
                    "testIdx": row_index if test_index is None else test_index,
                    "promptIdx": column,
                    "error": error,
                    "response": {"error": error} if failed_call else {"output": said},
                },
            )
