import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.case import Kept
from pytest_regcase.redaction import KINDS, Keep, Redactor, redact
from tests.redaction.planted import PLANTED

TEXT = "ada@mail.corp.io and bob@mail.corp.io in /home/alice/x"


def test_a_kind_is_kept_and_the_others_go() -> None:
    keep = Keep(["email"], "public addresses")
    redactor = Redactor(keep=keep)
    assert redactor.text(TEXT) == "ada@mail.corp.io and bob@mail.corp.io in /home/REDACTED-user-1/x"
    assert redactor.counts == {"home_path": 1}
    assert keep.records(redactor.kept) == (Kept(what="email", count=2, why="public addresses"),)
    assert keep.unused(redactor.kept) == ()


def test_a_pattern_keeps_what_it_matches_whole() -> None:
    keep = Keep([r"ada@.*", "mail", "api_key"], "hers is public")
    redactor = Redactor(keep=keep)
    assert redactor.text(TEXT) == "ada@mail.corp.io and REDACTED-email-1 in /home/REDACTED-user-1/x"
    assert keep.records(redactor.kept) == (Kept(what=r"ada@.*", count=1, why="hers is public"),)
    assert keep.unused(redactor.kept) == ("api_key", "mail")


@pytest.mark.parametrize("why", [None, "", "  "])
def test_a_reason_is_asked_for(why: str | None) -> None:
    with pytest.raises(UsageRefused, match="--keep-reason"):
        Keep(["email"], why)
    assert Keep([], why).records({}) == ()


def test_a_reason_for_nothing_is_refused() -> None:
    with pytest.raises(UsageRefused, match="Say with --keep what"):
        Keep([], "public list")


def test_what_is_no_pattern_is_refused_without_its_text() -> None:
    with pytest.raises(UsageRefused, match="no kind and no regular expression") as refusal:
        Keep(["hunter2("], "because")
    assert "hunter2" not in refusal.value.text
    assert "api_key" in refusal.value.text


def test_the_kinds_are_those_that_a_redactor_finds() -> None:
    found = {kind for each in PLANTED for kind in redact(each.line)[1]}
    assert found | {"user_name"} == KINDS
