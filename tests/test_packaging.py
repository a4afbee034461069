"""The wheel holds the package and the built-in simulations, and neither tests nor cases."""

import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder


def test_what_is_in_the_wheel(tmp_path: Path, repository: Path) -> None:
    built = next(WheelBuilder(str(repository)).build(directory=str(tmp_path), versions=["standard"]))
    with zipfile.ZipFile(built) as wheel:
        names = wheel.namelist()
    fixtures = {path.name for path in (repository / "fixtures").glob("*.toml")}
    assert fixtures
    assert {Path(name).name for name in names if name.startswith("pytest_regcase/fixtures/")} == fixtures
    assert {"pytest_regcase/py.typed", "pytest_regcase/agents/clock.c"} <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"pytest_regcase"}
