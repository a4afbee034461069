"""One supplier for all tests of this folder: each request names the fault that it is to meet."""

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.records.wire import WireEvent
from pytest_regcase.supplier.inject import wire_entries
from pytest_regcase.supplier.spec import FaultSpec
from tests.conftest import REPOSITORY
from tests.supplier.faults.any_fault import ENTRY, model_for
from tests.supplier.serving import RawClient, Response, Serving

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": ("chat/completions", {"messages": [{"role": "user", "content": "Fix it."}]}),
    "openai-responses": ("responses", {"input": "Fix it."}),
    "anthropic-messages": ("messages", {"messages": [{"role": "user", "content": "Fix it."}], "max_tokens": 9}),
}
"""The path and the least body of a model request on each wire."""


class FaultyService:
    """Sends requests that meet the fault they name."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self._asked = 0

    def ask(self, client: RawClient, kind: str, wire: str, *, streaming: bool = False, **settings: Any) -> str:
        """Send a request and do not wait. Returns the digest of its body, which no other request has."""
        self._asked += 1
        path, body = REQUESTS[wire]
        model = model_for(registry.names("faults")[kind].value, settings, note=str(self._asked))
        data = json.dumps({"model": model, "stream": streaming, **body}).encode()
        client.post(data, path=f"{self.serving.path}/{path}")
        return "sha256:" + hashlib.sha256(data).hexdigest()

    def sent(self, body_digest: str) -> WireEvent:
        """Return the `sent` event of that request, once it is there: connections of other tests end meanwhile."""
        self.serving.wait_for(lambda: bool(self._sent(body_digest)))
        return self._sent(body_digest)[0]

    def closed(self, body_digest: str) -> WireEvent:
        """Return the `closed` event of that request's connection, once it is there."""
        self.serving.wait_for(lambda: bool(self._closed(body_digest)))
        return self._closed(body_digest)[0]

    def request(self, body_digest: str) -> WireEvent:
        """Return the `request` event of that request, once it is there."""
        self.serving.wait_for(lambda: bool(self._requests(body_digest)))
        return self._requests(body_digest)[0]

    def _closed(self, body_digest: str) -> list[WireEvent]:
        numbers = {each["conn"] for each in self._requests(body_digest)}
        return [each for each in self.serving.events() if each["event"] == "closed" and each["conn"] in numbers]

    def _requests(self, body_digest: str) -> list[WireEvent]:
        return [each for each in self.serving.events() if each.get("body_digest") == body_digest]

    def _sent(self, body_digest: str) -> list[WireEvent]:
        events = self.serving.events()
        numbers = {each["request"] for each in events if each.get("body_digest") == body_digest}
        return [each for each in events if each["event"] == "sent" and each["request"] in numbers]

    def meet(self, kind: str, *, wire: str = "openai-chat", streaming: bool = False, **settings: Any) -> Response:
        """Return the whole answer of that fault."""
        with self.serving.client() as client:
            self.ask(client, kind, wire, streaming=streaming, **settings)
            return client.response()


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyService]:
    """A supplier on all wires whose fault is the one that the model name of a request asks for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPOSITORY), prepend=os.pathsep)
        fault = FaultSpec("any_fault", ENTRY, at_step=1)
        serving = Serving(tmp_path_factory.mktemp("faulty"), wires=wire_entries(), fault=fault)
    with serving:
        yield FaultyService(serving)
