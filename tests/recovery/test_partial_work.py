"""Diffs compared by what they change."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.recovery.partial_work import changes, held
from tests.recovery.observed_samples import PARTIAL_DIFF, WHOLE_DIFF

NEW_FILE = """\
diff --git a/notes/plan.txt b/notes/plan.txt
new file mode 100644
index 0000000..3b18e51
--- /dev/null
+++ b/notes/plan.txt
@@ -0,0 +1 @@
+first fix add
\\ No newline at end of file
"""
DELETED = """\
diff --git a/old.py b/old.py
deleted file mode 100644
index 3b18e51..0000000
--- a/old.py
+++ /dev/null
@@ -1,2 +0,0 @@
-x = 1
--- y
"""
BINARY = """\
diff --git a/logo png.bin b/logo png.bin
index 816bded..dddd792 100644
Binary files a/logo png.bin and b/logo png.bin differ
"""
RENAMED = """\
diff --git a/one.py b/two_longer.py
similarity index 100%
rename from one.py
rename to two_longer.py
"""


def test_changes_are_read_by_file_whatever_the_headers() -> None:
    hunk = PARTIAL_DIFF[PARTIAL_DIFF.index("@@") :]
    plain = f"--- calc.py\t2026-04-12 09:31:07\n+++ ./calc.py\t2026-04-12 09:31:08\n{hunk}"
    found = changes(plain)
    assert list(found) == ["calc.py"]
    assert found == changes(PARTIAL_DIFF)
    assert dict(found["calc.py"].added) == {"    return a + b": 1}
    assert dict(found["calc.py"].removed) == {"    return a - b": 1}


def test_a_removed_line_that_looks_like_a_header_is_content() -> None:
    found = changes(DELETED + PARTIAL_DIFF)
    assert list(found) == ["old.py", "calc.py"]
    assert dict(found["old.py"].removed) == {"x = 1": 1, "-- y": 1}


def test_new_binary_and_renamed_files_are_changes_too() -> None:
    found = changes(NEW_FILE + BINARY + RENAMED)
    assert list(found) == ["notes/plan.txt", "logo png.bin", "two_longer.py"]
    assert found["logo png.bin"].marks == {"binary"}
    assert found["two_longer.py"].marks == {"rename from one.py", "rename to two_longer.py"}


@pytest.mark.parametrize("text", ["", "Both bugs are fixed.", "@@ -1 +1 @@\n+x", "+++ b/calc.py\n+x"])
def test_text_without_a_diff_has_no_changes(text: str) -> None:
    assert changes(text) == {}


def test_prose_around_a_diff_is_passed_over() -> None:
    assert changes(f"Here is my patch:\n\n{PARTIAL_DIFF}\nThat is all.\n") == changes(PARTIAL_DIFF)


def test_windows_line_ends_do_not_matter() -> None:
    assert changes(PARTIAL_DIFF.replace("\n", "\r\n")) == changes(PARTIAL_DIFF)


def test_the_whole_work_holds_the_partial_work() -> None:
    assert held(PARTIAL_DIFF, WHOLE_DIFF) == (2, 2, None)
    less = held(WHOLE_DIFF, PARTIAL_DIFF)
    assert (less.lines, less.of, less.whole) == (2, 4, False)
    assert less.missing == "calc.py: +    return sum(xs) / len(xs)"


def test_the_same_file_may_be_named_from_another_root() -> None:
    assert held(
        PARTIAL_DIFF, PARTIAL_DIFF.replace("a/calc.py", "a/repo/calc.py").replace("b/calc.py", "b/repo/calc.py")
    ).whole
    assert held(PARTIAL_DIFF.replace("b/calc.py", "b/repo/calc.py"), PARTIAL_DIFF).whole
    assert held(PARTIAL_DIFF, PARTIAL_DIFF.replace("calc.py", "other.py")).lines == 0


FIXED_FILE = "def add(a, b):\n    return a + b\n\n\ndef mean(xs):\n    return sum(xs) / (len(xs) + 1)\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FIXED_FILE, id="the whole file"),
        pytest.param(f"```python\n{FIXED_FILE}```", id="in a fence"),
        pytest.param("2c\n    return a + b\n.\n", id="a script for ed"),
        pytest.param("2c2\n<     return a - b\n---\n>     return a + b\n", id="a plain diff"),
        pytest.param(
            "*** calc.py\n--- calc.py\n***************\n*** 1,3 ****\n  def add(a, b):\n!     return a - b\n"
            "--- 1,3 ----\n  def add(a, b):\n!     return a + b\n",
            id="a context diff",
        ),
        pytest.param(json.dumps([{"path": "calc.py", "content": FIXED_FILE}]), id="files in JSON"),
    ],
)
def test_partial_work_is_found_also_where_it_is_no_unified_diff(text: str) -> None:
    assert held(PARTIAL_DIFF, text) == (1, 2, "calc.py: -    return a - b")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(re.sub(r"(?m)^(.*)$", "\x1b[32m\\1\x1b[m", PARTIAL_DIFF), id="coloured"),
        pytest.param(json.dumps({"files": [{"diff": PARTIAL_DIFF}]}), id="in JSON"),
    ],
)
def test_a_diff_is_read_through_what_it_is_wrapped_in(text: str) -> None:
    assert held(PARTIAL_DIFF, text).whole


@pytest.mark.parametrize("text", ["I could not fix add: return a + b was my plan.", "{" * 5000, "[1, null]", "}"])
def test_words_about_the_work_are_not_the_work(text: str) -> None:
    assert held(PARTIAL_DIFF, text).lines == 0


def test_a_line_that_any_file_may_hold_is_nobodys_work() -> None:
    bracket = "--- a/x.js\n+++ b/x.js\n@@ -1,1 +1,2 @@\n x\n+}\n"
    assert held(bracket, "function other() {\n}\n").lines == 0


def test_a_change_without_lines_is_compared_by_its_marks() -> None:
    assert held(BINARY, BINARY) == (1, 1, None)
    assert held(BINARY, PARTIAL_DIFF) == (0, 1, "logo png.bin: binary")


def test_blank_lines_prove_nothing() -> None:
    blank = "--- a/calc.py\n+++ b/calc.py\n@@ -1,1 +1,3 @@\n x\n+\n+   \n"
    assert held(blank, "") == (0, 0, None)


@given(st.text(), st.text())
def test_comparing_never_raises_and_never_finds_more_than_there_is(part: str, whole: str) -> None:
    found = held(part, whole)
    assert 0 <= found.lines <= found.of


@given(st.lists(st.text(alphabet="abc +-@\\", min_size=1, max_size=9), min_size=1, max_size=6))
def test_every_diff_holds_itself(lines: list[str]) -> None:
    body = "".join(f"+{line}\n" for line in lines)
    diff = f"--- a/x.txt\n+++ b/x.txt\n@@ -0,0 +1,{len(lines)} @@\n{body}"
    assert held(diff, diff).whole
    assert held(diff, diff).of == sum(bool(line.strip()) for line in lines)
