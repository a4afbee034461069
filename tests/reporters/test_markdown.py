"""The Markdown report: what needs a look first, short enough for a comment, and nothing in it does anything."""

import re

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytest_regcase.records.attempt import Finding
from pytest_regcase.records.decision import GateDecision, Reason
from pytest_regcase.reporters.markdown import LIMIT_BYTES, MarkdownReporter
from pytest_regcase.reporters.markdown_text import clipped, code, plain
from pytest_regcase.rules.gate import decide
from tests.reporters.decision_samples import everything
from tests.rules.attempt_samples import (
    a_case,
    an_attempt,
    case_inputs,
    control,
    findings,
    gate_inputs,
    simulation,
)

NASTY = [
    "a | b \\| c \\\\| d",
    "<script>alert(1)</script> <!-- x --> &amp; &#64;",
    "@someone and @org/team, a@b.c",
    "fixes #12, GH-7, org/repo#9",
    "see https://evil.example/x and www.evil.example or HTTP://a.b",
    "`code` ``more`` *bold* _it_ **x** ~~y~~ $x$ ![i](http://a/b.png) [l](x) [^1]",
    "first\nsecond\r\n\r\n# heading\n| --- |\n- item",
    "# heading",
    "---",
    "+ item",
    "1. item",
    "12) item",
    "=====",
    "> quoted",
    "    indented",
    "\x1b[31mred\x00\u202e",
    "| --- | --- |",
    "\\",
    "ends with \\",
    "javascript: mailto:a@b.c",
]


def rendered(markdown: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)


def words(text: str) -> str:
    """The text without what cannot be seen: breaks, steering characters, runs of spaces."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("write", [plain, code])
@pytest.mark.parametrize("place", ["{}", "- {}", "| a | b |\n| --- | --- |\n| x | {} |", "sentence: {} end"])
def test_text_is_shown_and_does_nothing(text: str, write: object, place: str) -> None:
    written = write(text)  # type: ignore[operator]
    assert "\n" not in written
    tokens = rendered(place.format(written))
    kinds = {each.type for each in tokens} | {child.type for each in tokens for child in each.children or ()}
    harmless = {"text", "code_inline", "text_special", "inline", "paragraph_open", "paragraph_close"}
    around = set() if place in ("{}", "sentence: {} end") else {"bullet_list", "list_item"}
    around |= {"table", "thead", "tbody", "tr", "th", "td"} if "| a |" in place else set()
    assert kinds <= harmless | {f"{each}_{end}" for each in around for end in ("open", "close")}
    inline = [each for each in tokens if each.type == "inline"][-1]
    shown = "".join(child.content for child in inline.children or ()).replace("\u200b", "")
    assert words(text) in words(shown)
    if "| a |" in place:
        assert sum(each.type == "td_open" for each in tokens) == 2


@pytest.mark.parametrize("text", NASTY)
def test_nothing_is_left_that_a_code_host_turns_into_a_mention_a_reference_or_a_link(text: str) -> None:
    tokens = rendered(plain(text))
    shown = "".join(child.content for each in tokens for child in each.children or () if child.type == "text")
    assert not re.search(r"@\w|#\d|(?i:gh-\d)|(?i:https?://)|(?i:www\.)|(?i:mailto:\w)", shown)


def test_a_long_text_is_cut_before_it_is_escaped() -> None:
    assert plain("*" * 600, 500) == "\\*" * 499 + "…"
    assert code("`" * 300, 200).count("`") == 199 + 2 * 200
    assert clipped("ab", 2) == "ab"


def test_what_needs_a_look_comes_first() -> None:
    text = MarkdownReporter().write(*everything("nightly"))
    assert text.startswith("## regcase: FAIL\n\nProfile `nightly`, `confirm:2`: 5 cases, 11 checks: 7 passed, ")
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|", text, re.M)
    assert rows == [
        ("a-case", "open", "1 passed, 1 FLAKY, 1 INCONCLUSIVE"),
        ("sweep-0412-trial-37", "open", "2 passed, 1 BROKEN, 1 NOT RUN"),
        ("came-back", "regressed", "2 passed"),
        ("noisy", "open, quarantined", "1 passed, 1 BROKEN"),
        ("claimed", "verifying", "2 passed"),
    ]
    assert "`deadline-no-answer-v1` BROKEN: max\\_retries, mark\\_failure; 7 requests followed the first" in text
    assert "- **UNPROVEN** `sweep-0412-trial-37`: 1 of 4 planned not run: auth-rejected-v1\n" in text
    assert "- **FAIL** cases/bad/case.toml:12: unknown key \\`symptomm\\`" in text
    assert "when there is a new one: `regcase fix came-back`\n" in text
    assert "fix 2: 11 of 29 clean live runs" in text


def test_a_green_decision_is_short() -> None:
    decision = decide(gate_inputs(case_inputs(checks=(control("finished"), simulation("recovered")))))
    text = MarkdownReporter().write(decision, [])
    assert "### Why" not in text
    assert text.startswith("## regcase: PASS\n")
    assert text.endswith("| open | 2 passed |  |\n")


def test_what_an_agent_says_stays_text() -> None:
    found = list(findings())
    says = "the status is `Done` | <b>@team</b> | https://evil.example\n\n# 1 #2"
    found[1] = Finding(expectation="max_retries", status="broken", says=says)
    attempt = an_attempt("not-recovered", findings=found)
    decision = decide(gate_inputs(case_inputs(checks=(control("finished"), simulation("not-recovered")))))
    text = MarkdownReporter().write(decision, [attempt])
    tokens = rendered(text)
    assert sum(each.type == "td_open" for each in tokens) == 4
    html = [child.content for each in tokens for child in each.children or () if child.type == "html_inline"]
    assert set(html) <= {"<br>"}
    assert (
        "the status is \\`Done\\` \\| &lt;b&gt;@\u200bteam&lt;/b&gt; \\| https:\u200b//evil.example # 1 #\u200b2"
        in text
    )


def test_a_case_with_many_broken_checks_is_one_row_of_bounded_length() -> None:
    checks = [simulation("not-recovered", "not-recovered", name=f"s-{n}") for n in range(50)]
    decision = decide(gate_inputs(case_inputs(checks=(control("finished"), *checks))))
    text = MarkdownReporter().write(decision, [])
    assert text.count(" BROKEN: ") == 8
    assert "<br>… and 42 more |" in text


def test_a_huge_decision_stays_below_what_a_comment_may_hold_and_says_what_is_left_out() -> None:
    broken = [
        case_inputs(
            a_case(f"case-{n:04}"), checks=(control("finished"), simulation("not-recovered", "not-recovered"))
        )
        for n in range(900)
    ]
    more = [Reason(code="note", text="ü" * 5000, red=False)] * 400
    decision = decide(gate_inputs(*broken))
    decision = GateDecision(**{**dict(decision), "reasons": (*more[:1], *decision.reasons, *more)})
    text = MarkdownReporter().write(decision, [])
    assert 50_000 < len(text.encode()) <= LIMIT_BYTES
    left = [int(each) for each in re.findall(r"… and (\d+) more (?:reasons|cases) that have no room here", text)]
    assert len(left) == 2
    assert text.count("\n| `case-") + left[1] == 900
    assert len(re.findall(r"^- (?:note|\*\*)", text, re.M)) + left[0] == len(decision.reasons)
