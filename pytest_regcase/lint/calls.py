"""What stands in a recorded tool call that a reviewer should look at twice.

Pure text: nothing is run, expanded or looked up. A reading aid and no sandbox: whoever wants to hide something
from it can, so a call without a note may do harm too.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

_URL = re.compile(r"\b(?:https?|ftp|wss?|ssh|git)://[^\s\"'<>)\]}\\]+", re.IGNORECASE)
_BEFORE = r"(?<![\w.~/$)\]}*?-])"
"""What may stand before a path that begins here: in ``a/b`` nothing begins at the slash."""
_ABSOLUTE = re.compile(
    _BEFORE + r"(?:/+(?![A-Za-z][\w-]*>)[\w.~$@+%{*?\[-](?<!\*)[^\s\"'`;|&<>(){}\[\],:\\]*"
    # The root alone, or all that is in it: told from a division and from a comment by what follows.
    r"|/+\*?(?=$|[\"'`;|&)]|\s+(?:[-&;|>]|$)))"
    r"|(?<=\s-[a-zA-Z] )/+(?=\s)|(?<=chroot )/+(?=\s)"
)
_RELATIVE = re.compile(r"(?<![\w./@+~$-])[\w./@+-]*\.\.(?:/[\w./@+*-]*|(?![\w.]))")
_HOME = re.compile(
    r"(?<![\w)\]}~/.])~[a-z_][\w-]*/[^\s\"'`;|&<>()]*"
    r"|(?<![\w)\]}~/.])~(?:/[^\s\"'`;|&<>()]*|(?=[\s\"'`;|&)]|$))"
    r"|(?<![\w./$-])cd(?=\s*(?:$|[;&|\n]|-\s*(?:$|[;&|\n])))|\bdirname\s+[\"']?(?:\$\{?PWD\b\}?|\$\(pwd\)|`pwd`)"
    r"|\$\{?(?:HOME|OLDPWD|TMPDIR|TEMP|TMP|XDG_\w+)\b\}?[^\s\"'`;|&<>()]*"
    r"|\bexpanduser\b|\bPath\.home\b|\bgettempdir\b|\bmktemp\b|\btempfile\.\w+"
    r"|\benviron\b.{0,6}[\"'](?:HOME|TMPDIR)[\"']"
)
_HARMLESS = re.compile(r"/dev/(?:null|stdin|stdout|stderr|fd/\d+)")

_NETWORK = re.compile(
    r"(?<![\w./-])(?:curl|wget|nc|ncat|netcat|socat|telnet|ssh|scp|sftp|rsync|ftp|ping|dig|nslookup|aws|gcloud|kubectl"
    r"|docker|podman|git\s+(?:clone|fetch|pull|push|remote|submodule)|pip3?\s+(?:install|download)|uv\s+(?:pip|add|sync)"
    r"|(?:npm|pnpm|yarn|npx|apt|apt-get|apk|yum|dnf|brew|conda|cargo|gem|go)\s+(?:install|add|get|i|ci|update|exec|run)"
    r"|npx)(?![\w-])"
    r"|\b(?:urllib|requests|httpx|aiohttp|http\.client|socket|smtplib|ftplib|paramiko)\b(?=[.\s;,)\"'])"
    r"|/dev/(?:tcp|udp)/"
)
_DESTRUCTIVE = re.compile(
    r"(?<![\w./-])(?:rm|rmdir|shred|unlink|dd|mkfs(?:\.\w+)?|truncate|kill|pkill|killall|sudo|su|doas|chown|chmod|mount"
    r"|umount|shutdown|reboot|halt|systemctl|crontab|iptables|useradd|passwd|insmod"
    r"|git\s+(?:reset\s+--hard|clean|checkout\s+--|push\s+(?:-f|--force))|find\b[^;|&\n]{0,300}\s-delete)(?![\w./-])"
    r"|\b(?:shutil\.rmtree|os\.(?:remove|unlink|rmdir|removedirs|kill|killpg|chmod|chown))\b"
    r"|:\(\)\s*\{"
)
_UNSHOWN = re.compile(
    r"(?<![\w./-])(?:eval|base64|xxd|uudecode)(?![\w./-])"
    r"|\|\s*(?:sudo\s+)?(?:/\S{0,100}/)?(?:ba|z|da|k)?sh\b|\|\s*(?:/\S{0,100}/)?(?:python3?|perl|ruby|node)\b"
    r"|\b(?:b64decode|fromhex|exec|compile|chr|__import__)\s*\("
    # Escapes and a separator of one's own: what the shell makes of them stands nowhere.
    r"|\$'[^'\n]*\\[xuU0-7]|\bprintf\s[^|;&\n]{0,100}\\(?:x[0-9a-fA-F]|[0-7]{2})|(?<![\w$])IFS="
)
_LONGEST_SHOWN = 80


def notes_on(arguments: str) -> tuple[str, ...]:
    """Return what a reviewer should look at in the arguments of a call, each once.

    `arguments` is JSON text, or any text where it is none; names and values in it are read alike.
    """
    texts = tuple(_texts(arguments))
    places = _each(texts, _places)
    network = _each(texts, lambda text: _found(_NETWORK, _without_urls(text)) | _found(_URL, text))
    destructive = _each(texts, lambda text: _found(_DESTRUCTIVE, text))
    unshown = _each(texts, lambda text: _found(_UNSHOWN, text))
    return tuple(
        f"{says}: {', '.join(found)}"
        for says, found in (
            ("names a place outside the work folder", places),
            ("may use the network", network),
            ("may remove things or change rights", destructive),
            ("runs what is not shown here as it is", unshown),
        )
        if found
    )


def _texts(arguments: str) -> Iterator[str]:
    """Yield every text in the arguments: the strings of a JSON text, with the escapes resolved."""
    try:
        waiting: list[Any] = [json.loads(arguments)]
    except (ValueError, RecursionError):
        yield arguments
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [*reversed(value.values()), *reversed(value)]
        elif isinstance(value, list):
            waiting += reversed(value)


def _each(texts: tuple[str, ...], find: Callable[[str], dict[str, None]]) -> tuple[str, ...]:
    return tuple({each: None for text in texts for each in find(text)})


def _places(text: str) -> dict[str, None]:
    text = _without_urls(text)
    absolute = {each: None for each in _found(_ABSOLUTE, text) if not _HARMLESS.fullmatch(each)}
    relative = {each: None for each in _found(_RELATIVE, text) if _leaves(each)}
    return absolute | relative | _found(_HOME, text)


def _leaves(relative: str) -> bool:
    """Say whether a path with ``..`` leads above where it begins."""
    depth = 0
    for part in PurePosixPath(relative).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def _without_urls(text: str) -> str:
    return _URL.sub(" ", text)


def _found(pattern: re.Pattern[str], text: str) -> dict[str, None]:
    return {_short(each.group()): None for each in pattern.finditer(text)}


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
