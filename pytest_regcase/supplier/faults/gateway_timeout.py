"""A gateway in between gives up on the model server and answers with a page of its own. Standard library only."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pytest_regcase.supplier.protocol import Exchange

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable

_HTML = "text/html; charset=utf-8"

_NGINX = (
    "<html>\r\n<head><title>504 Gateway Time-out</title></head>\r\n<body>\r\n"
    "<center><h1>504 Gateway Time-out</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
)
_CLOUDFLARE = (
    '<!DOCTYPE html>\n<html lang="en-US">\n<head>\n<title>524: A timeout occurred</title>\n'
    '<meta charset="UTF-8" />\n</head>\n<body>\n<h1>A timeout occurred <span>Error code 524</span></h1>\n'
    "<p>The origin web server timed out responding to this request.</p>\n"
    "<p>Performance &amp; security by Cloudflare</p>\n</body>\n</html>\n"
)
_PAGES = {
    "nginx": (504, _NGINX, (("Server", "nginx"),)),
    "cloudflare": (524, _CLOUDFLARE, (("Server", "cloudflare"), ("CF-RAY", "0000000000000000-AAA"))),
}


@dataclass(frozen=True)
class Settings:
    """Whose page it is, and after how long it comes."""

    gateway: Literal["nginx", "cloudflare"] = "nginx"
    """nginx answers 504 (60 s by default), Cloudflare 524 (100 s and more)."""
    pause_seconds: float = 0.0
    """Silence before the page. A client whose own time-out is shorter never sees it: then it is not delivered."""

    def __post_init__(self) -> None:
        if self.pause_seconds < 0:
            raise ValueError(f"pause_seconds = {self.pause_seconds}; allowed: 0 or more")


class GatewayTimeout:
    """After a pause, a whole 504 (or 524) answer with an HTML page where JSON was expected."""

    kind: ClassVar[str] = "gateway_timeout"
    settings_model: ClassVar[type[Any]] = Settings

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._status, self._page, self._headers = _PAGES[settings.gateway]

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 504 or 524."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="complete", status=self._status, then="answered")

    async def inject(self, exchange: Exchange) -> None:
        """Keep silent for the pause, then send the page; a client that let go meanwhile gets nothing."""
        if self.settings.pause_seconds > 0 and not await exchange.wait(self.settings.pause_seconds):
            return
        await exchange.send_body(self._status, self._page.encode(), _HTML, self._headers)
