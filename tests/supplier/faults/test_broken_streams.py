import pytest

from pytest_regcase import registry
from pytest_regcase.supplier.faults.silences import BEGUN_TEXT
from tests.supplier.faults.conftest import FaultyService

WIRES = sorted(registry.names("wires"))


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_without_end_is_a_whole_answer_with_the_text_and_no_finish(
    faulty: FaultyService, wire: str
) -> None:
    with faulty.serving.client() as client:
        asked = faulty.ask(client, "stream_without_end", wire, streaming=True)
        answer = client.response()
    read = registry.load("wires", wire)().read_answer(answer.body, True)
    assert (read.text, read.finish, read.error) == (BEGUN_TEXT, None, None)
    sent = faulty.sent(asked)
    assert (sent["complete"], sent["unfinished"], sent["text"]) == (True, True, BEGUN_TEXT)


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_event_follows_the_text(faulty: FaultyService, wire: str) -> None:
    answer = faulty.meet("mid_stream_error", wire=wire, streaming=True, message="own words")
    read = registry.load("wires", wire)().read_answer(answer.body, True)
    assert (answer.status, read.text, read.finish) == (200, BEGUN_TEXT, None)
    assert read.error
    assert answer.body.index(b"The failing test") < answer.body.rindex(b"own words")


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_event_may_be_the_first(faulty: FaultyService, wire: str) -> None:
    answer = faulty.meet("mid_stream_error", wire=wire, streaming=True, text="")
    read = registry.load("wires", wire)().read_answer(answer.body, True)
    assert (answer.status, read.text, answer.headers["content-type"]) == (
        200,
        None,
        "text/event-stream; charset=utf-8",
    )
    assert read.error


@pytest.mark.parametrize("wire", WIRES)
def test_a_client_that_lets_go_at_the_error_has_the_whole_answer(faulty: FaultyService, wire: str) -> None:
    """Many do; an end of the body that came a moment later would never be acknowledged."""
    for _ in range(20):
        with faulty.serving.client() as client:
            asked = faulty.ask(client, "mid_stream_error", wire, streaming=True)
            read = b""
            while b"verloaded" not in read:  # in the error alone
                data = client.socket.recv(65536)
                assert data, f"the connection ended after {read!r}"
                read += data
        closed = faulty.closed(asked)
        assert (closed["by"], closed["unacknowledged"]) == ("peer", 0)
