import pytest

from pytest_regcase import cli


def test_help_groups_every_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    at = [text.index(f"\n{title}:\n") for title in cli.GROUPS]
    assert at == sorted(at)
    assert list(cli.GROUPS) == ["Every day", "A fix", "Investigate", "CI", "Recorder"]
    assert sum(map(len, cli.GROUPS.values())) == len(cli.COMMANDS)
    for name, line in cli.COMMANDS.items():
        assert f"\n  {name} " in text
        assert line in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
