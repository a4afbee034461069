"""Folders that may not be listed, for tests that root runs as well: permissions do not stop root."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest


def forbid_listing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Refuse whoever lists `folder`; everything else about it stays as it is."""

    def refusing(real: Any, path: Any = ".") -> Any:
        if Path(path) == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, partial(refusing, getattr(os, name)))
