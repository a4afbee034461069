from pytest_regcase.recovery.stack_traces import without_frames

PLAIN = """before
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    f()
    ^^^
openai.APIConnectionError: Connection error.
after"""
CHAINED = """Traceback (most recent call last):
  File "a.py", line 1, in f
    g()
ConnectionRefusedError: [Errno 111] Connection refused

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 2, in h
    raise E from err
openai.APIConnectionError: Connection error."""
BOXED = """╭─────── Traceback (most recent call last) ───────╮
│ /x/y.py:3 in f                                   │
│ ❱ 3 raise E                                      │
╰──────────────────────────────────────────────────╯
AuthenticationError: no"""


def test_frames_are_left_out_and_what_was_raised_stays() -> None:
    assert without_frames(PLAIN) == "before\nopenai.APIConnectionError: Connection error.\nafter"


def test_of_a_chain_only_the_last_stays() -> None:
    assert without_frames(CHAINED) == "openai.APIConnectionError: Connection error."


def test_a_boxed_traceback_is_one_too() -> None:
    assert without_frames(BOXED) == "AuthenticationError: no"


def test_two_tracebacks_that_are_no_chain_both_stay() -> None:
    assert without_frames(f"{PLAIN}\n{PLAIN}").count("Connection error.") == 2


def test_a_message_of_several_lines_stays_whole() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1\nE: one\ntwo\n\nnext'
    assert without_frames(text) == "E: one\ntwo\n\nnext"


def test_a_text_without_one_and_one_that_is_cut_off_are_no_error() -> None:
    assert without_frames("  indented\nplain") == "  indented\nplain"
    assert without_frames('Traceback (most recent call last):\n  File "a.py", line 1') == ""
