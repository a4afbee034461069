"""A program `docker` that says what a test tells it to, in the place of the real one."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.supplier import reach

SCRIPT = """#!{python}
import json, sys
told = json.loads(open(__file__ + ".json").read())
with open(__file__ + ".asked", "a") as asked:
    asked.write(" ".join(sys.argv[1:]) + "\\n")
code, out, err = told.get(sys.argv[1], [1, "", "unknown command: docker " + sys.argv[1]])
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""
NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"
Said = tuple[int, str, str]
"""Exit code, stdout and stderr."""


def network(gateway: str | None, bridge: str | None = None) -> str:
    """What `docker network inspect bridge` prints, cut down to what we read."""
    config: dict[str, Any] = {"Subnet": "172.17.0.0/16"}
    if gateway is not None:
        config["Gateway"] = gateway
    options = {} if bridge is None else {"com.docker.network.bridge.name": bridge}
    return json.dumps([{"Name": "bridge", "IPAM": {"Config": [config]}, "Options": options}])


class FakeDocker:
    """The only program `docker` on the path. Without words of its own every command of it fails."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = folder / "docker"
        self._path.write_text(SCRIPT.format(python=sys.executable))
        self._path.chmod(0o755)
        self.answers = Path(f"{self._path}.json")
        self.says()
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        # What the engine says is kept for the process; here every test has another engine.
        monkeypatch.setattr(reach, "_address_by_engine", reach._address_by_engine.__wrapped__)

    def says(self, **commands: Said) -> None:
        """Set what each command answers from now on."""
        self.answers.write_text(json.dumps(commands))

    def engine(self, gateway: str | None, *, system: str = "Debian", bridge: str | None = None) -> None:
        """Answer as an engine whose bridge has that gateway."""
        self.says(info=(0, f"{system}\n", ""), network=(0, network(gateway, bridge), ""))

    @property
    def asked(self) -> list[str]:
        """The commands that were run."""
        asked = Path(f"{self._path}.asked")
        return asked.read_text().splitlines() if asked.exists() else []
