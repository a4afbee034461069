"""`regcase doctor`: prints what two attempts with a built-in task showed. Decides nothing."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.container_lines import left_behind, way_in
from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.trying.doctor import Diagnosis


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
    costs no money. Exit code 0 when the agent reached us in both runs, and its time_scale reached it, else 1.
    """
    from pathlib import Path

    from pytest_regcase.config import load_project
    from pytest_regcase.session.trying.doctor import diagnose

    project = load_project(Path.cwd())
    if not as_json and agent in project.config.agents:  # where it is not, all that is to be said is that
        config = project.config.agents[agent]
        seconds = config.deadline_seconds / config.time_scale
        click.echo(f"Two attempts with agent {agent!r}; the second may take up to {seconds:g} s ...", err=True)
    diagnosis = diagnose(project, agent)
    click.echo(json.dumps(_document(diagnosis), indent=2) if as_json else "\n".join(_lines(diagnosis)))
    if not diagnosis.reached or diagnosis.clock_missed is not None:
        raise SystemExit(1)


def _document(diagnosis: "Diagnosis") -> dict[str, Any]:
    return {
        "schema": 1,
        "agent": diagnosis.agent,
        "reached": diagnosis.reached,
        "other_requests": list(diagnosis.other_requests),
        "time_scale": diagnosis.time_scale,
        "clock_missed": diagnosis.clock_missed,
        "wire": diagnosis.wire,
        "streaming": diagnosis.streaming,
        "startup_seconds": diagnosis.startup_seconds,
        "client_timeout_seconds": diagnosis.client_timeout_seconds,
        "retries": diagnosis.retries,
        "stopped_seconds": diagnosis.stopped_seconds,
        "proposed_stop_within_seconds": diagnosis.proposed_stop_within_seconds,
        "containers": None if diagnosis.containers is None else asdict(diagnosis.containers),
        "shows": list(diagnosis.shows),
        "cannot_show": [{"expectation": each.expectation, "why": each.says} for each in diagnosis.cannot_show],
        "answered": diagnosis.answered.to_plain(),
        "silent": diagnosis.silent.to_plain(),
    }


def _lines(diagnosis: "Diagnosis") -> list[str]:
    from pytest_regcase.records.words import EXPECTATIONS

    lines = [f"agent {diagnosis.agent}"]
    if diagnosis.notice is not None:
        lines += _wrapped(f"notice: {diagnosis.notice}")
    left = left_behind(diagnosis.containers, diagnosis.agent)
    if not diagnosis.reached:
        return [*lines, *_not_reached(diagnosis), *left]
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
    if diagnosis.clock_missed is not None:
        return [*lines, *_clock_missed(diagnosis, diagnosis.clock_missed)]
    if diagnosis.time_scale != 1:
        lines += _wrapped(
            f"its clock ran {diagnosis.time_scale:g} times as fast from then on; the run took"
            f" {diagnosis.silent.duration_seconds:.1f} real seconds"
        )
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
        why, _, formats = each.says.partition("\nLooked for: ")
        lines += _wrapped(f"cannot see {each.expectation}: {why}")
        if formats:
            lines += _wrapped(
                "let it write trial.jsonl into {out_dir}, as the README shows, or name in `output` what it writes"
                " in one of the formats of docs/formats.md",
                first="    ",
            )
    judged = {*diagnosis.shows, *(each.expectation for each in diagnosis.cannot_show)}
    unasked = [each for each in EXPECTATIONS if each not in judged]
    if unasked and diagnosis.shows:
        lines += _wrapped(f"not asked by this task: {', '.join(unasked)}")
    return [*lines, *left, "What both runs left lies in", f"  {diagnosis.folder}"]


def _clock_missed(diagnosis: "Diagnosis", why: str) -> list[str]:
    return [
        *_wrapped(f"time_scale = {diagnosis.time_scale:g} does not reach the agent: {why}."),
        *_wrapped(
            "No time-out of its client can be tested faster than it is. Start the agent's own program without what"
            " takes the variables away (a container, env -i, sudo), or set time_scale = 1 in"
            f" [tool.regcase.agents.{diagnosis.agent}] and give the agent short time-outs."
        ),
        "What both runs left lies in",
        f"  {diagnosis.folder}",
    ]


def _wrapped(text: str, *, first: str = "  ") -> list[str]:
    return wrapped(text, first=first).splitlines()


def _not_reached(diagnosis: "Diagnosis") -> list[str]:
    silent = diagnosis.silent
    if diagnosis.other_requests:
        return [
            *_wrapped(
                "reached our port: yes, but with no model request that we can answer: it asked for"
                f" {', '.join(diagnosis.other_requests)}"
            ),
            *_wrapped(
                "We answer OpenAI chat completions (POST /v1/chat/completions), OpenAI responses (POST"
                " /v1/responses) and Anthropic messages (POST /v1/messages); set the agent to use one of them."
            ),
            "  Then look at what it wrote:",
            f"    {diagnosis.folder}",
        ]
    said = [line for each in diagnosis.last_words for line in wrapped(each, first="    | ").splitlines()]
    return [
        "  reached our port: no. Not one model request came in.",
        f"  exit code {silent.exit.code}" + (f"; {silent.says}" if silent.says else ""),
        *(["  The last that it wrote to stderr:", *said] if said else []),
        *_address(diagnosis, failed=bool(said)),
        "  Then look at what it wrote:",
        f"    {diagnosis.folder}",
    ]


def _address(diagnosis: "Diagnosis", *, failed: bool) -> list[str]:
    if diagnosis.containers is not None and (diagnosis.containers.starts or diagnosis.containers.host):
        return list(way_in(diagnosis.containers, diagnosis.agent))
    return [
        *(["  Correct what it says there. Where that is not why:"] if failed else []),
        "  Give the agent our address, in [tool.regcase.agents." + diagnosis.agent + "]:",
        '    env = { OPENAI_BASE_URL = "{openai_base_url}", OPENAI_API_KEY = "{api_key}" }',
        '    env = { ANTHROPIC_BASE_URL = "{anthropic_base_url}", ANTHROPIC_API_KEY = "{api_key}" }',
        "  or as an argument of its command.",
    ]
