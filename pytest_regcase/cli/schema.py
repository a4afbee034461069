"""`regcase schema`: prints the JSON Schema that editors complete files by."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pytest_regcase.case_files import SchemaName


@click.command(
    epilog="""\b
Example:
  regcase schema case --out regcase-case.schema.json
"""
)
@click.argument("name", type=click.Choice(["case", "simulation", "config"]), default="case")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead.")
def schema(name: "SchemaName", out: Path | None) -> None:
    """Print the JSON Schema of a case file, a simulation file, or [tool.regcase].

    Without a name: of a case file. Editors look for regcase-case.schema.json beside the cases folder: case files
    that `regcase new` writes name it in their first line.
    """
    from pytest_regcase.case_files import json_schema, replace_file
    from pytest_regcase.toml_lines import shown

    text = json.dumps(json_schema(name), indent=2) + "\n"
    if out is None:
        click.echo(text, nl=False)
        return
    replace_file(out, text.encode())
    click.echo(f"wrote {shown(out)}")
