"""`regcase gate`: decides over the sessions that ledgers hold. Prints the decision; runs nothing."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import GivenPath, OneOf, Words, wrapped

if TYPE_CHECKING:
    from pytest_regcase.config import Project
    from pytest_regcase.ledger.store import Ledger
    from pytest_regcase.records.decision import GateDecision
    from pytest_regcase.records.words import Profile
    from pytest_regcase.session.candidates.candidate import CandidateAnswer
    from pytest_regcase.session.gating.gate_over import GateAnswer

EXIT_CODES = {"pass": 0, "fail": 1, "unproven": 3}


@click.command(
    epilog="""\b
Example:
  regcase gate
  regcase gate --ledger shard-1.sqlite3 --ledger shard-2.sqlite3
  regcase gate --profile release --json
  regcase gate --candidate HEAD
"""
)
@click.option(
    "--ledger",
    "places",
    multiple=True,
    metavar="PLACE",
    help="A ledger: a file, or a URL. Several count as one.  [default: the project's]",
)
@click.option(
    "--profile",
    type=OneOf(["pull-request", "nightly", "release"]),
    help="What is red; of the sessions in that profile.  [default: the newest session's]",
)
@click.option(
    "--candidate",
    "revision",
    type=Words(),
    metavar="REV",
    help="Decide on this revision of the agent, and keep the decision for `regcase promote`.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout: the decision.")
@click.option(
    "--report",
    "reports",
    multiple=True,
    type=GivenPath(dir_okay=False, path_type=Path),
    help="Write decision and attempts to a file as well; its suffix says how.",
)
def gate(
    places: tuple[str, ...], profile: str | None, revision: str | None, as_json: bool, reports: tuple[Path, ...]
) -> None:
    """Decide over what pytest left in the ledger: the newest session of this checkout.

    Where that was one of several shards, over all shards of its run. Every case of the project has to be covered;
    a shard or a CI run that left no session, and a session without an end, are unproven: a process that exits by
    itself cannot say so. release looks, for each case, at the newest session of the present agent. Nothing is run.

    --candidate decides over the newest session of REV instead: a digest, at least 7 digits of one, or a git
    revision that a session was run on. That decision is kept whatever it is, in the ledger and in a file.

    Exit codes: 0 pass; 1 fail; 2 usage; 3 unproven; 4 the ledger cannot be read.
    """
    from typing import cast

    from pytest_regcase.case_files import writing
    from pytest_regcase.config import load_project
    from pytest_regcase.reporters.report_file import ReportFile
    from pytest_regcase.session.gating.gate_over import gate_over, one_ledger

    files = [ReportFile(each, "--report") for each in reports]
    project = load_project(Path.cwd())
    with one_ledger(project, places) as found:
        if revision is None:
            kept, answer = None, gate_over(project, found, profile=cast("Profile | None", profile))
        else:
            kept = _candidate(project, found, places, revision, cast("Profile | None", profile))
            answer = kept.answer
    for line in _sessions(answer):
        click.echo(wrapped(line, first=""), err=as_json)
    if as_json:
        click.echo(json.dumps(answer.decision.to_plain(), indent=2, sort_keys=True))
    else:
        _show(answer.decision, answer)
    if kept is not None:
        _kept(kept, as_json=as_json)
    _tell_github(project, answer, as_json=as_json)
    # Last: a file that cannot be written takes nothing from what was said.
    for file in files:
        with writing(file.path):
            file.write(answer.decision, answer.attempts)
    raise SystemExit(EXIT_CODES[answer.decision.decision])


def _candidate(
    project: "Project", ledger: "Ledger", places: tuple[str, ...], name: str, profile: "Profile | None"
) -> "CandidateAnswer":
    from pytest_regcase.errors import UsageRefused
    from pytest_regcase.session.candidates.candidate import decide_candidate
    from pytest_regcase.session.revisions.versions import find_revision

    if len(places) > 1:
        raise UsageRefused(
            "Couldn't decide on a candidate over several ledgers: one has to keep the decision.\n"
            "Bring them together first: regcase ledger merge LEDGER..."
        )
    revision = find_revision(project, ledger, name)
    for notice in revision.notices:
        click.echo(wrapped(f"note: {notice}", first=""), err=True)
    return decide_candidate(project, ledger, revision, profile=profile)


def _kept(kept: "CandidateAnswer", *, as_json: bool) -> None:
    """Say where the decision is kept, and what it is good for."""
    from pytest_regcase.session.revisions.versions import shown_digest
    from pytest_regcase.toml_lines import shown

    assert kept.decided.revision is not None
    name = shown_digest(kept.decided.revision)
    click.echo("", err=as_json)
    click.echo(wrapped(f"decided on {name}, kept in the ledger and in {shown(kept.file)}", first=""), err=as_json)
    if kept.decided.decision.decision == "pass":
        click.echo(f"To make it the active one: regcase promote {name}", err=as_json)
    else:
        click.echo("It changes nothing; what is active stays active.", err=as_json)


def _tell_github(project: "Project", answer: "GateAnswer", *, as_json: bool) -> None:
    """Annotate and summarise, but for the one whole session of this very CI run: its pytest did it."""
    from pytest_regcase.session.gating.github_actions import GitHubActions
    from pytest_regcase.session.planning.opening import chosen_files, load_entries, run_id

    actions = GitHubActions.found_in(os.environ)
    told = [
        each
        for each in answer.sessions
        if each.run_id == run_id() and each.shard is None and each.finished_at is not None
    ]
    if actions is None or (len(told) == len(answer.sessions) == 1 and told[0].profile == answer.decision.profile):
        return
    trouble = actions.add_summary(answer.decision, answer.attempts)
    if trouble is not None:
        click.echo(wrapped(trouble, first=""), err=True)
    cases = [each.loaded for each in load_entries(chosen_files(project, None)) if each.loaded is not None]
    # The runner reads commands on stderr too.
    for line in actions.annotations(answer.decision, cases):
        click.echo(line, err=as_json)


def _show(decision: "GateDecision", answer: "GateAnswer") -> None:
    from pytest_regcase.reporters.terminal import summary_lines

    click.echo("")
    for line in summary_lines(decision, answer.attempts):
        click.echo(line)


def _sessions(answer: "GateAnswer") -> Iterator[str]:
    """Say which sessions were read, and what of each is worth knowing."""
    from pytest_regcase.session.revisions.versions import shown_commit

    if not answer.sessions:
        yield "gate over no session"
    for each in answer.sessions:
        shard = "" if each.shard is None else f", shard {each.shard}"
        agent = "" if each.agent is None else f", agent {each.agent}"
        run = "" if each.run_id is None else f", run {each.run_id}"
        commit = "" if each.commit is None else f", commit {shown_commit(each.commit)}"
        end = "" if each.finished_at is not None else ", without an end"
        yield f"gate over session {each.session_id} ({each.profile}{shard}{agent}{run}{commit}{end})"
