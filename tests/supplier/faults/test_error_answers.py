import json
from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.records.wire import Delivery, NotApplicable
from tests.supplier.faults.conftest import REQUESTS, FaultyService

WIRES = sorted(registry.names("wires"))
ANTHROPIC = "anthropic-messages"
TABLE: list[tuple[str, dict[str, Any], int, str]] = [
    # kind, settings, status, slug of the body
    ("key_rejected", {}, 401, "key_rejected"),
    ("key_expired", {}, 401, "key_expired"),
    ("key_expired", {"status": 403}, 403, "key_expired"),
    ("permission_denied", {}, 403, "permission_denied"),
    ("quota_exhausted", {}, 429, "quota_exhausted"),
    ("budget_exceeded", {}, 402, "payment_required"),
    ("budget_exceeded", {"status": 400}, 400, "budget_exceeded"),
    ("budget_exceeded", {"status": 422}, 422, "budget_exceeded"),
    ("budget_exceeded", {"status": 429}, 429, "budget_exceeded"),
    ("model_loading", {}, 503, "loading"),
    ("service_unavailable", {}, 503, "service_unavailable"),
    ("context_too_long", {}, 400, "context_too_long"),
    ("content_filtered", {}, 400, "content_filtered"),
    ("rate_limited", {}, 429, "rate_limited"),
]


def fault_of(kind: str, **settings: Any) -> Any:
    cls = registry.load("faults", kind)
    return cls(cls.settings_model(**settings))


def worded(wire: str, status: int, slug: str, message: str | None = None) -> Any:
    return json.loads(registry.load("wires", wire)().render_error(status, slug, message))["error"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("kind", "settings", "status", "slug"), TABLE)
def test_the_answer_has_the_status_and_the_words_of_the_wire(
    kind: str, settings: dict[str, Any], status: int, slug: str, wire: str, faulty: FaultyService
) -> None:
    for streaming in (False, True):
        answer = faulty.meet(kind, wire=wire, streaming=streaming, **settings)
        assert (answer.status, answer.json["error"]) == (status, worded(wire, status, slug))
        declared = fault_of(kind, **settings).declares(wire, streaming)
        assert declared == Delivery(answer="complete", status=status, then="answered")


@pytest.mark.parametrize("wire", WIRES)
def test_an_overloaded_provider_has_a_status_of_its_own_on_one_wire(wire: str, faulty: FaultyService) -> None:
    status = 529 if wire == ANTHROPIC else 503
    answer = faulty.meet("overloaded", wire=wire)
    assert (answer.status, answer.json["error"]) == (status, worded(wire, status, "overloaded"))
    assert fault_of("overloaded").declares(wire, False).status == status


def test_a_low_credit_is_told_so_by_one_api_only(faulty: FaultyService) -> None:
    fault = fault_of("credit_too_low")
    for wire in {*REQUESTS, "some-other-wire"} - {ANTHROPIC}:
        declared = fault.declares(wire, False)
        assert isinstance(declared, NotApplicable)
        assert wire in declared.reason
    assert fault.declares(ANTHROPIC, True) == Delivery(answer="complete", status=400, then="answered")
    answer = faulty.meet("credit_too_low", wire=ANTHROPIC)
    assert (answer.status, answer.json["error"]) == (400, worded(ANTHROPIC, 400, "credit_too_low"))


@pytest.mark.parametrize(
    ("kind", "status", "slug"),
    [
        ("server_out_of_memory", 500, "server_out_of_memory"),
        ("budget_exceeded", 402, "payment_required"),
        ("rate_limited", 429, "rate_limited"),
        ("context_too_long", 400, "context_too_long"),
    ],
)
def test_a_message_replaces_the_words_and_nothing_else(
    kind: str, status: int, slug: str, faulty: FaultyService
) -> None:
    answer = faulty.meet(kind, message="In our own words.")
    assert answer.json["error"] == worded("openai-chat", status, slug, "In our own words.")
    assert answer.json["error"]["message"] == "In our own words."


def test_an_accelerator_out_of_memory_is_told_as_pytorch_tells_it(faulty: FaultyService) -> None:
    answer = faulty.meet("server_out_of_memory")
    assert answer.status == 500
    assert answer.json["error"]["message"].startswith("CUDA out of memory. Tried to allocate")


def test_an_error_names_its_request(faulty: FaultyService) -> None:
    assert "x-request-id" in faulty.meet("key_rejected").headers
