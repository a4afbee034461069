"""`regcase schema`: prints the JSON Schema that editors complete files by."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_regcase.cli.words import OneOf

if TYPE_CHECKING:
    from pytest_regcase.case_files import SchemaName
    from pytest_regcase.reporters.json_schemas import DocumentName


@click.command(
    epilog="""\b
Example:
  regcase schema case --out regcase-case.schema.json
  regcase schema report
"""
)
@click.argument("name", type=OneOf(["case", "simulation", "config", "report", "decision"]), default="case")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead.")
def schema(name: "SchemaName | DocumentName", out: Path | None) -> None:
    """Print the JSON Schema of a case file, a simulation file, [tool.regcase], the JSON report or the decision.

    Without a name: of a case file. Editors look for regcase-case.schema.json beside the cases folder: case files
    that `regcase new` writes name it in their first line.
    """
    from pytest_regcase.case_files import json_schema, replace_file
    from pytest_regcase.reporters.json_schemas import document_schema
    from pytest_regcase.toml_lines import shown

    made = document_schema(name) if name == "report" or name == "decision" else json_schema(name)
    text = json.dumps(made, indent=2) + "\n"
    if out is None:
        click.echo(text, nl=False)
        return
    replace_file(out, text.encode())
    click.echo(f"wrote {shown(out)}")
