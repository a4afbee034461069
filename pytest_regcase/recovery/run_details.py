"""Run details: what differs from one run of the same thing to the next, and says nothing of the failure.

Knows how paths, ports, times, ids and addresses look in logs. Status codes, other numbers and line numbers stay as
they are: they may be what tells two causes apart. Must not import the judge.
"""

import re
from collections.abc import Iterable

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_UUID = r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b[0-9a-f]{32}\b"
_DATE = r"\b\d{4}[-/]\d\d[-/]\d\d"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT)\b|\s?[+-]\d\d:?\d\d\b)?"
_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_UNIT = r"(?:ms|us|µs|ns|secs?|seconds?|milliseconds?|minutes?|hours?|s)"

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), placeholder)
    for pattern, placeholder in (
        # Where a Python or its packages are installed: the frames below stay, with their lines.
        (r"(?<![\w.])/(?:[^\s\"':,()]*/)?(?=(?:site-packages|dist-packages|lib/python3\.\d+)/)", "<path>/"),
        (r"(?<=/)tmp[a-z0-9_]{8}\b", "<path>"),
        (r"\bsk-[\w-]*\*+\w*", "<key>"),
        # ids before numbers: a number inside one is none of its own
        (_UUID, "<uuid>"),
        (r"\bindex [0-9a-f]{7,40}\.\.[0-9a-f]{7,40}\b", "index <blob>"),
        (r"\b(?:sha256:)?[0-9a-f]{64}\b|\b[0-9a-f]{40}\b", "<blob>"),
        (r"\b(commit|HEAD is now at) [0-9a-f]{7,12}\b", r"\1 <blob>"),
        (r"(?<=\[)([\w./-]+(?: \(root-commit\))?) [0-9a-f]{7,12}(?=\])", r"\1 <blob>"),
        (r"\b0x[0-9a-f]{4,}\b", "<address>"),
        (
            r"\b(?:req|chatcmpl|cmpl|call|toolu|msg|resp|fc|rs|gen|trace|span)[-_](?=[\w-]*\d)[\w-]{8,}",
            "<id>",
        ),
        (
            r"((?:request|req|call|trace|span|session|correlation|response)[ _-]?id[\"']?\s*[:=]\s*[\"']?)[\w.-]+",
            r"\1<id>",
        ),
        # times before ports and durations
        (
            r"\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? (?:\d{1,2} [a-z]{3} \d{4}|[a-z]{3} +\d{1,2}) "
            rf"{_CLOCK}(?: \d{{4}})?{_ZONE}",
            "<time>",
        ),
        (rf"{_DATE}(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?{_ZONE})?", "<time>"),
        (rf"(?<![\d:]){_CLOCK}(?![\d:]){_ZONE}", "<time>"),
        (r"(?<![\w.])1\d{9}(?:\.\d+|\d{3})?(?![\w.])", "<time>"),
        (r"((?:localhost|\[[0-9a-f:]+\]|\b\d{1,3}(?:\.\d{1,3}){3}|https?://[\w.-]+):)\d{1,5}\b", r"\1<port>"),
        (r"(['\"](?:localhost|\d{1,3}(?:\.\d{1,3}){3})['\"], *)\d{2,5}\b", r"\1<port>"),
        (r"\b(port[\"']?\s*[:=]?\s*)\d{2,5}\b", r"\1<port>"),
        (
            rf"\b((?:elapsed|duration|latency|took|(?:\w+_)?(?:seconds|secs|ms|duration))[\"']?\s*[:=]?\s*){_NUMBER}\b",
            r"\1<duration>",
        ),
        (rf"(?<![\w.])(?:\d+h ?)?\d+m ?{_NUMBER}s\b|(?<![\w.]){_NUMBER}[ -]?{_UNIT}\b", "<duration>"),
    )
)


def without_run_details(text: str, own: Iterable[tuple[str, str]] = ()) -> str:
    """Return `text` as every run of the same thing would have written it.

    Each of `own` is a text of this one run (its folder, its key, its base URL) and what stands for it; longer ones
    are looked for first. Colours are taken out; ends of lines and spaces at the end are made alike.
    """
    for known, placeholder in sorted(own, key=lambda each: -len(each[0])):
        if known:
            text = text.replace(known, placeholder)
    text = _ANSI.sub("", text)
    for pattern, placeholder in _RULES:
        text = pattern.sub(placeholder, text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
