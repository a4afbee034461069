import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_regcase.supplier import memory


def group(folder: Path, **files: str) -> Path:
    found = folder / memory.group_name(7)
    found.mkdir()
    for name, text in files.items():
        (found / name.replace("__", ".")).write_text(text)
    return found


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({"memory__events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n"}, 1),
        ({"memory__oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"}, 2),
        ({"memory__oom_control": "oom_kill_disable 0\nunder_oom 0\n"}, None),
        ({}, None),
    ],
)
def test_the_kernels_count_is_read_in_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], count: int | None
) -> None:
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    assert memory.count_and_remove(group(tmp_path, **files), 7) == count


def test_an_empty_group_is_removed_and_no_other_folder_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = group(tmp_path)
    assert memory.count_and_remove(found, 7) is None
    assert found.exists(), "no cgroup: it lies elsewhere"
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    assert memory.count_and_remove(found, 8) is None
    assert found.exists(), "the group of another process"
    memory.count_and_remove(found, 7)
    assert not found.exists()


def test_a_plain_folder_is_never_taken_for_a_cgroup(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pytest_regcase.supplier import memory\n"
        "memory.cgroup_candidates = lambda: iter([Path(sys.argv[1])])\n"
        "print(memory.limit_memory().by)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "address-space"
    assert [*tmp_path.iterdir()] == []


def test_groups_are_looked_for_from_our_own_upwards() -> None:
    found = [*memory.cgroup_candidates()]
    assert len(found) == len({*found}) or os.path.samefile(found[0], found[-1])
    assert all(memory.CGROUPS in (each, *each.parents) for each in found)
