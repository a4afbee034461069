import pytest

from pytest_regcase.supplier.spec import ClosingReply, PassThrough, SupplierSpec, new_token
from tests.supplier.serving import TWO_STEPS, call, fault


def test_a_specification_survives_its_json() -> None:
    spec = SupplierSpec(
        wire_log="/x/wire.jsonl",
        t0=1.25,
        token=new_token(),
        lines=TWO_STEPS,
        lines_from="script",
        failing_step=3,
        task_text="Bücher",
        fault=fault("empty_answer", at_step=3, lasts=2, settings={"finish": "length"}),
        after_fault=TWO_STEPS[1:2],
        closing_reply=ClosingReply(None, (call("x"),)),
        pass_through=PassThrough("http://x/v1", api_key_env="KEY"),
        reach="docker",
        addresses=("127.0.0.1", "172.17.0.1"),
        port=7,
    )
    assert SupplierSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"lines": [], "nonsense": 1}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        SupplierSpec.from_json(text)


def test_tokens_differ() -> None:
    assert new_token() != new_token()


def test_a_text_that_was_cut_within_a_character_can_be_told() -> None:
    spec = SupplierSpec(wire_log="w", t0=0.0, token="t", lines=({"role": "user", "text": "half: \ud83d"},))
    assert SupplierSpec.from_json(spec.to_json().encode().decode()) == spec
