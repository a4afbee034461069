import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_regcase.case_files import duplicate_ids, load_case, seal_case
from pytest_regcase.errors import FileError, SealError
from pytest_regcase.records.canonical import digest
from tests.case_files.conftest import MINIMUM, WriteCase
from tests.no_access import forbid_listing

REPLIES = (
    '{"role": "user", "text": "do it"}\n'
    '{"role": "assistant", "text": "looking"}\n'
    '{"role": "tool", "text": "a.py"}\n'
    '{"role": "assistant", "text": "done"}\n'
)
SCRIPTED = MINIMUM + '\n[replies]\nsource = "script"\nfile = "recorded/script.jsonl"\n'
SUPPORT = """
[[hypotheses]]
id = "deadline"

[[evidence]]
id = "server-log"
hypothesis = "deadline"
stance = "supports"
file = "server.log"
lines = "12-14"
digest = "sha256:{}"
quote = "deadline exceeded"
why = "the server says so"
who = "mina"
at = 2026-04-13T08:00:00Z
""".format("0" * 64)


def problems(path: Path) -> list[str]:
    with pytest.raises(FileError) as caught:
        load_case(path)
    return [each.replace(str(path), "case.toml") for each in caught.value.problems]


def test_trial_37_by_hand_with_the_minimum_keys_loads_once_sealed(write_case: WriteCase) -> None:
    loaded = load_case(write_case())
    assert loaded.id == "sweep-0412-trial-37"
    assert loaded.case.cause_status == "unknown"
    assert loaded.case.expected_recovery.when["auth"].max_retries == 0
    assert (loaded.transcript(), loaded.reply_lines(), loaded.task_text(), loaded.work_tree()) == (
        None,
        (),
        None,
        None,
    )


def test_a_folder_stands_for_its_case_file(write_case: WriteCase) -> None:
    assert load_case(write_case().parent).id == "sweep-0412-trial-37"


def test_an_unsealed_case_names_the_command(write_case: WriteCase) -> None:
    path = write_case(sealed=False)
    with pytest.raises(SealError, match=r"run `regcase seal .*case\.toml`"):
        load_case(path)


@pytest.mark.parametrize("key", ["schema", "id", "title", "cause_status"])
def test_a_file_must_hold_what_python_need_not(write_case: WriteCase, key: str) -> None:
    text = "".join(line for line in MINIMUM.splitlines(True) if not line.startswith(key))
    (problem,) = problems(write_case(text, sealed=False))
    assert f'"{key}" is missing' in problem


def test_a_missing_handover_is_missing_and_not_empty(write_case: WriteCase) -> None:
    text = MINIMUM[: MINIMUM.index("[handover]")]
    assert problems(write_case(text, sealed=False)) == ['case.toml: "handover" is missing; it is required']


def test_a_typo_in_a_required_key_is_one_line_and_comes_first(write_case: WriteCase) -> None:
    text = MINIMUM.replace("title", "titel").replace("schema = 1", 'schema = 1\nagent = "No"')
    found = problems(write_case(text, sealed=False))
    assert found == [
        'case.toml:4: unknown key "titel"; did you mean "title"? It is required.',
        'case.toml:2: agent = "No"; allowed: lower-case letters, digits and hyphens, with a letter or digit first',
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('symptom = "x"', 'unknown key "symptom"; it belongs in [observation]'),
        ('simulation_id = "x"', 'unknown key "simulation_id"; allowed: schema, id'),
        ("schema_version = 1", 'unknown key "schema_version"'),
        ('expected_recovery = "stop"', "expected_recovery is text; allowed: a table"),
    ],
)
def test_spellings_for_python_are_no_keys_of_a_file(write_case: WriteCase, line: str, says: str) -> None:
    (problem,) = problems(write_case(f"{line}\n{MINIMUM}", sealed=False))
    assert problem.startswith(f"case.toml:1: {says}")


def test_a_plain_key_below_a_table_is_told_where_it_belongs(write_case: WriteCase) -> None:
    (problem,) = problems(write_case(MINIMUM + 'unresolved_questions = ["why?"]\n', sealed=False))
    assert problem.endswith(
        'unknown key "unresolved_questions" in [handover]; it belongs above the first [table] header'
    )


def test_a_newer_format_is_refused_before_anything_else(write_case: WriteCase) -> None:
    found = problems(write_case(MINIMUM.replace("schema = 1", "schema = 2\nnew_key = 1"), sealed=False))
    assert found == [
        "case.toml:1: schema = 2 is newer than this pytest-regcase reads; allowed: 1. Upgrade pytest-regcase"
    ]


def test_a_cause_status_edited_by_hand_is_an_error(write_case: WriteCase) -> None:
    path = write_case()
    path.write_text(path.read_text().replace('"unknown"', '"confirmed"'))
    (problem,) = problems(path)
    assert 'case.toml:8: observation.cause_status = "confirmed"; allowed: "unknown"' in problem
    assert "(0 standing)" in problem


def test_evidence_computes_the_cause_status(write_case: WriteCase) -> None:
    text = MINIMUM + SUPPORT
    assert 'allowed: "confirmed"' in problems(write_case(text, sealed=False))[0]
    assert load_case(write_case(text.replace('"unknown"', '"confirmed"'))).case.cause_status == "confirmed"


def test_a_broken_regular_expression_is_found_when_the_case_is_read(write_case: WriteCase) -> None:
    (problem,) = problems(write_case(MINIMUM + '[symptom_match]\nerror_type = "("\n', sealed=False))
    assert "case.toml:14: symptom_match.error_type = '(' is no regular expression" in problem


class TestFilesBesideTheCase:
    def test_a_script_is_what_the_supplier_answers_from(self, write_case: WriteCase) -> None:
        loaded = load_case(write_case(SCRIPTED, files={"recorded/script.jsonl": REPLIES}))
        assert [(line.step, line.role) for line in loaded.reply_lines()] == [
            (0, "user"),
            (1, "assistant"),
            (1, "tool"),
            (2, "assistant"),
        ]
        assert loaded.transcript() is None

    def test_replies_after_the_fault_go_on_at_the_failing_step(self, write_case: WriteCase) -> None:
        text = SCRIPTED + 'after_fault = "recorded/after.jsonl"\n'
        files = {"recorded/script.jsonl": REPLIES, "recorded/after.jsonl": '{"role": "assistant", "text": "x"}'}
        assert [line.step for line in load_case(write_case(text, files=files)).after_fault_lines()] == [3]

    def test_passed_through_replies_are_not_answered_by_us(self, write_case: WriteCase) -> None:
        loaded = load_case(write_case(MINIMUM + '[replies]\nsource = "pass-through"\n'))
        assert loaded.reply_lines() == ()

    def test_a_transcript_is_replayed_where_nothing_else_is_said(self, write_case: WriteCase) -> None:
        loaded = load_case(write_case(_with_transcript(), files={"recorded/transcript.jsonl": REPLIES}))
        assert len(loaded.reply_lines()) == 4

    def test_an_edited_transcript_breaks_the_seal(self, write_case: WriteCase) -> None:
        path = write_case(_with_transcript(), files={"recorded/transcript.jsonl": REPLIES})
        (path.parent / "recorded/transcript.jsonl").write_text(REPLIES.replace("looking", "rm -rf ~"))
        with pytest.raises(SealError) as caught:
            load_case(path)
        (problem,) = caught.value.problems
        assert "recorded/transcript.jsonl" in problem
        assert "is not what was recorded" in problem

    def test_a_transcript_that_nobody_recorded_is_refused(self, write_case: WriteCase) -> None:
        path = write_case()
        (path.parent / "recorded").mkdir()
        (path.parent / "recorded/transcript.jsonl").write_text(REPLIES)
        with pytest.raises(SealError, match=digest(REPLIES.encode())):
            load_case(path)

    def test_a_missing_recorded_file_is_named(self, write_case: WriteCase) -> None:
        path = write_case(_with_transcript(), files={"recorded/transcript.jsonl": REPLIES})
        (path.parent / "recorded/transcript.jsonl").unlink()
        assert problems(path)[0].endswith('"recorded/transcript.jsonl" is not beside the case file')

    def test_a_bad_line_is_named_with_file_and_number(self, write_case: WriteCase) -> None:
        with pytest.raises(FileError) as caught:
            write_case(SCRIPTED, files={"recorded/script.jsonl": REPLIES + '{"role": "model"}\n\n[]\n'})
        first, second = caught.value.problems
        assert 'script.jsonl:5: role = "model"; allowed: "system", "user", "assistant" or "tool"' in first
        assert second.endswith("script.jsonl:7: is not a JSON object")

    @pytest.mark.parametrize("name", ["/etc/hosts", "../other/task.txt", "recorded/../../x", "", "a\\\\b", "."])
    def test_a_name_may_not_leave_the_folder(self, write_case: WriteCase, name: str) -> None:
        (problem,) = problems(write_case(MINIMUM + f'[task]\ntext_file = "{name}"\n', sealed=False))
        assert problem.startswith("case.toml:14: ")

    def test_a_symbolic_link_may_not_lead_out(self, write_case: WriteCase, tmp_path: Path) -> None:
        (tmp_path / "secret.txt").write_text("secret")
        path = write_case(MINIMUM + '[task]\ntext_file = "task.txt"\n', sealed=False)
        (path.parent / "task.txt").symlink_to(tmp_path / "secret.txt")
        assert "leaves the case's folder through a symbolic link" in problems(path)[0]

    def test_task_and_work_tree(self, write_case: WriteCase) -> None:
        text = MINIMUM + '[task]\ntext_file = "recorded/task.txt"\nwork_tree = "recorded/work_tree"\n'
        files = {"recorded/task.txt": "Mach es: ä\n", "recorded/work_tree/a.py": "x = 1\n"}
        path = write_case(text, files=files)
        loaded = load_case(path)
        assert loaded.task_text() == "Mach es: ä\n"
        assert loaded.work_tree() == path.parent / "recorded/work_tree"

    def test_a_repository_in_the_work_tree_is_refused(self, write_case: WriteCase) -> None:
        text = MINIMUM + '[task]\nwork_tree = "recorded/work_tree"\n'
        with pytest.raises(FileError, match="is a repository"):
            write_case(text, files={"recorded/work_tree/.git/HEAD": "x"})


class TestCaseDigest:
    """INTERFACES, "Case digest": what a count of attempts belongs to."""

    TEXT = (
        MINIMUM.replace('cause_status = "unknown"\n', 'cause_status = "unknown"\nfailing_step = 3\n')
        + '[task]\ntext_file = "task.txt"\nwork_tree = "tree"\n'
        + '[replies]\nsource = "script"\nfile = "script.jsonl"\nafter_fault = "after.jsonl"\n'
        + "[symptom_match]\nno_reply = true\n"
        + "[expected_recovery]\nmax_retries = 2\n"
    )
    FILES = {  # noqa: RUF012 - never changed
        "task.txt": "do it",
        "tree/a.py": "x",
        "script.jsonl": REPLIES,
        "after.jsonl": '{"role": "assistant", "text": "x"}',
    }

    def of(self, write_case: WriteCase, text: str | None = None, files: dict[str, str] | None = None) -> str:
        path = write_case(
            text or self.TEXT, files=self.FILES | (files or {}), folder=f"case-{os.urandom(4).hex()}"
        )
        return load_case(path).digest_for(None, "control")

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('id = "sweep', 'id = "another-sweep'),
            ("failing_step = 3", "failing_step = 4"),
            ("no_reply = true", "no_reply = false"),
            ("max_retries = 2", "max_retries = 1"),
            ('work_tree = "tree"\n', ""),
            ('after_fault = "after.jsonl"\n', ""),
        ],
    )
    def test_what_is_asked_and_answered_counts(self, write_case: WriteCase, old: str, new: str) -> None:
        assert old in self.TEXT
        assert self.of(write_case, self.TEXT.replace(old, new)) != self.of(write_case)

    @pytest.mark.parametrize("name", list(FILES))
    def test_the_content_of_files_counts(self, write_case: WriteCase, name: str) -> None:
        more = "\n" + REPLIES.splitlines()[0] if name.endswith(".jsonl") else " and more"
        changed = {name: self.FILES[name] + more}
        assert self.of(write_case, files=changed) != self.of(write_case)

    def test_who_may_be_executed_counts(self, write_case: WriteCase) -> None:
        path = write_case(self.TEXT, files=self.FILES)
        before = load_case(path).digest_for(None, "live")
        (path.parent / "tree/a.py").chmod(0o755)
        assert load_case(path).digest_for(None, "live") != before

    @pytest.mark.parametrize(
        "added",
        [
            '[[hypotheses]]\nid = "deadline"\nsimulations = ["deadline-no-answer-v1"]\n',
            '[quarantine]\nowner = "a"\nreason = "b"\nkind = "flaky"\nsince = 2026-01-01\nexpires = 2026-02-01\n',
            '[baseline]\nfailures = 1\ntrials = 2\nkind = "fresh"\n',
            '[[fix]]\nnumber = 1\nrevision = "r"\nledger_id = "l"\nrows = 0\nat = 2026-01-01 00:00:00Z\nby="b"\n',
            '[[amendments]]\nwhat = "a"\nwhy = "b"\nwho = "c"\nat = 2026-01-01T00:00:00Z\n',
            '[[reopened]]\nat = 2026-01-01T00:00:00Z\nby = "b"\nwhy = "c"\n',
            '[[retired]]\nat = 2026-01-01T00:00:00Z\nby = "b"\nwhy = "c"\n',
        ],
    )
    def test_an_added_table_changes_nothing(self, write_case: WriteCase, added: str) -> None:
        assert self.of(write_case, self.TEXT + added) == self.of(write_case)

    def test_evidence_changes_nothing(self, write_case: WriteCase) -> None:
        text = self.TEXT.replace('"unknown"', '"confirmed"') + SUPPORT
        assert self.of(write_case, text) == self.of(write_case)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('owner = "eval-harness-oncall"', 'owner = "someone-else"'),
            ('title = "no answer', 'title = "still no answer'),
            ("model answered step 5, then", "The model answered step 5, then"),
            ('"task.txt"', '"./task.txt"'),
        ],
    )
    def test_words_for_the_reader_change_nothing(self, write_case: WriteCase, old: str, new: str) -> None:
        assert old in self.TEXT
        assert self.of(write_case, self.TEXT.replace(old, new)) == self.of(write_case)

    def test_a_tighter_class_counts_for_its_simulations_alone(self, write_case: WriteCase) -> None:
        def of(text: str) -> list[str]:
            loaded = load_case(write_case(text, files=self.FILES, folder=f"case-{os.urandom(4).hex()}"))
            return [
                loaded.digest_for(None, "control"),
                loaded.digest_for(None, "live"),
                loaded.digest_for("deadline", "simulation"),
                loaded.digest_for("auth", "simulation"),
            ]

        plain = of(self.TEXT)
        tighter = of(self.TEXT + "[expected_recovery.when.auth]\nmax_retries = 1\n")
        assert plain[:3] == tighter[:3]
        assert plain[3] != tighter[3]
        assert plain[3] != plain[2]


def test_two_cases_with_one_id_name_each_other(write_case: WriteCase) -> None:
    one, two = write_case(folder="one"), write_case(folder="two")
    (error,) = duplicate_ids([load_case(one), load_case(two)])
    assert f'{one}: the id "sweep-0412-trial-37" is also that of {two}' in error.problems


def test_reading_changes_no_byte(write_case: WriteCase) -> None:
    path = write_case(SCRIPTED, files={"recorded/script.jsonl": REPLIES})
    before = path.read_bytes()
    load_case(path).digest_for(None, "control")
    assert path.read_bytes() == before


def test_sealing_needs_a_case_that_is_right(write_case: WriteCase) -> None:
    path = write_case(MINIMUM.replace('owner = "eval-harness-oncall"\n', ""), sealed=False)
    before = path.read_bytes()
    with pytest.raises(FileError, match='"owner" is missing'):
        seal_case(path)
    assert path.read_bytes() == before


def _with_transcript() -> str:
    return MINIMUM.replace(
        "[handover]",
        f'[observation.recorded]\n"recorded/transcript.jsonl" = "{digest(REPLIES.encode())}"\n\n[handover]',
    )


@pytest.mark.parametrize("version", ["true", "1.0", '"1"', "0", "[1]"])
def test_a_format_version_is_the_whole_number(write_case: WriteCase, version: str) -> None:
    (says,) = problems(write_case(MINIMUM.replace("schema = 1", f"schema = {version}"), sealed=False))
    assert says.startswith("case.toml:1: schema = ")
    assert says.endswith("; allowed: 1")


def test_a_file_name_that_the_system_refuses_is_an_error_of_the_file(write_case: WriteCase) -> None:
    text = MINIMUM + f'\n[task]\ntext_file = "{"a" * 300}"\n'
    (says,) = problems(write_case(text, sealed=False))
    assert "cannot be followed: " in says
    assert says.startswith("case.toml:15: ")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("nowhere", path)])
def test_a_transcript_that_is_no_file_is_not_passed_over(
    write_case: WriteCase, make: Callable[[Path], None]
) -> None:
    path = write_case(files={"recorded/task.txt": "x"})
    make(path.parent / "recorded" / "transcript.jsonl")
    (says,) = problems(path)
    assert says.endswith("recorded/transcript.jsonl: is there, but is no file")


@pytest.mark.parametrize(("key", "value"), [("max_failure_rate", "0"), ("risk", "1"), ("risk", "0.00")])
def test_a_rerun_rule_that_no_number_of_runs_can_meet_is_an_error(
    write_case: WriteCase, key: str, value: str
) -> None:
    text = MINIMUM + f'\n[handover.rerun_rule]\n{key} = "{value}"\n'
    (says,) = problems(write_case(text, sealed=False))
    assert says.startswith(f'case.toml:15: handover.rerun_rule.{key} = "{value}"; allowed: ')


def test_a_work_tree_that_may_not_be_listed_is_an_error_of_the_file(
    write_case: WriteCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = MINIMUM + '\n[task]\nwork_tree = "recorded/work_tree"\n'
    path = write_case(text, files={"recorded/work_tree/inner/a.py": ""})
    forbid_listing(monkeypatch, path.parent / "recorded" / "work_tree" / "inner")
    (says,) = problems(path)
    assert says.startswith("case.toml: ")
    assert says.endswith("recorded/work_tree/inner cannot be read: Permission denied")
