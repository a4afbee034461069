"""The demo agent's client by itself, in this process."""

import http.client

import pytest

from pytest_regcase.demo.chat import ChatClient
from tests.demo.scripted_supplier import ScriptedSupplier, says

_read1 = http.client.HTTPResponse.read1


def _as_from_3_13_on(self: http.client.HTTPResponse, n: int = -1) -> bytes:
    part = _read1(self, n)
    if self.length == 0:
        self.close()
    return part


@pytest.mark.parametrize("closes_at_once", [False, True])
def test_the_end_of_the_body_may_close_the_socket(monkeypatch: pytest.MonkeyPatch, closes_at_once: bool) -> None:
    if closes_at_once:
        monkeypatch.setattr(http.client.HTTPResponse, "read1", _as_from_3_13_on)
    with ScriptedSupplier([says("done")]) as supplier:
        client = ChatClient(base_url=supplier.base_url, api_key="sk-test", model="m", timeout_seconds=20.0)
        assert client.complete([{"role": "user", "content": "Go on."}], []).text == "done"
