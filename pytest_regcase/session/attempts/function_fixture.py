"""What a test function marked `regcase` gets: one attempt, with the fields of an `AgentRequest`.

Asking for a place or an address makes it: a function that asks for nothing costs no supplier.
"""

from pathlib import Path

from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.trial import Trial
from pytest_regcase.session.attempts.function_attempt import FunctionAttempt


class RegcaseFixture:
    """The fixture `regcase`: one attempt at the case that the mark names."""

    def __init__(self, attempt: FunctionAttempt) -> None:
        self._attempt = attempt

    @property
    def task(self) -> str:
        """What the agent is asked to do; where the case holds no text, one that says so."""
        return self._attempt.task

    @property
    def task_id(self) -> str:
        """The recorded task's id, else the case's."""
        return self._attempt.task_id

    @property
    def work_dir(self) -> Path:
        """The files that the agent works on; a git repository with one commit where the case has a work tree."""
        return self._attempt.work_dir()

    @property
    def out_dir(self) -> Path:
        """An empty folder of this attempt for the agent's log and answer."""
        return self._attempt.out_dir()

    @property
    def openai_base_url(self) -> str:
        """The stand-in supplier, with the ``/v1`` that OpenAI clients expect; live: the way to the real one."""
        return self._attempt.openai_base_url()

    @property
    def anthropic_base_url(self) -> str:
        """The same supplier for clients that add ``/v1`` themselves."""
        return self._attempt.anthropic_base_url()

    @property
    def api_key(self) -> str:
        """A throw-away key. No real one ever stands here."""
        return self._attempt.api_key

    @property
    def model(self) -> str:
        """The model to ask for: that of the case's agent, else a name that nobody has."""
        return self._attempt.model

    @property
    def scenario(self) -> str:
        """``control``, ``live``, or the simulation's id."""
        return self._attempt.scenario

    @property
    def simulation(self) -> Simulation | None:
        """The simulation of this attempt; None for control and live."""
        return self._attempt.simulation

    def attach(self, what: Path | str | Trial) -> None:
        """Hand in what came out: the path of a log that an importer reads, or a `Trial`. Once an attempt.

        The path is read when the function has ended.

        Raises:
            UsageRefused: something is attached already, or it is neither.
        """
        self._attempt.attach(what)
