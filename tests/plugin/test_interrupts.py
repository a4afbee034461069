"""What is left of SIGTERM after a gate run; an interruption itself is one of the ways of test_left_out.py."""

import signal
from types import FrameType

from tests.plugin.gate_project import GateProject


def test_the_handler_of_before_is_put_back(project: GateProject) -> None:
    def mine(number: int, frame: FrameType | None) -> None:
        """Stand for the handler of a program that calls pytest."""

    project.add_case("trial-1", [])
    before = signal.signal(signal.SIGTERM, mine)
    try:
        assert project.run().ret == 0
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)
