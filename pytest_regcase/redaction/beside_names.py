"""Secrets that only their name gives away: ``password: hunter2``, ``signing_key = "9f86d0..."``, ``?sig=...``.

Knows texts. One regular expression finds the names; what follows each is looked at from there, within bounds,
so that no text takes more than linear time. Code stays: ``token = next_token()`` and ``password=$DB_PASSWORD``
hold no secret.
"""

import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Final, Literal

from pytest_regcase.redaction.placeholders import PLACEHOLDER_PREFIX

Strength = Literal["password", "token", "key"]
"""How much a name says: `password` gives away any value, `token` one of 8 characters or more, `key` only what
looks random."""

_CORE: Final = re.compile(
    r"pass(?:word|wd|phrase|code)?s?|pwd|secrets?|tokens?|keys?(?:[_-]?id)?|cookies?|credentials?"
    r"|auth(?:orization)?|sig(?:nature)?|string|jwt|salt|nonce|otp"
)
"""The last word of a name, in lower case: few and plain, since each character of a text is tried."""

_PASSWORD: Final = re.compile(
    r"(?i:(?:password|passwd|passphrase|passcode)s?|pwd|(?<![a-z])pass|(?-i:[a-z]Pass|[A-Z]PASS))\Z"
)
_TOKEN: Final = re.compile(
    r"(?i:(?:api|secret|access|private|account|subscription|master|license|client|storage)[_-]?keys?"
    r"|private[_-]?key[_-]?id|secrets?|token|credentials?|(?:set-)?cookie|access[_-]?signature"
    r"|connection[_-]?string|(?<![a-z])_auth)\Z"
)
_KEY: Final = re.compile(
    r"(?:(?<![A-Za-z])(?i:keys?|auth(?:orization)?|sig(?:nature)?|jwt|salt|nonce|otp)"
    r"|(?<=[a-z0-9])(?:Keys?|Auth|Sig|Signature|Jwt|Salt|Nonce|Otp)|(?<=[A-Z])KEY)\Z"
)
_SET_ALONE: Final = re.compile(r"(?:.*[_.])?(?:KEY|AUTH)")
_NAME_BACKWARDS: Final = re.compile(r"[\w.-]+")
_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(65, 91)}
_LONGEST_NAME: Final = 80

_ASSIGNED: Final = re.compile(
    r"(?P<quoted>[\"'`\\]{0,3})\]?"
    r"(?:\s?:\s?(?:str|bytes|SecretStr|string|Optional\[str\]|str \| None)(?=\s?=))?"
    r"\s{0,3}(?::=|=>|==|[:=])\s{0,3}"
)
_PAIRED: Final = re.compile(
    # {"name": "x-api-key", "value": "..."}, as headers and attributes are recorded; ("api_key", "...")
    r"\\{0,3}[\"']\s{0,3},\s{0,20}(?:\\{0,3}[\"']value\\{0,3}[\"']\s{0,3}:\s{0,3}"
    r"(?P<typed>\{\s{0,20}\\{0,3}[\"']stringValue\\{0,3}[\"']\s{0,3}:\s{0,3})?)?(?=\\{0,3}[\"'])"
)
_TAG: Final = re.compile(r">(?=[^<>\s]{3,400}</)")
_SPACED: Final = re.compile(r"[ \t]{1,3}")
_QUOTE: Final = re.compile(r"(?P<q>\\{0,7}[\"'`])")
_BARE: Final = re.compile(r"""[^\s"'`\\,;&<>(){}\[\]$]{1,512}""")
_IN_ADDRESS: Final = re.compile(r"""[^\s"'`\\&#<>(){}$]{1,512}""")
_RANDOM: Final = re.compile(r"[A-Za-z0-9+/=_.~%-]{16,}")
_MIXED_RUN: Final = re.compile(r"[A-Za-z0-9]{10,}")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DIGIT: Final = re.compile(r"\d")
_LETTER: Final = re.compile(r"[^\W\d_]")
_SPECIAL: Final = re.compile(r"[!@#%^*~]")
_SPACE: Final = re.compile(r"\s")
_LONGEST_QUOTED: Final = 4096

_NO_VALUES: Final = frozenset(
    {"none", "null", "nil", "true", "false", "undefined", "str", "string", "text", "bytes", "int", "bool", "any"}
    | {"object", "optional", "required", "password", "passwd", "token", "secret", "empty", "redacted", "hidden"}
    | {"changeme", "final", "classvar", "secretstr", "value", "header", "query", "bearer", "basic", "return"}
)
"""Words that stand beside a secret's name in code and schemas."""

_NOTHING: Final = re.compile(r"[*xX.\-_#?]+|%\(?\w*\)?[sd]|\$.*|\{.*\}|<.*>")
"""A blank to fill in, or one that was masked already."""


def strength_of(name: str) -> Strength | None:
    """Return what a name says about its value; None where it says nothing."""
    end = name[-_LONGEST_NAME:]
    if _PASSWORD.search(end):
        return "password"
    if _TOKEN.search(end):
        return "token"
    return "key" if _KEY.search(end) else None


def hides(strength: Strength | None, value: str) -> bool:
    """Say whether `value`, all of what a mapping holds under such a name, is a secret."""
    if strength is None or not value or PLACEHOLDER_PREFIX in value:
        return False
    return looks_random(value) if strength == "key" else not _is_blank(value)


def replace_beside_names(text: str, replace: Callable[[str], str]) -> str:
    """Return `text` with each secret that stands beside its name put through `replace`."""
    kept: list[str] = []
    done = at = 0
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that has no single lower-case one
        lowered = text.translate(_ASCII_LOWER)
    while (core := _CORE.search(lowered, at)) is not None:
        at = core.end()
        if text[at : at + 1].isalnum():  # the name goes on
            continue
        span = _value_after(text, at)
        if span is None:
            continue
        start, end = span
        kept += (text[done:start], replace(text[start:end]))
        done = at = end
    return "".join((*kept, text[done:])) if kept else text


def looks_random(value: str) -> bool:
    """Say whether `value` looks like a key and not like words: letters and digits mixed, of high entropy.

    At least 3.2 bits a character by Shannon's formula (hexadecimal digits have at most 4), and a mixed run of ten.
    An UUID is an id and no secret.
    """
    if len(value) < 16 or not _is_mixed(value):
        return False
    if _RANDOM.fullmatch(value) is None or _UUID.fullmatch(value) is not None or _entropy(value[:256]) < 3.2:
        return False
    return any(_is_mixed(run) for run in _MIXED_RUN.findall(value[:256]))


def _value_after(text: str, at: int) -> tuple[int, int] | None:
    """Return the span of the secret beside the name that ends at `at`; None where there is none."""
    begin = _name_before(text, at)
    name = text[begin:at]
    strength = strength_of(name)
    if strength is None:
        return None
    assigned = _ASSIGNED.match(text, at)
    if assigned is not None:
        if begin > 0 and text[begin - 1] in "?&":
            return _address_value(text, assigned.end(), strength)
        # As a shell sets it; a file of settings also writes DB_PASSWORD: word.
        sign = assigned.group().strip()
        as_variable = name.isupper() and (assigned.group() == "=" or (strength == "password" and sign == ":"))
        if as_variable and strength == "key" and _SET_ALONE.fullmatch(name):
            strength = "token"
        return _assigned_value(
            text, assigned.end(), strength, in_quotes=bool(assigned["quoted"]), as_variable=as_variable
        )
    if text.startswith(">", at):
        tag = _TAG.match(text, at)
        return _checked(text, _BARE.match(text, tag.end()), strength, least=3) if tag is not None else None
    paired = _PAIRED.match(text, at)
    if paired is not None:
        return _paired_value(text, paired.end(), strength, named="value" in paired.group())
    spaced = _SPACED.match(text, at)
    return _spaced_value(text, spaced.end(), strength, is_option=name.startswith("--")) if spaced else None


def _name_before(text: str, at: int) -> int:
    """Return where the whole name begins that ends at `at`."""
    backwards = _NAME_BACKWARDS.match(text[max(at - _LONGEST_NAME, 0) : at][::-1])
    return at - len(backwards.group()) if backwards is not None else at


def _assigned_value(
    text: str, at: int, strength: Strength, *, in_quotes: bool, as_variable: bool
) -> tuple[int, int] | None:
    quote = _QUOTE.match(text, at)
    if quote is not None:
        span = _quoted(text, quote)
        if span is None:  # cut off: as far as it goes
            return _checked(text, _BARE.match(text, quote.end()), strength, least=4)
        value = text[span[0] : span[1]]
        spaces = _SPACE.search(value) is not None
        # A name in quotes is a key with a value; elsewhere a quote after the name may close what came before it.
        if spaces and not (in_quotes and strength == "password"):
            return None
        least = 3 if strength == "password" else 8
        return span if len(value) >= least and _is_secret(value, strength) else None
    found = _BARE.match(text, at)
    if found is None or text.startswith("(", found.end()):
        return None
    value = found.group()
    if as_variable and strength != "key" and len(value) >= (3 if strength == "password" else 8):
        return _longest(text, found) if _is_secret(value, strength) else None
    if strength == "password" and len(value) >= 4:
        mixed = _is_mixed(value) or _SPECIAL.search(value) is not None
    else:
        mixed = len(value) >= 8 and _is_mixed(value)
    return _longest(text, found) if mixed and _is_secret(value, strength) else None


def _address_value(text: str, at: int, strength: Strength) -> tuple[int, int] | None:
    found = _IN_ADDRESS.match(text, at)
    if found is None or _is_blank(found.group()):
        return None
    value = found.group()
    enough = len(value) >= (3 if strength == "password" else 6)
    if strength == "key":
        enough = len(value) >= 8 and _DIGIT.search(value) is not None
    return _longest(text, found) if enough and PLACEHOLDER_PREFIX not in value else None


def _paired_value(text: str, at: int, strength: Strength, *, named: bool) -> tuple[int, int] | None:
    quote = _QUOTE.match(text, at)
    span = _quoted(text, quote) if quote is not None else None
    if span is None:
        return None
    value = text[span[0] : span[1]]
    if _SPACE.search(value) is not None or len(value) < (3 if strength == "password" else 8):
        return None
    # Without a key "value" it may be the next of a list of names.
    sure = named or _DIGIT.search(value) is not None
    return span if sure and _is_secret(value, strength) else None


def _spaced_value(text: str, at: int, strength: Strength, *, is_option: bool) -> tuple[int, int] | None:
    quote = _QUOTE.match(text, at)
    found = _BARE.match(text, quote.end() if quote is not None else at)
    if found is None or found.group().startswith("-") or text.startswith("(", found.end()):
        return None
    value = found.group()
    if looks_random(value):  # beside a name of any strength, in prose too
        return _longest(text, found)
    if not is_option or strength == "key":
        return None
    least = 3 if strength == "password" else 8
    sure = strength == "password" or _DIGIT.search(value) is not None
    return _longest(text, found) if sure and len(value) >= least and _is_secret(value, strength) else None


def _checked(text: str, found: re.Match[str] | None, strength: Strength, *, least: int) -> tuple[int, int] | None:
    if found is None or not (len(found.group()) >= least and _is_secret(found.group(), strength)):
        return None
    if strength == "token" and len(found.group()) < 8:
        return None
    return _longest(text, found)


def _longest(text: str, found: re.Match[str]) -> tuple[int, int]:
    """Return the span of a bare value with what follows beyond the bound: no half of a secret may stay."""
    start, end = found.span()
    while (more := found.re.match(text, end)) is not None:
        end = more.end()
    return start, end


def _quoted(text: str, quote: re.Match[str]) -> tuple[int, int] | None:
    """Return the span between `quote` and the same one after it; None where there is none near by."""
    closing, start = quote["q"], quote.end()
    stop = min(len(text), start + _LONGEST_QUOTED)
    line = text.find("\n", start, stop)
    stop = line if line >= 0 else stop
    at = text.find(closing, start, stop)
    while at >= 0 and text[at - 1] == "\\" and at > start:
        # Escaped once more than the quote that opened it, so it belongs to the value.
        at = text.find(closing, at + len(closing), stop)
    return (start, at) if at > start else None


def _is_secret(value: str, strength: Strength) -> bool:
    if PLACEHOLDER_PREFIX in value or _is_blank(value):
        return False
    return looks_random(value) if strength == "key" else True


def _is_blank(value: str) -> bool:
    return value.lower() in _NO_VALUES or _NOTHING.fullmatch(value[:200]) is not None


def _is_mixed(value: str) -> bool:
    return _DIGIT.search(value) is not None and _LETTER.search(value) is not None


def _entropy(value: str) -> float:
    """Return Shannon's entropy in bits a character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())
