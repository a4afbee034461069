import tomllib

import pytest

from pytest_regcase.case_files.rewriting import set_value
from pytest_regcase.errors import UsageRefused

TEXT = """\
id = "a"
[observation]  # sealed
symptom = "s"   # as seen
conditions = { limit = 3 }
[[hypotheses]]
id = "one"
[[hypotheses]]
id = "two"
[seal]
observation = "sha256:1"
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_value_is_replaced_where_it_stands_and_nothing_else(newline: str) -> None:
    text = TEXT.replace("\n", newline)
    new = set_value(text, ("observation", "symptom"), 'it said "no"')
    assert new == text.replace('"s"   #', '"it said \\"no\\""   #')
    assert set_value(text, ("observation", "conditions", "limit"), 4) == text.replace("limit = 3", "limit = 4")


def test_a_new_key_goes_into_its_table() -> None:
    assert set_value(TEXT, ("hypotheses", 1, "simulations"), ["a-v1"]) == TEXT.replace("[seal]", "[seal]").replace(
        '[[hypotheses]]\nid = "two"', '[[hypotheses]]\nsimulations = ["a-v1"]\nid = "two"'
    )
    new = set_value(TEXT, ("observation", "a key"), 1)
    assert new == TEXT.replace("# sealed\n", '# sealed\n"a key" = 1\n')


def test_a_new_table_goes_before_the_seal() -> None:
    new = set_value(TEXT, ("handover", "rerun_rule", "risk"), "0.10")
    assert new == TEXT.replace("[seal]", '[handover.rerun_rule]\nrisk = "0.10"\n\n[seal]')
    assert tomllib.loads(new)["handover"] == {"rerun_rule": {"risk": "0.10"}}


def test_a_header_that_ends_the_file_and_a_file_without_a_seal() -> None:
    assert set_value("[replies]", ("replies", "source"), "script") == '[replies]\nsource = "script"\n'
    assert set_value("a = 1", ("replies", "source"), "script") == 'a = 1\n\n[replies]\nsource = "script"\n'


@pytest.mark.parametrize("text", ["replies = { source = 'script' }\n", "replies.source = 'script'\n"])
def test_what_nothing_can_be_added_to_is_refused(text: str) -> None:
    with pytest.raises(UsageRefused, match=r"Couldn't set replies\.file: replies is written in a form"):
        set_value(text, ("replies", "file"), "x")
