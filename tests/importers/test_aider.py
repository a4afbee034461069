"""aider chat histories: sessions told apart, broken replies told from whole ones, nothing said of how it ended."""

from pathlib import Path

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.aider import Aider
from pytest_regcase.importers.source import find_trials, read_one, read_output
from pytest_regcase.records.trial import Trial

GOLD = Path(__file__).parent.parent / "gold" / "aider" / "history.md"
TIMED_OUT = "litellm.APIConnectionError: APIConnectionError: OpenAIException - timed out"


def session(tmp_path: Path, *told: str) -> Trial:
    """Read one session; each part is a line of aider's (`> `), of the user's (`#### `) or a model's text."""
    lines = ["", "# aider chat started at 2026-05-04 10:00:00", "", "> Aider v0.86.2  ", "", "#### Fix it.  "]
    for part in told:
        lines += [f"{part}  "] if part.startswith(("> ", "#### ")) else ["", part, ""]
    path = tmp_path / "x"
    path.write_text("\n".join(lines) + "\n")
    return read_output(path)


def test_each_session_of_a_file_is_a_trial() -> None:
    refs = find_trials(GOLD).refs
    assert [(ref.key, ref.failed, ref.termination, ref.error_type) for ref in refs] == [
        ("session-1", False, None, None),
        ("session-2", True, "error", "AuthenticationError"),
        ("session-3", True, "cut-off", "APIConnectionError"),
    ]


def test_a_session_without_a_failed_call_shows_no_sign_of_failure() -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(GOLD, key="session-1")
    assert caught.value.slug == "no-sign-of-failure"
    trial = read_one(GOLD, key="session-1", failed_only=False)
    assert (trial.failing_step, trial.termination, trial.outcome) == (1, None, "undetermined")
    assert (trial.harness, trial.model) == ("aider 0.86.2", "openai/test-model")
    assert trial.labels == ("aider:commit:a564649",)
    # A quotation in the reply is the model's: aider ends its own lines with two spaces.
    assert trial.replies[0].text is not None
    assert "> as asked" in trial.replies[0].text


def test_a_text_whose_stream_broke_is_no_reply() -> None:
    trial = read_one(GOLD, key="session-2")
    assert [(line.step, line.role, line.text) for line in trial.steps] == [
        (0, "user", "add() in calc.py subtracts"),
        (1, "assistant", "Fixing add."),
        (2, "assistant", "Now me"),
        (2, "assistant", None),
    ]
    assert [line.error for line in trial.steps[:3]] == [None, None, TIMED_OUT]
    assert trial.error is not None
    assert (trial.error.type, trial.error.raised_by) == ("AuthenticationError", "supplier")
    assert (trial.failing_step, trial.termination) == (2, "error")


def test_a_session_that_ends_while_it_retries_is_cut_off() -> None:
    trial = read_one(GOLD, key="session-3")
    assert (trial.failing_step, trial.termination, len(trial.replies)) == (1, "cut-off", 0)


def test_a_reply_after_failed_calls_heals_the_session(tmp_path: Path) -> None:
    trial = session(tmp_path, f"> {TIMED_OUT}", "> Retrying in 0.2 seconds...", "Fixed.", "> Tokens: 2k sent.")
    assert (trial.termination, trial.error, trial.failing_step) == (None, None, 1)


def test_usage_behind_a_text_says_that_it_was_whole(tmp_path: Path) -> None:
    trial = session(tmp_path, "Fixed.", "> Tokens: 2k sent.", f"> {TIMED_OUT}")
    assert ([line.text for line in trial.replies], trial.failing_step) == (["Fixed."], 2)
    assert trial.termination == "error"


@pytest.mark.parametrize(
    "words",
    [
        "Empty response received from LLM. Check your provider account?",
        "ModelResponse(id='x', model='test-model', choices=[], usage=None)",
        "Model openai/test-model has hit a token limit!",
    ],
)
def test_aiders_words_for_no_answer_are_an_error_without_a_type(tmp_path: Path, words: str) -> None:
    trial = session(tmp_path, f"> {words}", "> Tokens: 200 sent, 20 received.")
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.failing_step) == (None, words, 1)
    assert trial.termination == "error"


def test_a_text_that_met_the_token_limit_is_no_reply(tmp_path: Path) -> None:
    trial = session(tmp_path, "A long te", "> Tokens: 2k sent.", "> ", "> Model x/y has hit a token limit!")
    assert (trial.replies, trial.steps[-1].text, trial.failing_step) == ((), "A long te", 1)
    assert len(trial.steps) == 2


def test_a_traceback_gives_the_type(tmp_path: Path) -> None:
    told = (
        "> Traceback (most recent call last):",
        '> File "/x.py", line 3, in send',
        "> raise",
        "> a.ValueError: no",
    )
    trial = session(tmp_path, *told, "> no")
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == ("ValueError", "no", "unknown")


def test_an_interrupted_text_is_no_reply(tmp_path: Path) -> None:
    trial = session(tmp_path, "> ^C again to exit", "Half of a")
    assert (trial.termination, trial.replies, trial.failing_step) == ("cancelled", (), 1)
    assert trial.steps[-1].text == "Half of a"


def test_a_session_that_ends_where_the_model_had_to_answer_is_cut_off(tmp_path: Path) -> None:
    assert session(tmp_path).termination == "cut-off"
    asked = "> Attempt to fix test errors? (Y)es/(N)o [Yes]: y"
    trial = session(tmp_path, "Fixed.", asked)
    assert (trial.termination, trial.failing_step) == ("cut-off", 2)
    assert session(tmp_path, "Fixed.", asked.removesuffix("y") + "n").termination is None


def test_too_many_reflections_are_a_limit(tmp_path: Path) -> None:
    trial = session(tmp_path, "Fixed.", "> Only 3 reflections allowed, stopping.")
    assert (trial.termination, trial.failing_step) == ("limit", 1)


def test_a_command_is_no_message_to_the_model(tmp_path: Path) -> None:
    trial = session(tmp_path, "Fixed.", "#### /add calc.py", "> Added calc.py to the chat.")
    assert [line.role for line in trial.steps] == ["user", "assistant"]


def test_a_history_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(GOLD.read_bytes() + b"\xff\xfe")
    with pytest.raises(ImportRefused) as caught:
        find_trials(tmp_path / "x")
    assert caught.value.slug == "corrupt"


def test_a_text_that_only_speaks_of_aider_is_not_taken_for_a_history(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("# Notes\n\n# aider chat started at 2026-05-04 10:00:00\n")
    with pytest.raises(ImportRefused) as caught:
        find_trials(tmp_path / "x.md")
    assert caught.value.slug == "not-recognised"


def test_a_file_without_a_session_holds_no_trial(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    assert list(Aider().list_trials(tmp_path / "x")) == []
