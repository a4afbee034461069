"""The library that gives an agent a clock of its own, and the variables that load it.

Builds it from `clock.c`, which says what it does, with a C compiler. What makes the clock fast is the supplier's.
"""

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pytest_regcase.errors import MachineryError, UsageRefused

SOURCE = Path(__file__).with_name("clock.c")
COMPILERS = ("cc", "gcc", "clang")
# Fortified headers define some of the functions inline that are to be replaced.
FLAGS = ("-O2", "-std=gnu11", "-shared", "-fPIC", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=0")
LIBRARIES = ("-ldl", "-lpthread")


def library(folder: Path) -> Path:
    """Return the library, built into `folder` unless it is there: one for each source, processor and libc.

    Several processes may build it at once: each renames a whole file.

    Raises:
        UsageRefused: no such clock here: not Linux, no compiler, or a folder that the loader cannot name.
        MachineryError: the compiler failed.
        OSError: the folder takes no file.
    """
    if sys.platform != "linux":
        raise UsageRefused(
            f"Couldn't give the agent a clock of its own: that works on Linux, and this is {sys.platform}.\n"
            "Set time_scale = 1, or run on Linux."
        )
    source = SOURCE.read_bytes()
    kind = "-".join((platform.machine(), *platform.libc_ver()))
    path = folder.absolute() / f"clock-{hashlib.sha256(source + kind.encode()).hexdigest()[:16]}.so"
    # The loader takes white space and colons for the end of a name (ld.so(8)), and expands $ORIGIN and the like.
    if re.search(r"[\s:$]", str(path)):
        raise UsageRefused(
            f"Couldn't give the agent a clock of its own: LD_PRELOAD cannot name {path}.\n"
            "Move the project to a folder without white space, colons and dollar signs, or set time_scale = 1."
        )
    if not path.is_file():
        _build(path)
    return path


def variables(library: Path, state: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return what to set beside `env` so that a program, and what it starts, has the clock of the `state` file."""
    others = env.get("LD_PRELOAD")
    return {"LD_PRELOAD": f"{library}:{others}" if others else str(library), "REGCASE_CLOCK": str(state)}


def compiler() -> tuple[str, ...]:
    """Return the command of a C compiler: the machine's, else the one that the extra `clock` brings.

    Raises:
        UsageRefused: there is none.
    """
    for name in COMPILERS:
        if (found := shutil.which(name)) is not None:
            return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise UsageRefused(
        f"Couldn't give the agent a clock of its own: no C compiler ({', '.join(COMPILERS)}) builds it here.\n"
        "Install one, or run `pip install 'pytest-regcase[clock]'`, which brings one; or set time_scale = 1."
    )


def _build(path: Path) -> None:
    command = compiler()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=path.parent, suffix=".so")
    os.close(handle)
    try:
        done = subprocess.run(
            [*command, *FLAGS, "-o", made, str(SOURCE), *LIBRARIES],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise MachineryError(
                f"Couldn't build the agent's clock: {command[0]} ended with {done.returncode}.\n"
                f"It said: {done.stdout.strip()[-2000:] or 'nothing'}"
            )
        os.replace(made, path)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise
