"""Samples changed by hypothesis: bytes, values, records and members. Whatever comes out is read or refused.

`REGCASE_FUZZ=20` runs twenty times as many examples, other ones each time.
"""

import contextlib
import copy
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.protocol import Importer, Peek
from pytest_regcase.importers.reading import read_head
from pytest_regcase.records.canonical import canonical_json
from tests.importers.said import documents
from tests.importers.zips import STORED, Member, read_members, write_zip

TIMES: Final = int(os.environ.get("REGCASE_FUZZ", "1"))
ODD: Final[Sequence[Any]] = (
    *(None, True, False, 0, 1, -1, 2**63, 10**30, 0.5, 1e308, float("nan"), float("inf")),
    *(
        "",
        "x",
        "\ud800",
        "\x1b[2J",
        "null",
        "{",
        "[1",
        '{"a": 1}',
        "2026-13-45T99:99:99Z",
        "0001-01-01T00:00:00+23:59",
    ),
    *([], {}, [[]], [None], [1, "x"], {"": None}, {"text": 1}, {"type": []}, [{"role": "assistant"}]),
)
"""What a harness never writes, and a broken one might."""
values = (
    st.sampled_from(ODD)
    | st.text(max_size=6)
    | st.integers(-(10**20), 10**20)
    | st.dictionaries(st.text(max_size=4), st.sampled_from(ODD), max_size=2)
)
number = st.integers(0, 2**20)
value_changes = st.lists(
    st.tuples(number, number, st.sampled_from(["put", "put", "remove", "double", "copy", "wrap"]), values),
    min_size=1,
    max_size=4,
)
byte_changes = st.lists(
    st.tuples(
        number, st.sampled_from(["flip", "cut", "drop", "double", "insert"]), st.binary(min_size=1, max_size=4)
    ),
    min_size=1,
    max_size=4,
)
Change = Callable[[Any], bytes]
ValueChange = tuple[int, int, str, Any]


def check_changed_samples(reader: Importer, sample: Path, source: Path, scratch: Path) -> None:
    """Change a copy of a sample again and again, and read `source`, which is it or lies below it, each time.

    Raises:
        Exception: whatever the importer raises besides `ImportRefused`.
    """
    changing = scratch / sample.name
    files = [changing]
    if sample.is_dir():
        shutil.copytree(sample, changing, dirs_exist_ok=True)
        files = sorted(each for each in changing.rglob("*") if each.is_file())
    else:
        shutil.copyfile(sample, changing)
    examples = max(3, 16 // len(files)) * TIMES
    for file in files:
        untouched = file.read_bytes()
        for changes, change in list(_kinds(file, scratch)):
            _check(reader, changing / source.relative_to(sample), file, changes, change, examples)
        file.write_bytes(untouched)


def check_random_bytes(reader: Importer, scratch: Path) -> None:
    """Read bytes that are no log.

    Raises:
        Exception: whatever the importer raises besides `ImportRefused`.
    """
    beginnings = [b"", b"{", b"[", b'{"a": ', b"<", b"PK\x03\x04", b"# "]
    changes = st.tuples(st.sampled_from(beginnings), st.binary(max_size=120))
    path = scratch / "random"
    _check(reader, path, path, changes, b"".join, 25 * TIMES)


def read_everything(reader: Importer, path: Path) -> None:
    """Ask whether it is the importer's, list and read all of it, and write what was read."""
    if path.is_file():
        reader.handles(Peek(path, "file", read_head(path)))
    with contextlib.suppress(ImportRefused):
        for ref in reader.list_trials(path):
            canonical_json(ref.to_sparse()).decode("utf-8")
            with contextlib.suppress(ImportRefused):
                canonical_json(reader.read(path, ref).to_sparse()).decode("utf-8")


def _check(reader: Importer, source: Path, file: Path, changes: Any, change: Change, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=TIMES == 1,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(changes)
    def check(drawn: Any) -> None:
        file.write_bytes(change(drawn))
        read_everything(reader, source)

    check()


def _kinds(file: Path, scratch: Path) -> Iterator[tuple[Any, Change]]:
    """Yield how the content of a file may be changed."""
    content = file.read_bytes()
    if content:
        yield byte_changes, lambda changes: changed_bytes(content, changes)
    if content.startswith(b"PK"):
        members = read_members(file)
        yield (
            st.tuples(number, value_changes),
            lambda drawn: write_zip(scratch / "zip", changed_members(members, *drawn), method=STORED).read_bytes(),
        )
    elif any(map(_is_container, documents(content))):
        yield value_changes, lambda changes: changed_values(content, changes)


def changed_bytes(content: bytes, changes: Sequence[tuple[int, str, bytes]]) -> bytes:
    """Return the content with bytes changed, cut, left out, doubled and put in."""
    for place, action, put in changes:
        at = place % (len(content) or 1)
        if action == "cut":
            content = content[: max(at, len(content) // 2)]
        elif action == "drop":
            content = content[:at] + content[at + 1 + put[0] :]
        elif action == "double":
            content = content[:at] + content[at : at + 1 + put[0]] + content[at:]
        else:
            content = content[:at] + put + content[at + (len(put) if action == "flip" else 0) :]
    return content


def changed_members(members: Sequence[Member], which: int, changes: Sequence[ValueChange]) -> list[Member]:
    """Return the members with the values of one changed, and perhaps without another."""
    at = which % len(members)
    name, content = members[at]
    found = [*members[:at], (name, changed_values(content, changes)), *members[at + 1 :]]
    return found[1:] if which % 7 == 0 else found


def changed_values(content: bytes, changes: Sequence[ValueChange]) -> bytes:
    """Return the JSON document or lines with values replaced, left out, doubled, copied and wrapped."""
    parts = documents(content)
    values = [json.loads(each) if _is_container(each) else each.decode("utf-8", "replace") for each in parts]
    found = changed(values, changes)
    lines = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in found)
    return lines.encode("utf-8", "surrogatepass")


def changed(value: list[Any], changes: Sequence[ValueChange]) -> list[Any]:
    """Change places of a JSON value; each sort of place is as likely as any other, however often it is there."""
    sorts: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for place in _places(value):
        sorts.setdefault(tuple(each if isinstance(each, str) else "*" for each in place), []).append(place)
    ways = list(sorts.values())
    for sort, nth, action, put in changes:
        of_sort = ways[sort % len(ways)]
        place = of_sort[nth % len(of_sort)]
        # A change before this one may have taken the way.
        with contextlib.suppress(KeyError, IndexError, TypeError):
            holder, last = _at(value, place[:-1]), place[-1]
            if action == "remove":
                del holder[last]
            elif action == "double" and isinstance(holder, list):
                holder.insert(last, copy.deepcopy(holder[last]))
            elif action == "copy":
                holder[last] = copy.deepcopy(_at(value, ways[nth % len(ways)][0]))
            elif action == "wrap":
                holder[last] = [holder[last]] if nth % 2 else {"x": holder[last]}
            else:
                holder[last] = copy.deepcopy(put)  # it is drawn again, and must not have changed
    return value


def _at(value: Any, place: Sequence[Any]) -> Any:
    for key in place:
        value = value[key]
    return value


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield (*place, key)
        yield from _places(item, (*place, key))


def _is_container(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict | list)
    except ValueError:
        return False
