from pytest_regcase.records.wire import Difference
from pytest_regcase.recovery.differences import told


def of(kind: str, *says: str) -> list[Difference]:
    return [Difference(kind=kind, says=each) for each in says]


def test_each_kind_is_one_sentence() -> None:
    assert told(of("tool-result", "a")) == ("1 tool result differs from the recording",)
    assert told(of("tool-result", "a", "b")) == ("2 tool results differ from the recording",)
    assert told(of("forgotten-step", "a")) == ("the agent no longer shows the calls of 1 earlier step",)
    assert told(of("forgotten-step", "a", "b")) == ("the agent no longer shows the calls of 2 earlier steps",)
    assert told(of("asked-again", "a")) == ("1 step was asked for more than once",)
    assert told(of("asked-again", "a", "b")) == ("2 steps were asked for more than once",)
    assert told(of("tools", "the agent offers x", "the agent no longer offers y")) == (
        "the agent offers x",
        "the agent no longer offers y",
    )


def test_the_order_is_fixed_and_what_followed_the_fault_is_no_drift() -> None:
    mixed = [*of("tool-result", "r"), *of("not-followed", "n"), *of("tools", "t"), *of("tool-result", "s")]
    assert told(mixed) == ("t", "2 tool results differ from the recording")
    assert told(of("not-followed", "n")) == ()
    assert told([]) == ()
