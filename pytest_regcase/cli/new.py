"""`regcase new`: makes a case from one failed trial, and says what was written, missing and removed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import Words, wrapped

if TYPE_CHECKING:
    from pytest_regcase.session.adopt import Adopted


@click.command(
    epilog="""\b
Example:
  regcase new --from-trial runs/trial-37.traj.json --work-tree tasks/calc
  regcase new --from-trial logs/2026-04-12_sweep.eval --sample calc --epoch 2
"""
)
@click.option(
    "--from-trial",
    "source",
    type=click.Path(path_type=Path),
    required=True,
    metavar="PATH",
    help="A log as its harness wrote it, or the folder that holds it.",
)
@click.option(
    "--cases",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the case goes.  [default: the first configured folder]",
)
@click.option("--id", "case_id", metavar="ID", help="Id and folder name.  [default: made from the source]")
@click.option("--title", type=Words(), metavar="TEXT", help="What was seen, in a few words; never why.")
@click.option(
    "--work-tree",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The files that the agent started from: plain files, at most 16 MiB.",
)
@click.option(
    "--owner", type=Words(), metavar="WHO", help="Who decides next.  [default: CODEOWNERS, else the git user]"
)
@click.option("--sample", metavar="ID", help="Which trial, where the log holds several.")
@click.option("--epoch", type=int, metavar="N", help="Which repetition of the sample.")
@click.option(
    "--outcome",
    type=click.Choice(["failed"]),
    help="Your word that it failed, where the log does not say so.",
)
@click.option("--importer", metavar="NAME", help="Which format it is, where two match.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def new(
    source: Path,
    cases: Path | None,
    case_id: str | None,
    title: str | None,
    work_tree: Path | None,
    owner: str | None,
    sample: str | None,
    epoch: int | None,
    outcome: str | None,
    importer: str | None,
    as_json: bool,
) -> None:
    """Make a case from one failed trial.

    The format is told by the content. What was observed is sealed; the cause status is unknown. Secrets and home
    paths are removed before anything is written. A trial that passed, or shows no sign of failure, is refused
    unless you say --outcome failed. An existing case is never overwritten.
    """
    from pytest_regcase.config import load_project
    from pytest_regcase.session.adopt import adopt

    project = load_project(Path.cwd())
    adopted = adopt(
        project,
        source,
        cases=cases,
        case_id=case_id,
        work_tree=work_tree,
        outcome=outcome,
        owner=owner,
        sample=sample,
        epoch=epoch,
        title=title,
        importer=importer,
    )
    if as_json:
        click.echo(json.dumps(_document(adopted), indent=2))
    else:
        _print(adopted, has_agent=adopted.case.agent in project.config.agents)


def _document(adopted: "Adopted") -> dict[str, object]:
    from pytest_regcase.toml_lines import shown

    return {
        "schema": 1,
        "cases": [
            {"id": adopted.case.id, "files": [shown(path) for path in adopted.written]},
        ],
        "missing": list(adopted.missing),
        "redactions": adopted.redactions,
        "warnings": list(adopted.warnings),
    }


def _print(adopted: "Adopted", *, has_agent: bool) -> None:
    from pytest_regcase.importers.reading import printable
    from pytest_regcase.toml_lines import shown

    case, observed = adopted.case, adopted.case.observation
    click.echo(wrapped(printable(f"{case.id}: {observed.symptom}"), first=""))
    read = ", ".join(sorted(adopted.trial.source_digests))
    click.echo(wrapped(printable(f"read from {read}, as {adopted.trial.format}")))
    click.echo(wrapped(printable(f"source event {observed.source_event}")))
    click.echo("  cause unknown: nothing recorded says more, and this tool does not guess")
    click.echo("Wrote:")
    in_tree = [path for path in adopted.written if "work_tree" in path.relative_to(adopted.folder).parts]
    for path in adopted.written:
        if path not in in_tree:
            click.echo(f"  {shown(path)}")
    if in_tree:
        click.echo(f"  {shown(adopted.folder / 'recorded' / 'work_tree')} ({len(in_tree)} files)")
    owner = case.handover.owner if case.handover else ""
    click.echo(wrapped(f"Owner: {owner} (from {adopted.owner.found_in})", first=""))
    removed = ", ".join(f"{count} {kind}" for kind, count in sorted(adopted.redactions.items()))
    removed = removed or "nothing found that looks like a secret or a home path"
    click.echo(wrapped(f"Removed before writing: {removed}", first=""))
    _print_list("Not found in the source:", tuple(map(printable, adopted.missing)))
    click.echo("Hypotheses proposed, to test the recovery; they say nothing about this trial:")
    for hypothesis in case.hypotheses:
        click.echo(wrapped(f"{hypothesis.id}: {', '.join(hypothesis.simulations)}"))
    _print_list("Mind:", adopted.warnings)
    if has_agent:
        click.echo("Next: read the case, then")
    else:
        harness = {"mini-swe-agent": "mini-swe-agent", "inspect": "inspect"}.get(adopted.trial.format, "python")
        click.echo(f"Next: read the case; no agent {case.agent!r} is configured yet, so")
        click.echo(f"  regcase init --harness {harness}")
        click.echo("  regcase doctor")
    click.echo(f"  pytest --regcase {shown(adopted.folder)}")


def _print_list(heading: str, sentences: tuple[str, ...]) -> None:
    if sentences:
        click.echo(heading)
        for sentence in sentences:
            click.echo(wrapped(f"- {sentence}"))
