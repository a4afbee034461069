"""A secret that was found later goes from all files of a case, and the case stays one."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import load_case, seal_case, tree_digest
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.errors import RegcaseError, SealError, UsageRefused
from pytest_regcase.importers.source import Choice
from pytest_regcase.records.canonical import canonical_json, digest
from pytest_regcase.session.adopt import adopt
from pytest_regcase.session.case_life import redact as redacting
from pytest_regcase.session.case_life.redact import RedactedCase, redact_case
from pytest_regcase.session.new_cases.making import Settings
from tests.redaction.planted import PLANTED

SECRET = 'zebra "lounge" \\ 7'
AT = datetime(2026, 5, 1, tzinfo=UTC)
KEY = next(each.secret for each in PLANTED if each.name == "openai")

TRIAL: list[dict[str, Any]] = [
    {"kind": "trial", "schema": 1, "harness": "my_agent", "run_id": "r1", "task_text": f"Go to {SECRET} now."},
    {"kind": "step", "step": 0, "role": "user", "text": f"Go to {SECRET} now."},
    {
        "kind": "step",
        "step": 1,
        "role": "assistant",
        "tool_calls": [{"id": "c1", "name": "bash", "arguments": json.dumps({"command": f"echo '{SECRET}'"})}],
    },
    {"kind": "step", "step": 1, "role": "tool", "tool_call_id": "c1", "text": json.dumps({"out": SECRET})},
    {"kind": "error", "type": "timeout", "message": f"no answer for {SECRET}", "raised_by": "supplier"},
    {"kind": "end", "termination": "error", "outcome": "undetermined"},
]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(root=tmp_path, config=RegcaseConfig())


@pytest.fixture
def case(project: Project) -> Path:
    """A case that holds the secret in every file, in several spellings."""
    log = project.root / "trial.jsonl"
    log.write_text("".join(f"{json.dumps(line)}\n" for line in TRIAL))
    tree = project.root / "tree"
    tree.mkdir()
    (tree / "notes.py").write_text(f'PLACE = {SECRET!r}\nAUTHOR = "ada@mail.corp.io"\n')
    (tree / "image.bin").write_bytes(b"\0\xff" + SECRET.encode() + b"\xfe")
    (tree / "run.sh").write_text("true\n")
    adopted = adopt(
        project,
        log,
        Settings(owner="ada <ada@mail.corp.io>", new=True),
        choice=Choice(),
        case_id="one",
        work_tree=tree,
    )
    return adopted.folder / "case.toml"


def texts(case: Path) -> dict[str, str]:
    folder = case.parent
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode("utf-8", "surrogateescape")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def redacted(project: Project, case: Path, secret: str | None = SECRET, **options: Any) -> RedactedCase:
    return redact_case(project, case, secret, **{"by": "omar", "at": AT, **options})


def test_it_goes_from_every_file_in_every_spelling(project: Project, case: Path) -> None:
    done = redacted(project, case)
    for name, text in texts(case).items():
        assert "lounge" not in text, name
    assert done.files == {
        "case.toml": 1,
        "recorded/task.txt": 1,
        "recorded/transcript.jsonl": 3,
        "recorded/work_tree/image.bin": 1,
        "recorded/work_tree/notes.py": 1,
    }
    assert done.redactions == {"by_hand": 7}
    loaded = load_case(case)
    assert loaded.task_text() == "Go to REDACTED-by-hand-1 now."
    (call,) = loaded.reply_lines()[1].tool_calls
    assert json.loads(call.arguments) == {"command": "echo 'REDACTED-by-hand-1'"}
    assert texts(case)["recorded/work_tree/image.bin"] == "\0\udcffREDACTED-by-hand-1\udcfe"


def test_the_case_says_what_was_done(project: Project, case: Path) -> None:
    before = load_case(case)
    done = redacted(project, case, why="it was a key of the billing team")
    after = load_case(case)
    assert before.case.seal is not None
    assert after.case.seal is not None
    assert done.digest == after.case.seal.observation != before.case.seal.observation
    (amendment,) = after.case.amendments
    assert amendment == done.amendment
    assert (amendment.who, amendment.at, amendment.old_digest) == ("omar", AT, before.case.seal.observation)
    assert amendment.why == "it was a key of the billing team"
    assert amendment.what.startswith("removed 7 by_hand from case.toml, recorded/task.txt")
    assert after.case.observation.redactions == {"by_hand": 7}
    transcript = (case.parent / "recorded" / "transcript.jsonl").read_bytes()
    assert after.case.observation.recorded["recorded/transcript.jsonl"] == digest(transcript)
    assert after.case.observation.source_digests == before.case.observation.source_digests
    assert done.counts_anew


def test_what_is_not_to_go_keeps_its_bytes(project: Project, case: Path) -> None:
    before = texts(case)
    redacted(project, case)
    after = texts(case)
    assert after["recorded/work_tree/run.sh"] == before["recorded/work_tree/run.sh"]
    lines = zip(before["case.toml"].splitlines(), after["case.toml"].splitlines(), strict=False)
    same = [old for old, new in lines if old == new]
    assert "#:schema ../../regcase-case.schema.json" in same
    assert any("says what, never why" in line for line in same)


def test_a_second_one_gets_a_number_of_its_own(project: Project, case: Path) -> None:
    redacted(project, case)
    redacted(project, case, "Go to")
    assert load_case(case).task_text() == "REDACTED-by-hand-2 REDACTED-by-hand-1 now."
    assert load_case(case).case.observation.redactions["by_hand"] == 9
    assert len(load_case(case).case.amendments) == 2
    with pytest.raises(UsageRefused):
        redacted(project, case)


def test_a_secret_of_a_known_shape_is_counted_as_what_it_is(project: Project, case: Path) -> None:
    text = (
        case.read_text().replace('title = "', f'title = "{KEY} ').replace("ada <ada@mail.corp.io>", f"ada {KEY}")
    )
    case.write_text(f"# {KEY}\n{text}")
    done = redacted(project, case, KEY)
    assert done.redactions == {"api_key": 3}
    assert not done.counts_anew
    assert case.read_text().startswith("# REDACTED-api-key-1\n")
    assert load_case(case).case.handover is not None


def test_the_handover_names_people_on_purpose(project: Project, case: Path) -> None:
    before = texts(case)
    done = redacted(project, case, None)
    assert (done.files, done.amendment) == ({}, None)
    assert texts(case) == before
    assert "ada@mail.corp.io" in before["case.toml"]
    assert "ada@mail.corp.io" in before["recorded/work_tree/notes.py"]


def test_todays_patterns_find_what_an_older_version_left(
    project: Project, case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an older version would have written it: sealed, with a key in its files."""
    folder = case.parent
    lines = [json.loads(line) for line in (folder / "recorded" / "transcript.jsonl").read_text().splitlines()]
    lines[0]["text"] = f"use {KEY} of ada@mail.corp.io in /home/alice"
    lines[1]["tool_calls"][0]["arguments"] = json.dumps({"command": "curl -H 'x-api-key: letters1'"})
    content = b"".join(canonical_json(line) + b"\n" for line in lines)
    (folder / "recorded" / "transcript.jsonl").write_bytes(content)
    (folder / "recorded" / "work_tree" / "notes.py").write_text(f"K = '{KEY}'  # ada@mail.corp.io\n")
    loaded = load_case_unsealed(case, digest(content))
    done = redacted(project, case, None)
    assert done.redactions == {"api_key": 3, "email": 1, "home_path": 1, "secret_value": 1}
    after = texts(case)
    assert KEY not in "".join(after.values())
    assert after["recorded/work_tree/notes.py"] == "K = 'REDACTED-api-key-1'  # ada@mail.corp.io\n"
    steps = load_case(case).transcript()
    assert steps is not None
    assert steps[0].text == "use REDACTED-api-key-1 of REDACTED-email-1 in /home/REDACTED-user-1"
    assert steps[0].role == loaded.role
    assert load_case(case).case.amendments[0].why == "found by a later version's patterns"
    assert redacted(project, case, None).files == {}


def load_case_unsealed(case: Path, transcript: str) -> Any:
    """Put the digest and a key into the case file, and seal it again."""
    text = case.read_text()
    was = load_digest(text)
    text = text.replace(was, transcript).replace("message = ", f"message = '{KEY}' # ")
    case.write_text(text[: text.index("[seal]")])
    seal_case(case)
    steps = load_case(case).transcript()
    assert steps is not None
    return steps[0]


def load_digest(text: str) -> str:
    return text.split('"recorded/transcript.jsonl" = "')[1].split('"')[0]


def test_what_was_kept_on_purpose_stays(project: Project) -> None:
    from pytest_regcase.redaction import Keep

    log = project.root / "trial.jsonl"
    lines = [line | {"text": "ask ada@mail.corp.io"} if line.get("role") == "user" else line for line in TRIAL]
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    settings = Settings(owner="me", new=True, keep=Keep(["ada@.*"], "it is public"))
    case = adopt(project, log, settings, case_id="one").folder / "case.toml"
    (kept,) = load_case(case).case.observation.kept
    assert (kept.what, kept.count, kept.why) == ("ada@.*", 1, "it is public")
    assert redacted(project, case, None).files == {}
    assert "ada@mail.corp.io" in texts(case)["recorded/transcript.jsonl"]


@pytest.mark.parametrize("secret", ["", "abc", "\n"])
def test_what_is_too_short_is_refused(project: Project, case: Path, secret: str) -> None:
    before = texts(case)
    with pytest.raises(UsageRefused, match="fewer than 4 characters"):
        redacted(project, case, secret)
    assert texts(case) == before


def everything_said(error: BaseException | None) -> str:
    said = ""
    while error is not None:
        said += f"{error!r} {error}"
        error = error.__cause__ or error.__context__
    return said


def test_what_is_not_there_is_refused_and_not_repeated(project: Project, case: Path) -> None:
    before = texts(case)
    with pytest.raises(UsageRefused) as refusal:
        redacted(project, case, "giraffe-lounge")
    assert refusal.value.slug == "not-found"
    assert "Looked in: case.toml, recorded/task.txt, recorded/transcript.jsonl" in refusal.value.text
    assert "giraffe" not in everything_said(refusal.value)
    assert texts(case) == before


@pytest.mark.parametrize("secret", ["unknown", "schema", "agent", "recorded", "observation", "seal"])
def test_a_word_that_the_file_needs_is_refused_and_nothing_changes(
    project: Project, case: Path, secret: str
) -> None:
    before = texts(case)
    with pytest.raises(RegcaseError) as refusal:
        redacted(project, case, secret)
    assert refusal.value.exit_code == 2
    assert "would be no case any more" in refusal.value.text or "names of files" in refusal.value.text
    assert texts(case) == before
    assert [each.name for each in case.parents[1].iterdir()] == ["one"]


def test_a_name_of_a_file_that_holds_it_is_refused(project: Project, case: Path) -> None:
    (case.parent / "recorded" / "work_tree" / "hunter2.txt").write_text("hunter2")
    with pytest.raises(UsageRefused, match="names of files hold the text") as refusal:
        redacted(project, case, "hunter2")
    assert "hunter2" not in everything_said(refusal.value)
    assert "recorded/work_tree/....txt" in refusal.value.text


def test_a_broken_seal_is_not_mended_on_the_way_and_its_error_hides_the_secret(
    project: Project, case: Path
) -> None:
    case.write_text(case.read_text().replace("no answer for", "hunter2 for").replace("harness = ", "harnes = "))
    before = texts(case)
    with pytest.raises(RegcaseError) as refusal:
        redacted(project, case, "harnes")
    assert "harnes " not in everything_said(refusal.value).replace("harness", "")
    case.write_text(case.read_text().replace("harnes = ", "harness = "))
    with pytest.raises(SealError):
        redacted(project, case, "hunter2")
    assert texts(case).keys() == before.keys()


def test_one_that_was_cut_short_is_finished_by_the_next(
    project: Project, case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_regcase.case_files import replacing

    class Killed(BaseException):
        pass

    def killed(folder: Path) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(replacing, "finish_replacing", killed)
        with pytest.raises(Killed):
            redacted(project, case)
    assert "lounge" in "".join(texts(case).values())
    done = redacted(project, case)
    assert set(done.finished) >= {"case.toml", "recorded/transcript.jsonl"}
    assert done.amendment is None
    assert "lounge" not in "".join(texts(case).values())
    assert len(load_case(case).case.amendments) == 1


def test_half_of_it_is_no_case_and_says_how_to_finish(
    project: Project, case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    class Killed(BaseException):
        pass

    replace = os.replace

    def killed(source: Path, target: Path) -> None:
        if ".replacing/" in str(source) and str(target).endswith("case.toml"):
            raise Killed
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(Killed):
            redacted(project, case)
    with pytest.raises(SealError, match=r"was cut short; `regcase redact .*` finishes it"):
        load_case(case)
    redacted(project, case)
    assert load_case(case).case.observation.redactions == {"by_hand": 7}


def test_cited_evidence_in_the_case_follows_its_file(project: Project, case: Path) -> None:
    cited = case.parent / "recorded" / "server.log"
    cited.write_text(f"killed {SECRET}\n")
    old = digest(cited.read_bytes())
    text = case.read_text()
    evidence = {
        "id": "oom", "hypothesis": "deadline", "stance": "refutes", "file": "recorded/server.log", "lines": "1",
        "digest": old, "quote": f"killed {SECRET}", "why": "it says so", "who": "ada",
    }  # fmt: skip
    rows = "".join(f"{key} = {json.dumps(value)}\n" for key, value in evidence.items())
    case.write_text(f"{text}\n[[evidence]]\n{rows}at = 2026-05-01T00:00:00Z\n")
    redacted(project, case)
    (after,) = load_case(case).case.evidence
    assert after.digest == digest(cited.read_bytes()) != old
    assert after.quote == "killed REDACTED-by-hand-1"


def test_the_digest_of_a_recorded_folder_is_refreshed_too(project: Project, case: Path) -> None:
    text = case.read_text()
    tree = tree_digest(case.parent / "recorded" / "work_tree")
    text = text.replace("[observation.recorded]", f'[observation.recorded]\n"recorded/work_tree" = "{tree}"')
    case.write_text(text[: text.index("[seal]")])
    seal_case(case)
    redacted(project, case)
    now = load_case(case).case.observation.recorded["recorded/work_tree"]
    assert now == tree_digest(case.parent / "recorded" / "work_tree") != tree


def test_the_reason_does_not_bring_it_back(project: Project, case: Path) -> None:
    done = redacted(project, case, why=f"{SECRET} is our key")
    assert done.amendment is not None
    assert done.amendment.why == "... is our key"
    assert SECRET not in case.read_text()


def test_a_file_of_another_name_is_no_case(project: Project, case: Path) -> None:
    other = case.rename(case.parent / "mine.toml")
    with pytest.raises(UsageRefused, match=r"is called case\.toml"):
        redacted(project, other)


def test_whoever_is_not_named_is_asked_for(project: Project, case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redacting, "who_acts", lambda root, what: f"{root.name}: {what}")
    assert redacted(project, case, by=None).amendment is not None
    assert load_case(case).case.amendments[0].who == f"{project.root.name}: who redacts the case"
