"""`regcase list`: prints all cases with their states and owners, filtered. Decides nothing, writes nothing."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from pytest_regcase.cli.safe_text import redacted, redacted_document, visible
from pytest_regcase.cli.words import OneOf, Words, wrapped
from pytest_regcase.records.words import CaseState, HypothesisClass

if TYPE_CHECKING:
    from pytest_regcase.session.gating.listing import ListedCase, Listing
    from pytest_regcase.session.planning.opening import CaseEntry

INVALID = 1
"""Exit code where a case file does not load."""

_STATES = (*get_args(CaseState), "quarantined")


@click.command(
    "list",
    epilog="""\b
Example:
  regcase list
  regcase list --state verifying --owner eval-harness-oncall
  regcase list --class auth
""",
)
@click.option("--state", type=OneOf(_STATES), help="Only cases in this state.")
@click.option("--owner", type=Words(), help="Only cases whose owner has this in the name.")
@click.option(
    "--class",
    "kind",
    type=OneOf(get_args(HypothesisClass)),
    metavar="CLASS",
    help="Only cases with a simulation of this class, such as auth.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def list_cases(state: str | None, owner: str | None, kind: str | None, as_json: bool) -> None:
    """List all cases of the project with their states. Nothing is run.

    A case file that does not load is listed as invalid whatever the filters say, since nobody knows whose it is;
    the exit code is 1 then.
    """
    from pytest_regcase.config import load_project
    from pytest_regcase.session.gating import listing

    found = listing.list_cases(load_project(Path.cwd()))
    chosen = [each for each in found.cases if _matches(each, state, owner, kind)]
    if as_json:
        document = [*map(_plain, chosen), *map(_plain_invalid, found.invalid)]
        click.echo(json.dumps(redacted_document(document), indent=2))
    else:
        click.echo("\n".join(_lines(found, chosen)))
    if found.invalid:
        raise SystemExit(INVALID)


def _matches(case: "ListedCase", state: str | None, owner: str | None, kind: str | None) -> bool:
    if state == "quarantined" and case.quarantine is None:
        return False
    if state not in (None, "quarantined", case.state):
        return False
    if owner is not None and owner.casefold() not in case.owner.casefold():
        return False
    return kind is None or kind in case.classes


def _plain(case: "ListedCase") -> dict[str, object]:
    plain: dict[str, object] = {"id": case.loaded.id, "state": case.state, "owner": case.owner}
    if case.quarantine is not None:
        plain |= {"quarantined": True, "quarantined_until": case.quarantine.expires.isoformat()}
    plain |= {"over_budget": True} if case.over_budget else {}
    plain |= {"drift_alarm": True} if case.drifting else {}
    return {
        **plain,
        "hypotheses": [each.id for each in case.loaded.case.hypotheses],
        "title": case.loaded.case.title,
    }


def _plain_invalid(entry: "CaseEntry") -> dict[str, object]:
    from pytest_regcase.toml_lines import shown

    return {
        "id": entry.path.parent.name,
        "state": "invalid",
        "file": shown(entry.path),
        "problems": [*entry.problems],
    }


def _lines(listing: "Listing", chosen: "Sequence[ListedCase]") -> Iterator[str]:
    from pytest_regcase.toml_lines import shown

    if not listing.cases and not listing.invalid:
        yield wrapped(f"There is no case below {', '.join(map(shown, listing.folders))}.", first="")
        yield "To make one:"
        yield "  regcase new --from-trial PATH"
        return
    states = {each.loaded.id: _state(each) for each in chosen}
    width = max((*map(len, states.values()), len("invalid")), default=0)
    texts = redacted(f"{each.loaded.case.title}; {each.owner}" for each in chosen)
    for each, text in zip(chosen, texts, strict=True):
        yield f"{states[each.loaded.id]:<{width}}  {each.loaded.id}"
        yield wrapped(visible(text), first=" " * (width + 2), further=" " * (width + 4))
        for said in _beside(each):
            yield wrapped(said, first=" " * (width + 2), further=" " * (width + 4))
    for entry in listing.invalid:
        problem = redacted(entry.problems[:1])[0]
        yield wrapped(visible(problem), first=f"{'invalid':<{width}}  ", further=" " * (width + 4))
    shown_of = f"{len(chosen)} of {len(listing.cases)} cases"
    yield shown_of + (f", and {len(listing.invalid)} invalid: `regcase show` says why" if listing.invalid else "")
    if listing.not_read is not None:
        yield wrapped(f"note: {listing.not_read}", first="")


def _state(case: "ListedCase") -> str:
    counted = case.state == "verifying" and case.claim is not None
    where = f" {case.claim.clean} of {case.claim.need}" if counted and case.claim is not None else ""
    return f"{case.state}{where}{', quarantined' if case.quarantine is not None else ''}"


def _beside(case: "ListedCase") -> Iterator[str]:
    """What else is to be known of it at a glance."""
    if case.quarantine is not None:
        yield f"quarantined until {case.quarantine.expires}"
    if case.over_budget:
        yield "flaky over its budget: `regcase quarantine` says more"
    if case.drifting:
        yield "fails more often than it did: the drift alarm stands"
