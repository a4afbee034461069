"""The command line: one file a command. Prints what the stages return; decides nothing, and never imports pytest.

A command's module, and what it needs, loads when the command is called: `regcase --help` needs click alone.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

import click

from pytest_regcase.cli.words import Commands
from pytest_regcase.errors import RegcaseError

GROUPS = {
    "Every day": {
        "init": "Set a project up for an agent under test.",
        "doctor": "Check that an agent can be tested.",
        "new": "Make a case from a failed trial, or cases from a whole sweep.",
        "seal": "Seal the observation of a case written by hand.",
        "list": "List all cases with their states and owners.",
        "show": "Show a case, or every tool call that its replies drive.",
        "redact": "Remove a secret found in a case after it was written.",
    },
    "A fix": {
        "fix": "Claim a fix of a case: live reruns count from here.",
        "count": "Count the trials of a sweep as live runs of a case.",
        "close": "Close a case whose rerun rule is met, with its numbers.",
        "reopen": "Say that a case is not fixed after all.",
        "retire": "Take a case out of service; its file stays.",
        "amend": "Change something sealed or guarded of a case, and say why.",
        "history": "Tell the story of a case: who, when, why, and what ran.",
        "rule": "Say how many clean live runs close a case, and what they show.",
    },
    "Investigate": {
        "handover": "Hand a case over to someone who was not there.",
        "simulations": "List the simulations that cases can name.",
        "serve": "Start a supplier by hand, for any client in any language.",
        "compare": "Say which lines of server and kernel logs bear on a hypothesis.",
        "fingerprints": "Say what must be logged to tell each kind of cause apart.",
        "evidence": "Cite lower-level evidence in a case, or withdraw it.",
    },
    "CI": {
        "gate": "Decide over what pytest left in the ledger, over all shards.",
        "check": "Find what is wrong in case files, or looser than before.",
        "promote": "Make a revision that passed as a candidate the active one.",
        "ledger": "Look into the ledger, export, import, merge and prune it.",
        "quarantine": "Say which cases are too flaky to gate, and which may come back.",
        "scan": "Say which known failures came back in a sweep.",
        "budget": "Say how often cases may flake so that a suite stays green.",
        "schema": "Print the JSON Schema of a kind of file.",
    },
    "Recorder": {
        "run": "Run an agent on tasks; no crash loses a record.",
        "summary": "Say what became of every task of a run.",
    },
}
"""What one comes for -> command name -> its line in the overview."""

COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}
"""Every command, once. Each lives in the module of its name, under its name."""

INTERRUPTED = 130
READER_LEFT = 141
"""As a shell reports SIGPIPE: what was to be said is not known to have been read, so it is no 0."""
OWN_FAILURE = 4
USAGE = 2

_ELSEWHERE = {"list": "list_cases"}
"""Commands whose module has another name: a module `list` here would take the place of Python's own."""

_LONGEST_NAME = max(map(len, COMMANDS))


class _Lazy(Commands):
    """A group that knows its commands by name and loads one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        name = _ELSEWHERE.get(cmd_name, cmd_name)
        command = getattr(import_module(f"pytest_regcase.cli.{name}"), name)
        return command if isinstance(command, click.Command) else None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Python would complain once more when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(READER_LEFT) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(_LONGEST_NAME), line) for name, line in commands.items()])


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="""\b
Example:
  regcase init --harness python
  regcase doctor
  regcase new --from-trial runs/trial-37
  pytest --regcase
""",
)
@click.version_option(package_name="pytest-regcase", prog_name="regcase")
def regcase() -> None:
    """Turn one failed agent trial into a regression case that stays honest.

    Exit codes: 0 done; 1 something is wrong with what was checked; 2 usage, or refused; 3 unproven; 4 our own
    failure; 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a failure is one block on stderr, never a traceback.

    REGCASE_TRACEBACK=1 shows the traceback of our own failures, for a bug report.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # What a terminal or a locale cannot show must not end a command that has done its work.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = regcase.main(
            args=list(arguments) if arguments is not None else None, prog_name="regcase", standalone_mode=False
        )
    except RegcaseError as error:
        _complain(error.text)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _complain("Interrupted.")
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return USAGE
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else OWN_FAILURE if error.code else 0
    except OSError as error:
        return _own_failure(
            error, f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        )
    except Exception as error:
        return _own_failure(error, f"{type(error).__name__}: {error}")
    return code if isinstance(code, int) else 0


def _own_failure(error: Exception, says: str) -> int:
    if os.environ.get("REGCASE_TRACEBACK"):
        traceback.print_exception(error)
    _complain(f"Couldn't finish: {says}.\nThis is a failure of regcase, not of your case or agent.")
    return OWN_FAILURE


def _complain(text: str) -> None:
    click.echo(text, err=True)
