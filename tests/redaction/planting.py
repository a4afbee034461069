"""Puts a text into every kind of place that a log has for text, whatever its format.

Knows JSON, JSON lines, XML, zips and plain text; knows no trial format, so that a new one is covered as it comes.
"""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pytest_regcase.importers.zip_members import ZipMembers
from tests.importers.zips import DEFLATED, write_zip

TIMES_A_KEY = 2
"""How often values of one key are planted in a file: once would be enough, the second is another step's."""

PARAGRAPHS = 8


def planted_copy(source: Path, target: Path, text: str) -> Path:
    """Copy a file or folder to `target` with `text` in it, and return where it is."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    for path in [target] if target.is_file() else sorted(target.rglob("*")):
        if path.is_file():
            _plant_file(path, text)
    return target


def _plant_file(path: Path, text: str) -> None:
    content = path.read_bytes()
    if content.startswith(b"PK\x03\x04"):
        with ZipMembers(path) as archive:
            members = [(name, _planted(archive.read(name), text)) for name in archive.names]
        write_zip(path, members, method=DEFLATED)
    else:
        path.write_bytes(_planted(content, text))


def _planted(content: bytes, text: str) -> bytes:
    decoded = content.decode("utf-8", "replace")
    if decoded.lstrip().startswith("<?xml"):
        return _in_xml(decoded, text)
    try:
        return json.dumps(_in_value(json.loads(decoded), text, Counter())).encode()
    except ValueError:
        pass
    seen: Counter[str] = Counter()
    lines: list[str] = []
    found = False
    for line in decoded.splitlines():
        try:
            lines.append(json.dumps(_in_value(json.loads(line), text, seen)))
            found = True
        except ValueError:  # a last line that was cut off, or no JSON at all
            lines.append(line)
    if found:
        return ("\n".join(lines) + ("\n" if decoded.endswith("\n") else "")).encode()
    # Plain text: which paragraph is read as what, only its importer knows.
    paragraphs = decoded.split("\n\n")
    planted = [f"{each.rstrip()}\n{text}" for each in paragraphs[:PARAGRAPHS]]
    return "\n\n".join((*planted, *paragraphs[PARAGRAPHS:])).encode()


def _in_value(value: Any, text: str, seen: Counter[str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _in_value(item, text, seen, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_in_value(item, text, seen, key) for item in value]
    if not isinstance(value, str):
        return value
    if value.startswith(("{", "[")):
        try:
            return json.dumps(_in_value(json.loads(value), text, seen, key))
        except ValueError:
            pass
    # What holds a space, and is no date, was written for people or for a model.
    if " " not in value or value[0].isdigit() or seen[key] >= TIMES_A_KEY:
        return value
    seen[key] += 1
    return f"{value}\n{text}"


def _in_xml(decoded: str, text: str) -> bytes:
    root = ElementTree.fromstring(decoded)
    for element in root.iter():
        if element.text and " " in element.text.strip():
            element.text += f"\n{text}"
        if " " in element.get("message", ""):
            element.set("message", f"{element.get('message')}\n{text}")
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written
