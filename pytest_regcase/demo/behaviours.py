"""The demo agent, broken in one way or a mix each: what a check of recovery must notice.

Each class overrides hooks of `DemoAgent` and nothing else; which findings it breaks is not said here but shown by
running it.

    python -m pytest_regcase.demo.behaviours NAME --task FILE --out DIR
"""

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pytest_regcase.demo.agent import COMMAND_SECONDS, DemoAgent, main, say
from pytest_regcase.demo.chat import Call, Message, Reply, SupplierFailure
from pytest_regcase.demo.tools import run_command

MANY_RETRIES = 8
MADE_UP_ANSWER = "All functions were reviewed and corrected, and every test of the suite passes now."


class Swallow(DemoAgent):
    """A wrapper turns every failure into None, and the loop takes None for "nothing more to do"."""

    def note_failed_call(self, failure: SupplierFailure, step: int) -> None:
        """Tell nobody."""

    def give_up(self, failure: SupplierFailure) -> int:  # noqa: ARG002 - swallowing it is the point
        """Hand in the half-done work with an empty answer, as finished."""
        return self.hand_in("")


class RetryForEver(DemoAgent):
    """Asks again after any failure, without an end."""

    def may_retry(self, failure: SupplierFailure, retries: int) -> bool:  # noqa: ARG002
        """Always try once more."""
        return True


class MakeUpAnswer(DemoAgent):
    """Writes an answer of its own where the model gave none. It still says that the run failed."""

    def give_up(self, failure: SupplierFailure) -> int:
        """Record an invented reply and hand its text in."""
        say(f"step {self.step}: going on without the model")
        self.log.reply(self.step, Reply(text=MADE_UP_ANSWER, finish="stop", model=self.settings.model), ())
        self.log.submission(text=MADE_UP_ANSWER, patch=None)
        return super().give_up(failure)


class SubmitPartial(DemoAgent):
    """Hands in whatever lies in the work tree. It still says that the run failed."""

    def give_up(self, failure: SupplierFailure) -> int:
        """Hand in the half-done work."""
        self.log.submission(text=None, patch=self.patch())
        return super().give_up(failure)


class LogNothing(DemoAgent):
    """Fails without a word: the exit code is all there is."""

    def note_failed_call(self, failure: SupplierFailure, step: int) -> None:
        """Tell nobody."""

    def give_up(self, failure: SupplierFailure) -> int:  # noqa: ARG002
        """Leave."""
        return 1


class ExitZeroUnmarked(DemoAgent):
    """Logs the failed calls, then ends as if all were well."""

    def give_up(self, failure: SupplierFailure) -> int:  # noqa: ARG002
        """Keep the patch, hand in nothing, and call that finished."""
        self.keep_partial_patch()
        self.log.end("finished")
        return 0


class NoClientTimeOut(DemoAgent):
    """Waits for its model for ever."""

    def request_timeout_seconds(self) -> float | None:
        """Set no limit."""
        return None


class RetryTooOften(DemoAgent):
    """Asks eight times more after any failure, a refused key included, then gives up in good order."""

    def may_retry(self, failure: SupplierFailure, retries: int) -> bool:  # noqa: ARG002
        """Go on until the number is reached."""
        return retries < MANY_RETRIES

    def pause_seconds(self, retries: int) -> float:  # noqa: ARG002
        """Wait hardly at all."""
        return 0.01


class AcceptEmptyAnswer(DemoAgent):
    """Takes an answer with nothing in it for the model's last word, and hands in what lies there."""

    def give_up(self, failure: SupplierFailure) -> int:
        """Finish where the answer was empty; any other failure is handled as it should be."""
        if failure.kind != "EmptyAnswerError":
            return super().give_up(failure)
        self.log.reply(self.step, Reply(text="", finish="stop", model=self.settings.model), ())
        return self.hand_in("")

    def note_failed_call(self, failure: SupplierFailure, step: int) -> None:
        """See nothing wrong with an empty answer."""
        if failure.kind != "EmptyAnswerError":
            super().note_failed_call(failure, step)


class CommitPartial(DemoAgent):
    """Leaves the half-done work in a commit. It still says that the run failed."""

    def give_up(self, failure: SupplierFailure) -> int:
        """Commit whatever lies in the work tree."""
        git = "git -c user.name=demo -c user.email=demo@example.invalid"
        run_command(
            f"git add --all && {git} commit -qm 'work in progress'", self.settings.work_dir, COMMAND_SECONDS
        )
        return super().give_up(failure)


class LosePartial(DemoAgent):
    """Cleans up after itself: nobody can see any more how far it had come."""

    def give_up(self, failure: SupplierFailure) -> int:
        """Put the work tree back as it was, then end as it should."""
        run_command("git checkout -q -- . && git clean -qfd", self.settings.work_dir, COMMAND_SECONDS)
        return super().give_up(failure)


class RepeatSideEffects(DemoAgent):
    """Does its last step once more before it asks again, whatever that step changed."""

    def ask_again(self, messages: Sequence[Message]) -> None:
        """Run the calls of the last reply a second time."""
        last = next((each for each in reversed(messages) if each["role"] == "assistant"), {})
        for each in last.get("tool_calls") or ():
            call = Call(each["id"], each["function"]["name"], each["function"]["arguments"])
            result, _ = self.run_call(call)
            self.log.tool_result(self.step - 1, call.id, result)


BEHAVIOURS: Mapping[str, type[DemoAgent]] = MappingProxyType(
    {
        "swallow": Swallow,
        "retry-for-ever": RetryForEver,
        "make-up-answer": MakeUpAnswer,
        "submit-partial": SubmitPartial,
        "log-nothing": LogNothing,
        "exit-zero-unmarked": ExitZeroUnmarked,
        "no-client-time-out": NoClientTimeOut,
        "retry-too-often": RetryTooOften,
        "accept-empty-answer": AcceptEmptyAnswer,
        "commit-partial": CommitPartial,
        "lose-partial": LosePartial,
        "repeat-side-effects": RepeatSideEffects,
    }
)
"""By the name that the command line takes."""


def run(argv: Sequence[str]) -> int:
    """Run the behaviour that the first word names; the rest is the demo agent's command line."""
    if not argv or argv[0] not in BEHAVIOURS:
        found = f"{argv[0]!r} is none" if argv else "no name is given"
        print(f"Couldn't run a behaviour: {found}.\nUse one of {', '.join(BEHAVIOURS)}.", file=sys.stderr)
        return 2
    return main(argv[1:], BEHAVIOURS[argv[0]])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
