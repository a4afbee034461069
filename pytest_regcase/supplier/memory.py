"""Running out of memory for real: in a memory cgroup of our own, else against a limit of our address space.

Linux, cgroup v1 or v2, where a group may be made beside our own or above it; anywhere else the address space. The
proof of a kernel kill is the group's own ``oom_kill`` counter, which the parent reads after the end. Standard
library only: both processes import it.
"""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CGROUPS = Path("/sys/fs/cgroup")
LIMIT_BYTES = 48 * 1024 * 1024
"""What may be allocated on top of what the process has. Small: a kill takes a tenth of a second."""
_PIECE_BYTES = 1024 * 1024
_GIVE_UP_AFTER = 4


@dataclass(frozen=True)
class MemoryLimit:
    """What limits this process's memory."""

    by: Literal["cgroup", "address-space"]
    bytes: int
    group: str | None = None
    """Folder of the cgroup, which holds this process alone."""


def exhaust(on_limited: Callable[[MemoryLimit], None]) -> str:
    """Allocate until the kernel kills us; returns what was said where an allocation failed instead.

    Raises:
        MemoryError: nothing stopped us; nothing is claimed then.
    """
    limit = limit_memory()
    on_limited(limit)
    kept: list[bytearray] = []
    try:
        while len(kept) * _PIECE_BYTES < _GIVE_UP_AFTER * limit.bytes:
            # Written to, since memory counts when it is touched.
            kept.append(bytearray(b"\1") * _PIECE_BYTES)
    except MemoryError:
        held = len(kept)
        kept.clear()
        return f"an allocation failed after {held} MiB"
    kept.clear()
    raise MemoryError(f"{_GIVE_UP_AFTER * limit.bytes} bytes were allocated past a limit of {limit.bytes}")


def limit_memory() -> MemoryLimit:
    """Move this process into a memory cgroup of its own, or limit its address space where none can be made.

    Raises:
        OSError, ValueError: the address space cannot be limited either.
    """
    for parent in cgroup_candidates():
        group = parent / group_name(os.getpid())
        with suppress(OSError):
            group.mkdir()
            try:
                _limit_group(group)
                _put(group / "cgroup.procs", str(os.getpid()))
            except OSError:
                group.rmdir()
                raise
            return MemoryLimit("cgroup", LIMIT_BYTES, str(group))
    size = _address_space_bytes() + LIMIT_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
    return MemoryLimit("address-space", LIMIT_BYTES)


def group_name(pid: int) -> str:
    """Return the name of the cgroup that a supplier makes for itself."""
    return f"pytest-regcase-{pid}"


def count_and_remove(group: Path, pid: int) -> int | None:
    """Return how many processes of this group the kernel killed for want of memory, and remove the group.

    None: there is no such group of that process, or it does not count.
    """
    if group.name != group_name(pid) or CGROUPS not in group.parents:
        return None
    killed = None
    for name in ("memory.events", "memory.oom_control"):
        with suppress(OSError):
            facts = dict(line.split(maxsplit=1) for line in (group / name).read_text().splitlines() if " " in line)
            killed = int(facts["oom_kill"]) if "oom_kill" in facts else killed
    with suppress(OSError):
        group.rmdir()
    return killed


def cgroup_candidates() -> Iterator[Path]:
    """Yield the folders of memory cgroups in which ours may be made, our own first, then those above it.

    With v2 a group that holds processes cannot pass the memory controller on, so it is often one above.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            root = CGROUPS / "memory"
        elif number == "0":
            root = CGROUPS
        else:
            continue
        own = root / path.lstrip("/")
        yield from (each for each in (own, *own.parents) if each == root or root in each.parents)


def _limit_group(group: Path) -> None:
    version_2 = (group / "memory.max").exists()
    _put(group / ("memory.max" if version_2 else "memory.limit_in_bytes"), str(LIMIT_BYTES))
    with suppress(OSError):
        _put(group / ("memory.swap.max" if version_2 else "memory.swappiness"), "0")


def _put(path: Path, text: str) -> None:
    # Never created: a folder in which the kernel made no such file is no cgroup.
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def _address_space_bytes() -> int:
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text().split()[0]) * resource.getpagesize()
    # Elsewhere nothing says how much is mapped; the largest resident size is less, so the limit is tighter.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
