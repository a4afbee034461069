from pathlib import Path

from pytest_regcase.supplier.inject import fault_spec
from tests.supplier.cells import is_refused, simulation
from tests.supplier.serving import Serving

ASK = [{"role": "user", "content": "Fix it."}]


def test_a_dead_engine_answers_500_without_a_body_and_nobody_listens_any_more(tmp_path: Path) -> None:
    spec = fault_spec(simulation("engine_dead"), failing_step=1)
    with Serving(tmp_path, fault=spec) as serving, serving.client() as client:
        answer = client.chat(ASK)
        assert (answer.status, answer.body) == (500, b"")
        assert answer.headers["connection"] == "close"
        assert client.rest() == b""
        assert is_refused(serving.port)


def test_idle_connections_end_when_the_port_is_closed(tmp_path: Path) -> None:
    spec = fault_spec(simulation("connection_refused"), failing_step=1)
    with Serving(tmp_path, fault=spec) as serving, serving.client() as idle:
        assert idle.get(f"{serving.path}/models").status == 200
        with serving.client() as client:
            client.ask(ASK)
            assert idle.rest() == b""
        events = serving.stop()
    refusing = next(each for each in events if each["event"] == "refusing")
    assert refusing["connect"] == "refused"
    ends = {each["conn"]: (each["by"], each["how"]) for each in events if each["event"] == "closed"}
    assert ends == {1: ("us", "fin"), 2: ("us", "rst")}
