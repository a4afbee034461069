"""Which sentences of a note say why something failed, where nobody has shown it.

Pure text, English, and made for precision: a guess in other words passes, a question or a plan to look must never
be called a guess. Knows causes by the words people have for them; knows no case and no evidence.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from pytest_regcase.records.words import HypothesisClass

WORDS_OF_CLASS: Final[Mapping[HypothesisClass, str]] = MappingProxyType(
    {
        "deadline": r"time-?outs?|timed[ -]out|timing out|deadlines?|too slow|hung",
        "resource-exhaustion": r"oom\w*|memory|vram|out of (?:disk|ram)|resource exhaustion|exhausted resources",
        "auth": r"(?:api[ -]?)?keys?|tokens?|credentials?|auth\w*|permissions?|40[13]s?",
        "budget": r"budgets?|quotas?|credits?|billing",
        "rate-limit": r"rate[ -]?limit\w*|throttl\w+|429s?",
        "overload": r"overload\w*|overwhelmed|50[0-9]s?|529s?|outages?",
        "network": r"networks?|networking|connections?|dns|firewalls?|proxy|gateways?|load[ -]balancers?|sockets?",
        "malformed": r"malformed|truncated|broken json|invalid json|bad json",
        "process-death": r"crash\w*|killed|killer|died|segfaults?|went down|was down",
        "context": r"context[ -](?:length|window|limit|overflow)\w*",
        "hidden": r"swallow\w*|masked error|hidden rejection",
    }
)
"""How people name each class of hypotheses, as regular expressions without groups."""

_THING: Final = (
    r"time-?outs?|deadlines?|oom|oom[ -]kill\w*|(?:out[ -]of[ -])?memory|memory (?:pressure|leaks?)|vram|"
    r"(?:resource|memory|disk|quota|budget|credit) exhaustion|"
    r"(?:api[ -]?)?keys?|tokens?|credentials?|auth\w*|budgets?|quotas?|credits?|rate[ -]?limit\w*|throttling|"
    r"overload(?:ed \w+)?|networks?|connections?|dns|(?:load[ -]balancer|proxy|gateway)s?|malformed \w+|"
    r"truncated \w+|"
    r"context[ -](?:length|window|limit)\w*|crash\w*|outages?|deadlocks?|race conditions?|server|supplier|"
    r"provider|backend|wrapper|40[13]s?|429s?|50[0-9]s?|529s?"
)
"""What can be called a cause by a noun."""
_KIND: Final = r"(?: (?:problems?|issues?|errors?|failures?|glitch\w*|overflow\w*|hiccups?|drops?|trouble))?"
_END: Final = (
    r"(?=\s*(?:$|[,.:;!)]|[-\u2013\u2014] |(?:and|on|in|at|during|again|after|so|then|from|between|behind|"
    r"somewhere|that (?:ended|killed|stopped|broke))\b))"
)
"""What may follow such a noun, so that ``timeout`` is told from ``timeout simulation``."""
_WHAT: Final = (
    rf"(?:(?:an?|the|our|its|some|another|just|simply) ){{0,2}}(?:[\w-]+ ){{0,2}}?(?:{_THING}){_KIND}{_END}"
)

_PART: Final = (
    r"(?:servers?|suppliers?|providers?|gateways?|prox(?:y|ies)|backends?|engines?|gpus?|vllm|ollama|tgi|hosts?|"
    r"upstream|load[ -]balancers?)"
)
_STATE: Final = (
    r"(?:ran out|run out|out of (?:gpu |host |video )?(?:memory|vram|ram|disk)|crashed|died|hung|timed out|"
    r"overloaded|overwhelmed|oom(?:ed|-killed)|killed|starved|exhausted|throttled|throttling us|"
    r"went down|down|fell over)"
)
_AUX: Final = r"(?:(?:had|has|have|was|were|is|got|been|must|simply|just|itself|again|memory|cache) ){0,4}"
_HAPPENED: Final = rf"\b{_PART}(?:'s(?: [\w-]+)?)? {_AUX}{_STATE}\b"
_SPENT: Final = (
    r"\b(?:(?:api[ -]?)?key|token|quota|credits?|budget) "
    r"(?:(?:had|has|have|was|were) (?:been )?(?:expired|exhausted|revoked|used up|run out|rejected)|"
    r"ran out|expired)\b"
)
_DONE_TO_US: Final = r"\b(?:throttled|rate[ -]limited) us\b|\b(?:kernel|oom[ -]killer) killed\b"
_EVENT: Final = (
    rf"(?:{_HAPPENED}|{_SPENT}"
    r"|\b(?:was|were|got|been) (?:[\w-]+ )?(?:killed|throttled|overloaded|rate[ -]limited|rejected)\b"
    r"|\bran out\b|\btimed out\b|\bdropped (?:the|our|its|every) connections?\b"
    rf"|{_DONE_TO_US})"
)

_OPINION: Final = (
    r"\b(?:(?:we|i|they|everyone|people)(?:'re|'m)?"
    r"(?: (?:all|still|now|really|do|are|am|pretty|quite|fairly)){0,3} "
    r"(?:think|believe|suspect|guess|assume|reckon|bet|know|sure|certain|confident|convinced|blame)"
    r"|(?:my|our|best|working) (?:guess|theory|bet|assumption) (?:is|was))(?: that)?,? "
)
_ADVERB: Final = (
    r"\b(?:probably|(?:most |very )?likely|presumably|apparently|obviously|clearly|surely|certainly|definitely|"
    r"undoubtedly|evidently|no doubt)"
)
_BE: Final = r"(?:was|is|were|must be|must have been|has to be|had to be|has to have been)"
_SEEMS: Final = (
    r"\b(?:looks? like|looked like|seems? like|seems? to (?:be|have been)|appears to (?:be|have been)|"
    r"turn(?:ed|s) out to (?:be|have been)|turns out (?:that )?(?:it was)?|smells like)"
)
_SYMPTOM: Final = (
    r"\b(?:fail\w*|stop\w*|hang\w*|hung|died|dies|dead|crash\w*|broke\w*|abort\w*|ended|empty|missing|stuck|flak\w+|"
    r"cut (?:off|short)|lost|happen\w*|symptom|recurr\w*|errors?|exceptions?|(?:no|without an?) (?:\w+ )?"
    r"(?:answer|reply|response)|(?:never|not) (?:answer\w*|came|come|repl\w+|respon\w+))\b"
)
_STRONG_LINK: Final = r"\b(?:caused by|brought about by|triggered by|root[- ]caused to)"
_LINK: Final = (
    r"\b(?:because of|due to|owing to|thanks to|down to|on account of|(?:as a |the )?result of|a consequence of)"
)
_NAMED_CAUSE: Final = r"\b(?:(?:root|real|actual|true|underlying) causes?|culprits?)"
_MAYBE_CAUSE: Final = r"\b(?:cause|reason|problem|issue|explanation|failure|fault)"
_OPEN: Final = (
    r"(?!(?:still |yet |as yet )?(?:unknown|not\b|unclear|open|undetermined|unconfirmed|to be|what|why|which|"
    r"whether|never|none|tbd|hypothes))"
)

_CLAIMS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:it|this|that|which)(?:'s| {_BE})(?: {_ADVERB[2:]})? {_WHAT}",
        r"\b(?:it|this|that|which|process|agent) (?:was|got) (?:[\w-]+ )?killed by (?:the )?(?:kernel|oom)",
        rf"{_OPINION}(?:[^,.;:?]{{0,60}}?{_EVENT}|(?:(?:it|this|that)(?:'s| {_BE}) )?{_WHAT})",
        rf"{_ADVERB}(?: (?:was|is|just|due to|because of|down to|caused by))?"
        rf" (?:{_WHAT}|[^,.;:?]{{0,40}}?{_EVENT})",
        rf"{_SEEMS} (?:{_WHAT}|[^,.;:?]{{0,40}}?{_EVENT})",
        rf"{_NAMED_CAUSE}(?: of [^,.;:]{{1,60}})?(?: {_BE}|:) {_OPEN}\S",
        rf"{_MAYBE_CAUSE}(?: of [^,.;:]{{1,60}}| behind [^,.;:]{{1,60}})?(?: {_BE}|:) {_WHAT}",
        rf"^\W*{_BE} {_WHAT}",
        r"\b(?:is|was) (?:the|our) (?:root cause|real cause|culprit)\b",
        rf"{_STRONG_LINK} {_WHAT}",
        rf"\b(?:is|are|was|were) to blame\b|\bblame (?:it |this )?(?:on )?{_WHAT}",
        rf"\b(?:{_THING}) (?:has |have |had )?(?:killed|broke|took down|brought down|caused)"
        r" (?:the|this|our|it|trial|step)\b",
        rf"{_EVENT}[^.;?]{{0,20}}, (?:which|that) is why\b",
        # A cause by its bare noun is no claim; with the remedy behind it, it is.
        rf"^\W*(?:{_THING}){_KIND}[^.;?]{{0,40}}[,:;] ?(?:please )?(?:add|use|increase|raise|needs?)"
        r" (?:(?:an?|the|more|our|longer) ){0,2}(?:retr(?:y|ies)|back-?off|time-?out|quota|memory|limit)\b",
        _DONE_TO_US,
        _HAPPENED,
        _SPENT,
    )
)
_LINKED: Final = re.compile(rf"{_LINK} {_WHAT}|\bbecause [^.;?]{{0,60}}?{_EVENT}")
"""A claim only where the sentence names a symptom: people give reasons for what they decided, too."""
_SYMPTOM_NAMED: Final = re.compile(_SYMPTOM)

_SUPPOSED: Final = re.compile(
    r"\b(?:if|whether|unless|until|when|whenever|in case|suppose|supposing|assuming|could|might|may|maybe|perhaps|"
    r"possibly|can|would|hypothes\w+|simulat\w+|says|said|reads|reports?|reported|shows?|showed|logged|recorded|"
    r"printed|prints|according|claim\w*|rule out|find out|decide|determine|tell|ask|check|compare|test\w*|"
    r"look for|which of|either|confirm|refute|expect\w*)\b"
)
"""Words that make what follows them a supposition, a quotation, or something to be looked at."""
_DENIED: Final = re.compile(
    r"\b(?:not|no|never|cannot|nothing|nobody|neither|nor|without|unknown|unclear|before|instead of|rather than|"
    r"find|establish|know|assign\w*|name|prove|[a-z]+n't)\b"
)
_LEFT_OPEN: Final = re.compile(
    r"\b(?:is|are|was|remains?|stays?) (?:not |still |yet )*(?:unknown|open|unclear|unconfirmed|known|shown|"
    r"recorded|proven|a guess)\b|\bneeds (?:the|a|an|its)\b"
)
_QUOTED: Final = re.compile(r"`[^`]*`|\"[^\"]*\"|\u201c[^\u201d]*\u201d|(?<!\w)'[^']*'(?!\w)")
_DENIAL_REACHES_WORDS: Final = 4
_LONGEST_SHOWN: Final = 80


class Claim(NamedTuple):
    """A cause that a text asserts."""

    words: str
    """The part of the text that does."""
    classes: frozenset[HypothesisClass]
    """What those words name; empty where they name none that we know."""


def asserted_cause(text: str) -> Claim | None:
    """Return the first cause that `text` asserts; None where it asks, plans, quotes or says what was seen.

    A sentence that ends in a question mark asserts nothing; nor does what stands in quotes, what is denied, or
    what is only supposed (if, whether, might, the log says).
    """
    for sentence in _sentences(text):
        found = _claim(sentence)
        if found is not None:
            return Claim(_short(sentence[found.start() : found.end()]), _classes(sentence))
    return None


def named_as_fact(slug: str) -> bool:
    """Say whether the id of a hypothesis calls it true: ``confirmed-oom``, ``it-was-the-key``."""
    return _SAID_IN_SLUG.search(slug) is not None


_SAID_IN_SLUG: Final = re.compile(
    r"(?:^|-)(?:(?:root|real|actual|true)-cause|culprit|confirmed|proven|certain|definitely|it-was|it-is|its-the|"
    r"because)(?:-|$)"
)


def _sentences(text: str) -> Iterator[str]:
    plain = _QUOTED.sub(lambda found: "\u00b7" * len(found.group()), text.replace("\u2019", "'"))
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", " ".join(plain.split(" "))):
        if not sentence.rstrip().endswith("?"):
            yield from sentence.split(";")


def _claim(sentence: str) -> re.Match[str] | None:
    lower = sentence.lower()
    for pattern in _CLAIMS:
        for found in pattern.finditer(lower):
            if not _innocent(lower, found, _DENIAL_REACHES_WORDS):
                return found
    if _SYMPTOM_NAMED.search(lower):
        for found in _LINKED.finditer(lower):
            # Of "did not answer because ..." the reason is not denied; of "not because ..." it is.
            if not _innocent(lower, found, 1 if _SYMPTOM_NAMED.search(lower[: found.start()]) is None else 0):
                return found
    return None


def _innocent(lower: str, found: re.Match[str], reach_words: int) -> bool:
    before, after = lower[: found.start()], lower[found.end() :]
    inner = found.group()
    near = before.split()[-reach_words:] if reach_words else [*before.split()[-1:]]
    chunk = re.split(r"[,:]", " ".join(near))[-1] if reach_words else " ".join(near)
    return bool(
        _SUPPOSED.search(before)
        or _SUPPOSED.search(inner)
        or _DENIED.search(_without_missing_replies(chunk))
        or re.search(r"\bnot\b|n't\b", inner)
        or _LEFT_OPEN.search(re.split(r"[,:]", after)[0])
    )


def _without_missing_replies(text: str) -> str:
    return re.sub(r"\b(?:no|never) (?:\w+ )?(?:answer|reply|response|output)\w*", "", text)


def _classes(sentence: str) -> frozenset[HypothesisClass]:
    lower = sentence.lower()
    return frozenset(
        name for name, words in WORDS_OF_CLASS.items() if re.search(rf"\b(?:{words})\b", lower) is not None
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
