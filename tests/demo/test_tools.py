from pathlib import Path

from pytest_regcase.demo.tools import OUTPUT_LIMIT_CHARACTERS, changes, run_command
from tests.agents.waiting import is_gone, until


def test_a_command_sees_the_folder_and_both_its_outputs_come_back(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("")
    assert run_command("ls; echo problem >&2; exit 4", tmp_path, 30) == "here\nproblem\n[exit code 4]\n"


def test_a_command_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    for seconds in (0.5, 20.0):
        *said, note = run_command("sleep 600 & echo $!; wait", tmp_path, seconds).splitlines()
        assert note == f"[ended after {seconds:g} s]"
        if said:  # else the shell itself had not begun by then
            break
    (pid,) = said
    assert until(lambda: is_gone(int(pid)))


def test_a_long_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    text = run_command("echo start; head -c 50000 /dev/zero | tr '\\0' x; echo end", tmp_path, 30)
    assert text.startswith("start\nxxx")
    assert text.endswith("xxxend\n")
    assert "characters left out" in text
    assert len(text) < OUTPUT_LIMIT_CHARACTERS + 100


def test_without_a_git_tree_nobody_can_tell_what_changed(tmp_path: Path) -> None:
    assert changes(tmp_path) is None
