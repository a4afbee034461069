"""`regcase seal`: seals observations that a person wrote."""

from pathlib import Path

import click


@click.command(
    epilog="""\b
Example:
  regcase seal cases/sweep-0412-trial-37
  regcase seal sweep-0412-trial-37
"""
)
@click.argument("cases", nargs=-1, required=True, metavar="CASE...")
def seal(cases: tuple[str, ...]) -> None:
    """Seal the observation of each CASE: a case file, its folder, or an id.

    Writes a [seal] table into the case file, before any appended records. From then on an edited observation is
    an error. Sealing twice changes nothing; an observation that was edited after it was sealed is refused.
    """
    from pytest_regcase.case_files import find_case, seal_case
    from pytest_regcase.config import load_project
    from pytest_regcase.errors import RegcaseError
    from pytest_regcase.toml_lines import shown

    folders = load_project(Path.cwd()).case_folders
    code = 0
    for name in cases:
        try:
            done = seal_case(find_case(folders, name))
        except RegcaseError as error:
            # The others are sealed all the same: each stands for itself.
            click.echo(error.text, err=True)
            code = error.exit_code
        else:
            click.echo(f"{'sealed' if done.changed else 'sealed already'}: {shown(done.path)}")
            click.echo(f"  {done.digest}")
    if code:
        raise SystemExit(code)
