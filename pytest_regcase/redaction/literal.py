"""A text that is known to be a secret, in any spelling that a log may have given it.

Knows texts. JSON inside JSON escapes a quote once a level and may write any character as ``\\u00e9``; addresses
write ``%20``. Each is found as the one secret that it is.
"""

import re
from typing import Final
from urllib.parse import quote

from pytest_regcase.errors import UsageRefused

SHORTEST: Final = 4
"""Characters. What is shorter stands in too many words to be taken out of them."""

_CONTROLS: Final = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


class Literal:
    """One secret as a person gives it. Its value is in no message and no `repr`."""

    def __init__(self, secret: str) -> None:
        """Take the secret as it is, but for line ends around it.

        Raises:
            UsageRefused: it is shorter than four characters, or spaces alone.
        """
        secret = secret.strip("\r\n")
        if len(secret.strip()) < SHORTEST:
            raise UsageRefused(
                f"Couldn't redact that text: it has fewer than {SHORTEST} characters, and would be taken out of"
                " other words too.\nGive more of what stands around it."
            )
        self.secret = secret
        self._pattern = re.compile("".join(_spelt(each) for each in _parts(secret)))

    def __repr__(self) -> str:
        """Return no more than what it is."""
        return "Literal(...)"

    def replaced(self, text: str, placeholder: str) -> tuple[str, int]:
        """Return `text` with each occurrence replaced, and how many there were."""
        return self._pattern.subn(placeholder, text)


def _parts(secret: str) -> list[str]:
    """Return the characters; backslashes in a row are one, since no reader can tell how often each was escaped."""
    return re.findall(r"\\+|[^\\]", secret)


def _spelt(part: str) -> str:
    if part.startswith("\\"):
        return r"(?:\\+(?:u005[cC])?|%5[cC])"
    units = part.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\+u{_any_case(units[at : at + 4])}" for at in range(0, len(units), 4))
    ways = [escaped]
    if part in _CONTROLS:
        ways.append(rf"\\+{_CONTROLS[part]}")
    encoded = quote(part, safe="", errors="replace")
    if encoded != part:
        ways.append("".join(rf"%{_any_case(each)}" for each in encoded[1:].split("%")))
    elif not part.isalnum():
        ways.append(f"%{_any_case(f'{ord(part):02x}')}")
    # A quote or a slash may have a backslash before it; a letter has none, or it would be another character.
    ways.append(re.escape(part) if part.isalnum() else rf"\\*{re.escape(part)}")
    return f"(?:{'|'.join(ways)})"


def _any_case(hexadecimal: str) -> str:
    return "".join(f"[{each.lower()}{each.upper()}]" if each.isalpha() else each for each in hexadecimal)
