"""The RegcaseError family: what a user can cause, in one clear message with a slug.

Message form: what could not be done, to what, and why; then, on a further line, what to do.
"""

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question that names what is nearest to `name`, and a space; nothing where nothing is near."""
    import difflib

    # Ids have much in common without meaning the same: the usual 0.6 would guess.
    near = difflib.get_close_matches(name, known, 1, 0.75)
    return f"Did you mean {near[0]!r}? " if near else ""


class RegcaseError(Exception):
    """Base of all errors that we raise on purpose.

    `slug` is stable and documented; `text` is for a person and may span lines.
    """

    slug = "regcase-error"
    exit_code = 2

    def __init__(self, text: str, *, slug: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        if slug is not None:
            self.slug = slug


class FileError(RegcaseError):
    """A case, simulation or configuration file says something that is not allowed."""

    slug = "invalid-file"

    def __init__(self, problems: "list[str]", *, slug: str | None = None) -> None:
        super().__init__("\n".join(problems), slug=slug)
        self.problems = problems
        """One line a problem: ``file:line: what was found; what is allowed``."""


class SealError(FileError):
    """The observation is not what was sealed, or is not sealed."""

    slug = "broken-seal"


class ImportRefused(RegcaseError):
    """A trial is not imported, with the true reason."""

    slug = "import-refused"

    def __init__(self, slug: str, text: str) -> None:
        super().__init__(text, slug=slug)


class UsageRefused(RegcaseError):
    """What was asked for cannot be done as asked."""

    slug = "usage"


class ClaimRefused(RegcaseError):
    """What is claimed is not borne out by what is there, so it is not written down."""

    slug = "claim-refused"
    exit_code = 1


class WriteError(RegcaseError):
    """A file cannot be written; what was there before is there still.

    The exit code is 4, but 2 where the place that was asked for cannot hold a file at all.
    """

    slug = "not-written"
    exit_code = 4

    def __init__(self, text: str, *, exit_code: int = 4) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class UnknownName(RegcaseError):
    """A name that no case, simulation, agent or extension has."""

    slug = "unknown-name"


class ExtensionError(RegcaseError):
    """An extension is broken, or two extensions have one name."""

    slug = "broken-extension"


class LedgerError(RegcaseError):
    """The ledger cannot be read or written."""

    slug = "ledger"
    exit_code = 4


class MachineryError(RegcaseError):
    """Our own supplier or supervisor did not work; an attempt proves nothing then."""

    slug = "machinery-broke"
    exit_code = 4
