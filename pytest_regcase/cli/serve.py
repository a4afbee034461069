"""`regcase serve`: a supplier started by hand. Prints where it is and what happens there; decides nothing."""

import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from pytest_regcase.cli import INTERRUPTED
from pytest_regcase.cli.wire_lines import line_of
from pytest_regcase.cli.words import wrapped

if TYPE_CHECKING:
    from pytest_regcase.records.wire import WireEvent, WireFacts
    from pytest_regcase.session.trying.serve import Served
    from pytest_regcase.supplier.process import SupplierProcess


@click.command(
    epilog="""\b
Example:
  regcase serve
  regcase serve --simulation rate-limited-v1 --port 8765
  regcase serve --reach docker
  regcase serve sweep-0412-trial-37 --simulation deadline-no-answer-v1
"""
)
@click.argument("case", metavar="[CASE]", required=False)
@click.option("--simulation", metavar="ID", help="Inject its fault (`regcase simulations` lists them).")
@click.option("--wire", "wires", multiple=True, metavar="NAME", help="Speak this API only; may be repeated.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen there. [default: a free port]")
@click.option(
    "--reach",
    metavar="WHERE",
    help="loopback, docker (containers too), or an IPv4 address. [default: as in [tool.regcase.supplier]]",
)
def serve(case: str | None, simulation: str | None, wires: tuple[str, ...], port: int, reach: str | None) -> None:
    """Start a supplier by hand, for any client in any language.

    Prints its base URLs and the variables to export, then one line for each request, answer and close. With CASE
    it answers with the recorded replies of that case, for one run of an agent; without, with a fixed text. Ctrl-C
    (or SIGTERM) ends it with exit code 130; then it says whether the fault was delivered, as the wire shows.
    """
    from pytest_regcase.config import load_project
    from pytest_regcase.session.trying import serve as session
    from pytest_regcase.toml_lines import shown

    served = session.to_be_served(
        load_project(Path.cwd()), case=case, simulation_id=simulation, wires=wires, port=port, reach=reach
    )
    log = shown(Path(served.spec.wire_log))
    printer = _Printer(served, log)
    facts = session.serve(served, on_start=printer.start, on_event=printer.event)
    click.echo("\n".join(_summary(facts, log)))
    raise SystemExit(INTERRUPTED)


class _Printer:
    """Prints as things happen, each line at once: the reader may be a pipe."""

    def __init__(self, served: "Served", log: str) -> None:
        self._served = served
        self._log = log
        self._began = time.time()

    def start(self, supplier: "SupplierProcess") -> None:
        """Say what answers, where, and what a client needs to know."""
        # The wire log counts from a moment of the monotonic clock; a reader compares with a clock on the wall.
        self._began = time.time() - time.monotonic() + supplier.spec.t0
        click.echo("\n".join([*_answers(self._served), *_places(supplier), f"wire log: {self._log}", ""]))
        click.echo("Ctrl-C ends it.")

    def event(self, event: "WireEvent") -> None:
        """Print the line of one event, if it has one."""
        says = line_of(event)
        if says is not None:
            moment = self._began + float(event["t"])
            clock = f"{time.strftime('%H:%M:%S', time.localtime(moment))}.{int(moment % 1 * 1000):03d}"
            click.echo(f"{clock}  {says}")


def _answers(served: "Served") -> Iterator[str]:
    spec = served.spec
    if spec.pass_through is not None:
        yield wrapped(f"replies: passed through to {spec.pass_through.base_url}; that may cost money", first="")
    elif served.loaded is None:
        yield f'replies: always "{spec.closing_reply.text}"'
    else:
        yield wrapped(
            f"replies: {served.replies} of {served.loaded.id}, once; then the agent's closing reply", first=""
        )
    if served.simulation is not None and spec.fault is not None:
        fault = spec.fault
        where = f"step {fault.at_step}" if fault.at_step is not None else f"request {fault.at_request}"
        yield wrapped(f"fault: {served.simulation.id} from {where} on: {served.simulation.title}", first="")
        if fault.lasts is not None:
            yield f"  it heals after {fault.lasts} request{'' if fault.lasts == 1 else 's'}"
        yield from (wrapped(each) for each in served.notices)


def _places(supplier: "SupplierProcess") -> Iterator[str]:
    key = f"sk-regcase-{secrets.token_hex(8)}"
    yield ""
    yield f"export OPENAI_BASE_URL={supplier.openai_base_url}"
    yield f"export OPENAI_API_KEY={key}"
    yield f"export ANTHROPIC_BASE_URL={supplier.anthropic_base_url}"
    yield f"export ANTHROPIC_API_KEY={key}"
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in os.environ):
        yield 'export NO_PROXY="127.0.0.1,$NO_PROXY"'
    yield ""
    if supplier.container:
        yield from _for_a_container(supplier, key)
        yield ""


def _for_a_container(supplier: "SupplierProcess", key: str) -> Iterator[str]:
    openai = supplier.container["openai_base_url_container"]
    yield f"listens on {' and '.join(supplier.spec.addresses)}; for a container:"
    yield f"  {supplier.container['container_host_args']}"
    yield f"  -e OPENAI_BASE_URL={openai}"
    yield f"  -e OPENAI_API_KEY={key}"
    yield f"  -e ANTHROPIC_BASE_URL={supplier.container['anthropic_base_url_container']}"
    yield f"  -e ANTHROPIC_API_KEY={key}"
    # Docker hands the proxies of its own configuration on to every container.
    yield f"  -e NO_PROXY={urlsplit(openai).hostname}"


def _summary(facts: "WireFacts", log: str) -> Iterator[str]:
    yield ""
    counts = [f"{facts.requests} model request{'' if facts.requests == 1 else 's'}"]
    if facts.side_calls:
        counts.append(f"{facts.side_calls} of them side calls")
    if facts.delivered is not None:
        counts.append(f"{facts.faulted_requests} met the fault")
    if facts.delivered and facts.retries is not None:
        counts.append(f"{facts.retries} retr{'y' if facts.retries == 1 else 'ies'} after the first that did")
    yield wrapped(", ".join(counts), first="")
    if facts.off_prefix:
        yield wrapped(f"off the recorded replies: {facts.off_prefix[0]}", first="")
    if facts.delivered is None:
        yield "no fault was asked for"
    elif facts.delivered:
        yield "the fault was delivered"
    else:
        yield wrapped(f"the fault was NOT delivered: {facts.why_not}", first="")
    yield f"wire log: {log}"
