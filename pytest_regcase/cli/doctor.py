"""`regcase doctor`: prints what two attempts with a built-in task showed. Decides nothing."""

import json
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.doctor import Diagnosis


@click.command(
    epilog="""\b
Example:
  regcase doctor
  regcase doctor --agent mini --json
"""
)
@click.option("--agent", default="default", show_default=True, help="A name in [tool.regcase.agents].")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def doctor(agent: str, as_json: bool) -> None:
    """Check that an agent can be tested: does it reach our port, and what does it show?

    Runs it twice with a built-in task: once it is answered, once its first request never is. Needs no model and
    costs no money. Exit code 0 when the agent reached us in both runs, else 1.
    """
    from pathlib import Path

    from pytest_regcase.config import load_project
    from pytest_regcase.session.doctor import diagnose

    project = load_project(Path.cwd())
    if not as_json and agent in project.config.agents:  # where it is not, all that is to be said is that
        seconds = project.config.agents[agent].deadline_seconds
        click.echo(f"Two attempts with agent {agent!r}; the second may take up to {seconds:g} s ...", err=True)
    diagnosis = diagnose(project, agent)
    click.echo(json.dumps(_document(diagnosis), indent=2) if as_json else "\n".join(_lines(diagnosis)))
    if not diagnosis.reached:
        raise SystemExit(1)


def _document(diagnosis: "Diagnosis") -> dict[str, Any]:
    return {
        "schema": 1,
        "agent": diagnosis.agent,
        "reached": diagnosis.reached,
        "other_requests": list(diagnosis.other_requests),
        "wire": diagnosis.wire,
        "streaming": diagnosis.streaming,
        "startup_seconds": diagnosis.startup_seconds,
        "client_timeout_seconds": diagnosis.client_timeout_seconds,
        "retries": diagnosis.retries,
        "stopped_seconds": diagnosis.stopped_seconds,
        "proposed_stop_within_seconds": diagnosis.proposed_stop_within_seconds,
        "shows": list(diagnosis.shows),
        "cannot_show": [{"expectation": each.expectation, "why": each.says} for each in diagnosis.cannot_show],
        "answered": diagnosis.answered.to_plain(),
        "silent": diagnosis.silent.to_plain(),
    }


def _lines(diagnosis: "Diagnosis") -> list[str]:
    lines = [f"agent {diagnosis.agent}"]
    if diagnosis.notice is not None:
        lines += _wrapped(f"notice: {diagnosis.notice}")
    if not diagnosis.reached:
        return [*lines, *_not_reached(diagnosis)]
    mode = "streaming" if diagnosis.streaming else "not streaming"
    lines += [
        "  reached our port: yes",
        f"  wire: {diagnosis.wire}, {mode}",
        f"  first request after {diagnosis.startup_seconds:.1f} s",
        *_wrapped(
            f"answered run: {diagnosis.answered.verdict}"
            + (f" ({diagnosis.answered.says})" if diagnosis.answered.says else "")
        ),
        "When the first request is never answered:",
    ]
    if diagnosis.stopped_seconds is None and diagnosis.silent.exit.ended_by is None:
        why = diagnosis.silent.says or "it is not on the wire"
        lines += _wrapped(f"when it stopped cannot be said: {why}")
    elif diagnosis.stopped_seconds is None:
        lines += [
            "  it was still waiting when we ended it. Its client has no time-out, or one above",
            "  the agent's deadline_seconds; set a time-out in the agent, or raise the deadline.",
        ]
    else:
        held = diagnosis.client_timeout_seconds
        lines += [
            "  client time-out: " + ("not seen" if held is None else f"{held:.1f} s on the wire"),
            "  requests after the first: " + ("not seen" if diagnosis.retries is None else str(diagnosis.retries)),
            f"  stopped after {diagnosis.stopped_seconds:.1f} s",
            f"  proposed: stop_within_seconds = {diagnosis.proposed_stop_within_seconds}",
        ]
    lines.append(f"Its output shows {len(diagnosis.shows)} of 7 expectations:")
    lines += _wrapped(", ".join(diagnosis.shows) or "none")
    for each in diagnosis.cannot_show:
        lines += _wrapped(f"cannot see {each.expectation}: {each.says}")
    return [*lines, "What both runs left lies in", f"  {diagnosis.folder}"]


def _wrapped(text: str) -> list[str]:
    return wrapped(text).splitlines()


def _not_reached(diagnosis: "Diagnosis") -> list[str]:
    silent = diagnosis.silent
    if diagnosis.other_requests:
        return [
            *_wrapped(
                "reached our port: yes, but with no model request that we can answer: it asked for"
                f" {', '.join(diagnosis.other_requests)}"
            ),
            *_wrapped("We answer OpenAI chat completions (POST /chat/completions); set the agent to use them."),
            "  Then look at what it wrote:",
            f"    {diagnosis.folder}",
        ]
    said = [line for each in diagnosis.last_words for line in wrapped(each, first="    | ").splitlines()]
    return [
        "  reached our port: no. Not one model request came in.",
        f"  exit code {silent.exit.code}" + (f"; {silent.says}" if silent.says else ""),
        *(["  The last that it wrote to stderr:", *said] if said else []),
        "  Give the agent our address, in [tool.regcase.agents." + diagnosis.agent + "]:",
        '    env = { OPENAI_BASE_URL = "{openai_base_url}", OPENAI_API_KEY = "{api_key}" }',
        "  or as an argument of its command. Then look at what it wrote:",
        f"    {diagnosis.folder}",
    ]
