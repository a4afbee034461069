"""`regcase init`: writes the entry of an agent into a user's project. Prints what it wrote."""

from pathlib import Path

import click

from pytest_regcase.cli.words import OneOf


@click.command(
    epilog="""\b
Example:
  regcase init --harness mini-swe-agent
  regcase init --harness python --agent mine
"""
)
@click.option(
    "--harness",
    type=OneOf(["mini-swe-agent", "inspect", "python"]),
    default="python",
    show_default=True,
    help="What runs the agent.",
)
@click.option("--agent", default="default", show_default=True, help="The name of the entry; cases refer to it.")
def init(harness: str, agent: str) -> None:
    """Set the project in the current folder up.

    Appends a complete [tool.regcase] with one agent to pyproject.toml, and to .gitattributes and .gitignore the
    lines that keep recorded files byte for byte and the ledger out of git. What is there already stays; where
    there is a [tool.regcase] already nothing is written, and a second agent is added by hand.
    """
    from pytest_regcase.session.project.set_up import set_up
    from pytest_regcase.toml_lines import shown

    done = set_up(Path.cwd(), harness=harness, agent=agent)
    for path in done.written:
        click.echo(f"wrote {shown(path)}")
    for path in done.unchanged:
        click.echo(f"has it already: {shown(path)}")
    click.echo(f"Next: look through [tool.regcase.agents.{agent}], then")
    click.echo("  regcase doctor" + ("" if agent == "default" else f" --agent {agent}"))
