import pytest

from pytest_regcase.records.wire import Delivery
from pytest_regcase.supplier.faults.gateway_timeout import GatewayTimeout, Settings
from tests.supplier.faults.conftest import FaultyService


@pytest.mark.parametrize(
    ("gateway", "status", "says"),
    [("nginx", 504, b"<center>nginx</center>"), ("cloudflare", 524, b"A timeout occurred")],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_the_page_is_the_gateways_own(
    gateway: str, status: int, says: bytes, streaming: bool, faulty: FaultyService
) -> None:
    answer = faulty.meet("gateway_timeout", gateway=gateway, streaming=streaming)
    assert (answer.status, answer.headers["server"]) == (status, gateway)
    assert answer.headers["content-type"].startswith("text/html")
    assert says in answer.body
    # The request never came back from the provider: nothing of it is in the answer.
    assert "x-request-id" not in answer.headers
    assert ("cf-ray" in answer.headers) == (gateway == "cloudflare")
    declared = GatewayTimeout(Settings(gateway=gateway)).declares("openai-chat", streaming)  # type: ignore[arg-type]
    assert declared == Delivery(answer="complete", status=status, then="answered")


def test_the_page_comes_after_the_pause(faulty: FaultyService) -> None:
    with faulty.serving.client() as client:
        asked = faulty.ask(client, "gateway_timeout", "openai-chat", pause_seconds=0.1)
        assert client.response().status == 504
    # Both moments are rounded.
    assert faulty.sent(asked)["first_byte"] - faulty.request(asked)["t"] > 0.099


def test_a_client_that_lets_go_during_the_pause_gets_nothing(faulty: FaultyService) -> None:
    with faulty.serving.client() as client:
        asked = faulty.ask(client, "gateway_timeout", "openai-chat", pause_seconds=60.0)
        assert client.hears_nothing_for(0.05)
    closed = faulty.closed(asked)
    assert (closed["by"], closed["how"]) == ("peer", "fin")
    of_it = [each["event"] for each in faulty.serving.events() if each.get("request") == closed["request"]]
    assert of_it == ["request", "closed"]
