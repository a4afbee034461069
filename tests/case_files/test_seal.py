import subprocess
import tomllib
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case, observation_digest, seal_case, seal_text
from pytest_regcase.errors import SealError, UsageRefused
from tests.case_files.conftest import MINIMUM, WriteCase

FIX = '[[fix]]\nnumber = 1\nrevision = "r"\nledger_id = "l"\nrows = 0\nat = 2026-01-01T00:00:00Z\nby = "b"\n'


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def broken(path: Path) -> list[str]:
    with pytest.raises(SealError) as caught:
        load_case(path)
    return [each.replace(str(path), "case.toml") for each in caught.value.problems]


def test_sealing_adds_one_table_at_the_end_and_nothing_else(write_case: WriteCase) -> None:
    path = write_case(sealed=False)
    before = path.read_text()
    done = seal_case(path)
    assert done.changed
    assert path.read_text() == f'{before}\n[seal]\nobservation = "{done.digest}"\n'


def test_sealing_twice_changes_no_byte(write_case: WriteCase) -> None:
    path = write_case()
    before = path.read_bytes()
    assert not seal_case(path).changed
    assert path.read_bytes() == before


def test_the_seal_stands_before_the_appended_records_and_their_comment(write_case: WriteCase) -> None:
    text = MINIMUM + '\n# two guesses, nothing more\n[baseline]\nfailures = 1\ntrials = 2\nkind = "fresh"\n'
    path = write_case(text + "\n# claimed by hand\n" + FIX)
    tail = path.read_text().removeprefix(text)
    seal = tomllib.loads(path.read_text())["seal"]["observation"]
    assert tail == f'\n[seal]\nobservation = "{seal}"\n\n# claimed by hand\n{FIX}'


@pytest.mark.parametrize("placeholder", ['[seal]\nobservation = "sha256:..."\n', "[seal]\n", "[seal]  # later\n"])
def test_a_placeholder_is_replaced_in_place(write_case: WriteCase, placeholder: str) -> None:
    path = write_case(MINIMUM + placeholder + "\n" + FIX)
    text = path.read_text()
    assert text.count("[seal]") == 1
    assert text.startswith(MINIMUM + "[seal]")
    assert text.endswith("\n" + FIX)
    load_case(path)


def test_windows_line_endings_stay(write_case: WriteCase) -> None:
    path = write_case((MINIMUM + FIX).replace("\n", "\r\n"))
    content = path.read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n")
    load_case(path)


def test_line_endings_do_not_change_the_seal() -> None:
    text = MINIMUM.replace('symptom = "', 'symptom = """\nfirst\nmodel ').replace('step 6"', 'step 6"""')
    one, other = (tomllib.loads(each)["observation"] for each in (text, text.replace("\n", "\r\n")))
    assert observation_digest(one) == observation_digest(other)


def test_an_edited_observation_is_not_sealed_again_silently(write_case: WriteCase) -> None:
    path = write_case()
    path.write_text(path.read_text().replace("step 5", "step 4"))
    before = path.read_bytes()
    with pytest.raises(UsageRefused, match="is not what was sealed") as caught:
        seal_case(path)
    assert caught.value.exit_code == 2
    assert path.read_bytes() == before


def test_the_seal_covers_what_is_there_and_not_the_cause_status() -> None:
    observation = tomllib.loads(MINIMUM)["observation"]
    seal = observation_digest(observation)
    assert observation_digest(observation | {"cause_status": "confirmed"}) == seal
    assert observation_digest(observation | {"labels": []}) != seal
    assert observation_digest(observation | {"symptom": observation["symptom"] + "."}) != seal


def test_one_instant_in_two_spellings_seals_alike() -> None:
    spelt = [
        tomllib.loads(MINIMUM.replace("[handover]", f"observed_at = {each}\n[handover]"))["observation"]
        for each in ("2026-04-12T09:31:07Z", "2026-04-12T11:31:07+02:00", "2026-04-12 09:31:07.000Z")
    ]
    assert len({observation_digest(each) for each in spelt}) == 1


def test_every_single_character_counts(write_case: WriteCase) -> None:
    path = write_case()
    text = path.read_text()
    path.write_text(text.replace('trial-37"\ncause', 'trial-38"\ncause'))
    assert path.read_text() != text
    first, second = broken(path)
    assert first.startswith("case.toml:5: [observation] is not what was sealed (sealed sha256:")
    assert "compare lines 5 to 8 (symptom, source_event)" in second
    assert "cannot tell which key changed" in second


def test_a_committed_version_shows_the_field(write_case: WriteCase) -> None:
    path = write_case(MINIMUM.replace("[handover]", '[observation.error]\ntype = "E"\nmessage = "m"\n[handover]'))
    git(path.parent, "init", "-q")
    git(path.parent, "add", ".")
    git(path.parent, "commit", "-qm", "as sealed")
    edited = path.read_text().replace("step 5", "step 4").replace('type = "E"\n', "")
    path.write_text(edited.replace('cause_status = "unknown"\n', 'cause_status = "unknown"\noutcome = "failed"\n'))
    git(path.parent, "commit", "-qam", "an edit that somebody committed")
    found = broken(path)
    assert len(found) == 4
    assert found[1].startswith('case.toml:11: observation.error.type is gone; it was sealed as "E" (commit ')
    assert found[2].startswith('case.toml:9: observation.outcome is "failed"; it was not there when it was sealed')
    assert found[3].startswith('case.toml:6: observation.symptom is "model answered step 4')
    assert 'sealed as "model answered step 5' in found[3]


def test_text_that_is_sealed_already_is_returned_as_it_is() -> None:
    sealed = seal_text(MINIMUM)
    assert seal_text(sealed) == sealed


@pytest.mark.parametrize(
    ("top", "end"), [("seal = {}\n", ""), ('seal = "x"\n', ""), ("", '\n[[seal]]\nobservation = "x"\n')]
)
def test_a_seal_in_a_form_that_cannot_be_filled_in_is_said(write_case: WriteCase, top: str, end: str) -> None:
    path = write_case(top + MINIMUM + end, sealed=False)
    before = path.read_bytes()
    with pytest.raises(UsageRefused, match=r"it has a seal that is no \[seal\] table") as caught:
        seal_case(path)
    assert caught.value.text.endswith("Take it out; `regcase seal` writes it.")
    assert path.read_bytes() == before
