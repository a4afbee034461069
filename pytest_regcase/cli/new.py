"""`regcase new`: makes cases from failed trials, and says what was written, missing and removed."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_regcase.cli.progress import progress
from pytest_regcase.cli.tables import table
from pytest_regcase.cli.words import GivenPath, OneOf, Words, wrapped
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.words import Outcome

if TYPE_CHECKING:
    from pytest_regcase.session.adopt import AdoptedAll, Listed, PassedOver
    from pytest_regcase.session.new_cases.making import Adopted
    from pytest_regcase.session.sweeps.sweep import Failure

_ONE_CASE = {
    "case_id": "--id",
    "title": "--title",
    "work_tree": "--work-tree",
    "attachments": "--attach",
    "outcome": "--outcome",
    "task_id": "--task",
    "harness": "--harness",
    "trial": "--trial",
    "sample": "--sample",
    "epoch": "--epoch",
}
"""Options that are about one trial, so that they cannot stand with --all or --failed."""

_NOTHING_REMOVED = "nothing found that looks like a secret or a home path"


@click.command(
    epilog="""\b
Example:
  regcase new --from-trial runs/trial-37.traj.json --work-tree tasks/calc
  regcase new --from-trial logs/2026-04-12_sweep.eval --sample calc --epoch 2
  regcase new --from-trial sweeps/0412 --failed
  regcase new --from-trial sweeps/0412 --all
"""
)
@click.option(
    "--from-trial",
    "source",
    type=GivenPath(path_type=Path),
    required=True,
    metavar="PATH",
    help="A log as its harness wrote it, a folder of logs, or a zip of them.",
)
@click.option("--failed", "only_list", is_flag=True, help="List the failed trials, and write nothing.")
@click.option("--trial", type=Words(), metavar="KEY", help="Which trial, as --failed lists it.")
@click.option("--all", "make_all", is_flag=True, help="Make one case a failure signature.")
@click.option("--sample", metavar="ID", help="Which trial, by the id of its sample or task.")
@click.option("--epoch", type=int, metavar="N", help="Which repetition of it.")
@click.option("--new", "insist", is_flag=True, help="Also where it looks like a case that is there.")
@click.option(
    "--cases",
    type=GivenPath(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the case goes.  [default: the first configured folder]",
)
@click.option("--id", "case_id", metavar="ID", help="Id and folder name.  [default: made from the source]")
@click.option("--title", type=Words(), metavar="TEXT", help="What was seen, in a few words; never why.")
@click.option(
    "--work-tree",
    type=GivenPath(path_type=Path),
    metavar="DIR",
    help="The files that the agent started from: plain files, at most 16 MiB.",
)
@click.option(
    "--attach",
    "attachments",
    type=GivenPath(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Copy the trial's time out of a lower-level log (text, JSON lines, gzip).",
)
@click.option(
    "--owner", type=Words(), metavar="WHO", help="Who decides next.  [default: CODEOWNERS, else the git user]"
)
@click.option(
    "--outcome",
    type=OneOf(["failed", "undetermined", "passed"]),
    help="Your word on how it ended, where the log does not say so.",
)
@click.option(
    "--task", "task_id", type=Words(), metavar="ID", help="Your word on the task, where the log is silent."
)
@click.option("--harness", type=Words(), metavar="NAME", help="Your word on the harness, likewise.")
@click.option(
    "--keep",
    "kept",
    type=Words(),
    multiple=True,
    metavar="WHAT",
    help="Do not remove this: a kind, or a regular expression for the whole of it.",
)
@click.option("--keep-reason", type=Words(), metavar="WHY", help="Why it may stay; the case records it.")
@click.option("--full", is_flag=True, help="Keep the whole transcript, also above 256 KB.")
@click.option("--importer", metavar="NAME", help="Which format it is, where two match.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def new(
    source: Path,
    only_list: bool,
    trial: str | None,
    make_all: bool,
    sample: str | None,
    epoch: int | None,
    insist: bool,
    cases: Path | None,
    case_id: str | None,
    title: str | None,
    work_tree: Path | None,
    attachments: tuple[Path, ...],
    owner: str | None,
    outcome: Outcome | None,
    task_id: str | None,
    harness: str | None,
    kept: tuple[str, ...],
    keep_reason: str | None,
    full: bool,
    importer: str | None,
    as_json: bool,
) -> None:
    """Make a case from one failed trial, or one for each failure signature of a sweep.

    The format is told by the content. What was observed is sealed; the cause status is unknown. Secrets and home
    paths are removed before anything is written. A trial that passed, or shows no sign of failure, is refused
    unless you say --outcome failed (or undetermined, where you do not know). What looks like a case that is there
    is refused unless you say --new. An existing case is never overwritten.
    """
    from pytest_regcase.config import load_project
    from pytest_regcase.importers.source import Choice
    from pytest_regcase.redaction import Keep
    from pytest_regcase.session.adopt import adopt, adopt_all, failed_trials
    from pytest_regcase.session.new_cases.making import Settings
    from pytest_regcase.session.new_cases.persons_word import PersonsWord

    _refuse_together(click.get_current_context().params, only_list=only_list, make_all=make_all)
    project = load_project(Path.cwd())
    with progress() as tell:
        settings = Settings(
            cases=cases,
            owner=owner,
            importer=importer,
            new=insist,
            full=full,
            keep=Keep(kept, keep_reason),
            progress=tell,
        )
        listed = failed_trials(source, settings) if only_list else None
        made = adopt_all(project, source, settings) if make_all else None
        adopted = None
        if listed is None and made is None:
            adopted = adopt(
                project,
                source,
                settings,
                choice=Choice(key=trial, sample=sample, epoch=epoch),
                case_id=case_id,
                work_tree=work_tree,
                word=PersonsWord(outcome=outcome, task_id=task_id, harness=harness),
                attachments=attachments,
                title=title,
            )
    if listed is not None:
        _print_failed(listed, as_json=as_json)
    elif made is not None:
        if as_json:
            click.echo(json.dumps(_document(made.adopted, made.warnings, made.passed_over), indent=2))
        else:
            _print_all(made)
    elif adopted is not None:
        if as_json:
            click.echo(json.dumps(_document([adopted], (), ()), indent=2))
        else:
            _print(adopted, has_agent=adopted.case.agent in project.config.agents)


def _refuse_together(given: dict[str, Any], *, only_list: bool, make_all: bool) -> None:
    if not (only_list or make_all):
        return
    mode = "--failed" if only_list else "--all"
    other = "--all" if only_list and make_all else None
    other = other or next(
        (option for name, option in _ONE_CASE.items() if given.get(name) not in (None, ())), None
    )
    if other is not None:
        raise click.UsageError(f"{mode} and {other} cannot stand together.")


def _print_failed(listed: "Listed", *, as_json: bool) -> None:
    from pytest_regcase.importers.reading import printable

    for each in listed.unreadable:
        click.echo(wrapped(f"Not read: {each.refusal.text}", first=""), err=True)
    if as_json:
        click.echo(json.dumps([_row(each) for each in listed.failures], indent=2))
        return
    count = len(listed.failures)
    click.echo(
        f"{count} of {how_many(listed.trials, 'trial')} failed by {'itself' if count == 1 else 'themselves'}."
    )
    if not listed.failures:
        return
    rows = [
        (
            each.entry.key,
            str(each.failing_step or "-"),
            each.entry.ref.outcome,
            printable(each.signature),
        )
        for each in listed.failures
    ]
    click.echo("\n".join(table(("trial", "step", "outcome", "signature"), rows)))
    click.echo("Next: --trial KEY makes a case of one; --all makes one a signature.")


def _row(failure: "Failure") -> dict[str, object]:
    ref = failure.entry.ref
    row = {
        "trial": failure.entry.key,
        "task_id": failure.task_id,
        "attempt": ref.attempt,
        "failing_step": failure.failing_step,
        "error_type": failure.error_type,
        "outcome": ref.outcome,
        "signature": failure.signature,
    }
    return {name: value for name, value in row.items() if value is not None}


def _document(
    adopted: "Sequence[Adopted]", warnings: Sequence[str], passed_over: "Sequence[PassedOver]"
) -> dict[str, object]:
    from pytest_regcase.toml_lines import shown

    redactions: Counter[str] = Counter()
    for each in adopted:
        redactions.update(each.redactions)
    document: dict[str, object] = {
        "schema": 1,
        "cases": [{"id": each.case.id, "files": [shown(path) for path in each.written]} for each in adopted],
        "missing": list(dict.fromkeys(says for each in adopted for says in each.missing)),
        "redactions": dict(sorted(redactions.items())),
        "warnings": list(dict.fromkeys([*warnings, *(says for each in adopted for says in each.warnings)])),
    }
    if kept := _kept(adopted):
        document["kept"] = [{"what": what, "count": count, "why": why} for (what, why), count in kept.items()]
    if passed_over:
        document["passed_over"] = [
            {"signature": each.signature, "trials": list(each.trials), "why": each.why} for each in passed_over
        ]
    return document


def _print_all(made: "AdoptedAll") -> None:
    from pytest_regcase.importers.reading import printable
    from pytest_regcase.toml_lines import shown

    click.echo(f"Wrote {how_many(len(made.adopted), 'case')}, one a failure signature:")
    for each in made.adopted:
        click.echo(wrapped(printable(f"{each.case.id}: {each.case.observation.symptom}")))
        for says in _counts(each):
            click.echo(wrapped(says, first="    ", further="    "))
    removed = Counter[str]()
    for each in made.adopted:
        removed.update(each.redactions)
    shown_removed = ", ".join(f"{count} {kind}" for kind, count in sorted(removed.items()))
    click.echo(wrapped(f"Removed before writing: {shown_removed or _NOTHING_REMOVED}", first=""))
    _print_kept(made.adopted)
    _print_list(
        "Passed over:",
        tuple(
            printable(f"{each.signature} ({_first(each.trials)}): {' '.join(each.why.split())}")
            for each in made.passed_over
        ),
    )
    _print_list(
        "Mind:",
        (*map(printable, made.warnings), "each case has warnings of its own: read it before its first run"),
    )
    click.echo(f"Next: read the cases, then pytest --regcase {shown(made.adopted[0].folder.parent)}")


def _first(trials: Sequence[str]) -> str:
    more = f" and {len(trials) - 1} more" if len(trials) > 1 else ""
    return f"{trials[0]}{more}"


def _kept(adopted: "Sequence[Adopted]") -> Counter[tuple[str, str]]:
    """Count what stayed although it looks like a secret, by the words of --keep and the reason."""
    kept: Counter[tuple[str, str]] = Counter()
    for case in adopted:
        kept.update({(each.what, each.why): each.count for each in case.case.observation.kept})
    return kept


def _print_kept(adopted: "Sequence[Adopted]") -> None:
    for (what, why), count in _kept(adopted).items():
        click.echo(wrapped(f"Kept as you said: {count} {what} ({why}); each case records it", first=""))


def _counts(adopted: "Adopted") -> "Iterator[str]":
    """Say how often the sweep showed it, and where else."""
    baseline, others = adopted.case.baseline, len(adopted.case.occurrences)
    if baseline is not None:
        of = "of this task" if baseline.population == "task" else "of the sweep"
        yield f"baseline: {baseline.failures} of {how_many(baseline.trials, 'trial')} {of}"
    if others:
        yield how_many(others, "further trial") + " of this signature listed in it"


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
        click.echo(f"  {shown(adopted.folder / 'recorded' / 'work_tree')} ({how_many(len(in_tree), 'file')})")
    owner = case.handover.owner if case.handover else ""
    click.echo(wrapped(f"Owner: {owner} (from {adopted.owner.found_in})", first=""))
    removed = ", ".join(f"{count} {kind}" for kind, count in sorted(adopted.redactions.items()))
    click.echo(wrapped(f"Removed before writing: {removed or _NOTHING_REMOVED}", first=""))
    _print_kept([adopted])
    for says in _counts(adopted):
        click.echo(wrapped(f"{says[0].upper()}{says[1:]}", first=""))
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
