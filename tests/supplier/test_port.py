"""What a probe of a port says, met on real sockets."""

import socket

import pytest

from pytest_regcase.supplier.port import bound_socket, try_connect


def test_a_port_that_nobody_listens_on_is_refused() -> None:
    with bound_socket() as held:
        assert try_connect(held.getsockname()[1]) == "refused"


def test_a_listener_takes_the_connection() -> None:
    with bound_socket() as listener:
        listener.listen()
        assert try_connect(listener.getsockname()[1]) == "accepted"


def test_silence_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_regcase.supplier.port._PROBE_SECONDS", 0.05)
    with bound_socket() as listener:
        listener.listen(0)
        port = listener.getsockname()[1]
        # One is taken by the kernel; whoever comes behind the full queue hears nothing.
        with socket.create_connection(("127.0.0.1", port)):
            assert try_connect(port) == "unclear"


def test_a_connection_that_was_taken_and_reset_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener that goes between the handshake and the client's look at it: one in many thousand connects."""

    def connect(self: socket.socket, address: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr("socket.socket.connect", connect)
    assert try_connect(1) == "accepted"
