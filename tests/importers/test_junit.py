"""JUnit XML: outcome and exception of each testcase, reruns told apart, nothing expanded or fetched."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.junit import JUnit
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.records.trial import Trial, TrialRef

GOLD = Path(__file__).parent.parent / "gold" / "junit"
FAMILIES = [GOLD / "xunit1.xml", GOLD / "xunit2.xml"]
TEST = "test_agent::test_"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def made(text: str) -> Path:
        path = tmp_path / "x"
        path.write_text(text)
        return path

    return made


def refs(path: Path) -> dict[str, TrialRef]:
    return {ref.key: ref for ref in find_trials(path).refs}


def read(path: Path, key: str) -> Trial:
    return JUnit().read(path, refs(path)[key])


@pytest.mark.parametrize("path", FAMILIES, ids=lambda each: each.stem)
def test_each_testcase_is_a_trial(path: Path) -> None:
    assert {
        key.removeprefix(TEST): (ref.outcome, ref.termination, ref.error_type, ref.refusal)
        for key, ref in refs(path).items()
    } == {
        "good": ("passed", None, None, "passed"),
        "wrong[1]": ("failed", None, "AssertionError", None),
        "wrong[2]": ("failed", None, "AssertionError", None),
        "stall": ("failed", "error", "StallError", None),
        "sandbox": ("undetermined", "error", "RuntimeError", None),
        "teardown": ("undetermined", "error", "OSError", None),
        "both": ("failed", None, "AssertionError", None),
        "flaky": ("undetermined", None, None, "no-sign-of-failure"),
        "flaky#2": ("passed", None, None, "passed"),
        "skipped": ("undetermined", "never-started", None, "never-ran"),
        "known": ("undetermined", None, None, "no-sign-of-failure"),
    }


def test_a_testcase_has_to_be_named_where_several_failed() -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(FAMILIES[0])
    assert caught.value.slug == "several-trials"
    assert read_one(FAMILIES[0], key=f"{TEST}stall").error is not None


def test_what_a_testcase_says() -> None:
    trial = read(FAMILIES[0], f"{TEST}good")
    assert (trial.harness, trial.task_id, trial.model, trial.revision, trial.attempt) == (
        "pytest",
        "calc-001",
        "small-model",
        "0123abc",
        None,
    )
    wrong = read(FAMILIES[0], f"{TEST}wrong[2]")
    assert wrong.task_id == f"{TEST}wrong[2]"
    assert wrong.conditions["properties"] == {"seed": "7"}
    assert wrong.conditions["place"] == "test_agent.py:20"
    assert "place" not in read(FAMILIES[1], f"{TEST}wrong[2]").conditions
    assert "ci-host" not in wrong.model_dump_json()
    assert (wrong.steps, wrong.failing_step) == ((), None)


def test_an_exception_has_type_text_and_rendering() -> None:
    error = read(FAMILIES[0], f"{TEST}stall").error
    assert error is not None
    # pytest spells a control character out before it writes it.
    assert (error.type, error.message, error.raised_by) == (
        "StallError",
        "no bytes for 600 s: #x1B[31mgone#x1B[0m",
        "unknown",
    )
    assert error.traceback is not None
    assert error.traceback.endswith("test_agent.py:28: StallError")
    setup = read(FAMILIES[0], f"{TEST}sandbox")
    assert setup.error is not None
    assert (setup.error.message, setup.labels) == ("container not found", ("junit:error:setup",))


def test_a_tear_down_error_beside_a_failure_is_no_trial_of_its_own() -> None:
    trial = read(FAMILIES[0], f"{TEST}both")
    assert trial.attempt is None
    assert trial.error is not None
    assert (trial.error.type, trial.labels) == ("AssertionError", ("junit:failure", "junit:error:teardown"))


def test_an_attempt_before_a_rerun_is_not_taken_for_a_pass() -> None:
    trial = read(FAMILIES[0], f"{TEST}flaky")
    assert (trial.attempt, trial.outcome, trial.outcome_from) == (1, "undetermined", None)
    assert trial.missing[0].startswith("the outcome: an attempt that was run again")
    assert read(FAMILIES[0], f"{TEST}flaky#2").attempt == 2


@pytest.mark.parametrize(
    ("element", "kind", "message"),
    [
        ('<failure type="java.lang.AssertionError" message="expected 1"/>', "AssertionError", "expected 1"),
        ('<failure message="assert 1 == 2">x.py:3: AssertionError</failure>', "AssertionError", "assert 1 == 2"),
        ('<failure message="Failed: by hand">x.py:3: Failed</failure>', "Failed", "by hand"),
        ('<failure message="KeyError: 3">x.py:3: KeyError</failure>', "KeyError", "3"),
        ('<failure message="some.mod.Boom: a: b"/>', "Boom", "a: b"),
        ('<failure message="nothing helpful"/>', None, "nothing helpful"),
        ("<failure>free words</failure>", None, None),
    ],
)
def test_types_and_messages(
    write: Callable[[str], Path], element: str, kind: str | None, message: str | None
) -> None:
    path = write(f'<testsuite><testcase classname="a" name="b">{element}</testcase></testsuite>')
    trial = read_one(path)
    assert trial.error is not None
    assert (trial.error.type, trial.error.message) == (kind, message)
    assert (trial.harness, trial.outcome) == (None, "failed")


def test_surefires_reruns_are_labelled(write: Callable[[str], Path]) -> None:
    path = write('<testsuite><testcase name="b"><flakyFailure message="x"/></testcase></testsuite>')
    assert read(path, "b").labels == ("junit:flakyFailure",)


@pytest.mark.parametrize(
    "declared",
    [
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>',
        '<!DOCTYPE testsuite SYSTEM "http://example.com/x.dtd">',
    ],
)
def test_a_doctype_is_refused(write: Callable[[str], Path], declared: str) -> None:
    with pytest.raises(ImportRefused, match="DOCTYPE") as caught:
        find_trials(write(f'<?xml version="1.0"?>{declared}<testsuite><testcase name="b"/></testsuite>'))
    assert caught.value.slug == "doctype"


def test_what_is_whole_before_a_break_is_kept_and_the_loss_is_said(write: Callable[[str], Path]) -> None:
    text = FAMILIES[0].read_text()
    path = write(text[: text.index('name="test_teardown"')])
    assert len(refs(path)) == 5
    trial = read(path, f"{TEST}stall")
    assert "5 whole testcases before that, the rest is lost" in trial.missing[0]
    with pytest.raises(ImportRefused) as caught:
        find_trials(write(text[:300]))
    assert caught.value.slug == "corrupt"


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("<testsuite>" + "<a>" * 300 + "</a>" * 300 + "</testsuite>", "corrupt"),
        ('<testsuite><testcase name="\x01"/></testsuite>', "corrupt"),
        ('<?xml version="1.0" encoding="nonsense"?><testsuite><testcase name="a"/></testsuite>', "corrupt"),
        ("<testsuite></testsuite>", "no-trial"),
        ("<html><testsuite/></html>", "not-recognised"),
        ("<!-- <testsuite> --><html/>", "not-recognised"),
        ("<", "not-recognised"),
    ],
    ids=["deep", "control", "encoding", "empty", "html", "comment", "nothing"],
)
def test_odd_documents(write: Callable[[str], Path], text: str, slug: str) -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(write(text))
    assert caught.value.slug == slug


def test_a_token_of_many_megabytes_takes_no_longer_than_reading_it(write: Callable[[str], Path]) -> None:
    said = "x" * 8_000_000
    path = write(f'<testsuite><testcase name="b"><failure message="KeyError: {said}"/></testcase></testsuite>')
    error = read_one(path).error
    assert error is not None
    assert (error.type, error.message) == ("KeyError", said)


def test_keys_are_unique_whatever_names_say(write: Callable[[str], Path]) -> None:
    cases = "".join(f'<testcase name="{name}"><failure/></testcase>' for name in ("a", "a#2", "a", "a"))
    path = write(f"<testsuite>{cases}</testsuite>")
    assert list(refs(path)) == ["a", "a#2", "a#2'", "a#3"]


@given(data=st.data())
def test_changed_and_missing_bytes_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(FAMILIES[0].read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("junit") / "x"
    path.write_bytes(bytes(content[: data.draw(st.integers(len(content) // 3, len(content)))]))
    try:
        found = list(JUnit().list_trials(path))
    except ImportRefused:
        return
    for ref in found:
        JUnit().read(path, ref)
