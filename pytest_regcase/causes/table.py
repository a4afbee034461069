"""The one table of patterns by which a failure is told.

Knows words only. Rows stand in the order in which they are asked: the key's causes first, then what an unchanged
retry cannot help, then what it can, the least specific last.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from pytest_regcase.records.words import FailureCauseWord

_FLAGS = re.IGNORECASE | re.DOTALL


@lru_cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), _FLAGS)


@dataclass(frozen=True)
class Clue:
    """One kind of failure and the patterns that say so, in any case of letters."""

    cause: FailureCauseWord
    kind: str
    codes: tuple[str, ...] = ()
    """The whole of a structured word (code, type, reason ...), lower case, letters and digits only."""
    bare_codes: tuple[str, ...] = ()
    """The same, of words that say no more than a status does: the text is asked before them."""
    text: tuple[str, ...] = ()
    """Somewhere in the message or the body."""
    types: tuple[str, ...] = ()
    """The whole name of a class, without its module."""
    statuses: tuple[int, ...] = ()

    def says_code(self, code: str) -> bool:
        """Say whether a structured word stands for this kind."""
        return bool(self.codes) and _any_of(self.codes).fullmatch(code) is not None

    def says_bare_code(self, code: str) -> bool:
        """Say whether a structured word says the status of this kind."""
        return bool(self.bare_codes) and _any_of(self.bare_codes).fullmatch(code) is not None

    def says_type(self, name: str) -> bool:
        """Say whether the name of a class stands for this kind."""
        return bool(self.types) and _any_of(self.types).fullmatch(name) is not None

    def in_text(self, text: str) -> str | None:
        """Return the words of `text` that stand for this kind."""
        found = _any_of(self.text).search(text) if self.text else None
        return None if found is None else found[0]


_KEY = r"(?:x-)?(?:api|subscription|access)[ _-]?(?:key|token)s?"
_LIMITED = r"(?:spend(?:ing)?|billing|usage|credits?|plan|session|key|budget|weekly|monthly)"
_SUPPLIER = (
    r"\b(?:requests?|api|llm|model|completions?|inference|provider|upstream|gateway|responses?|stream(?:ing)?)\b"
)

CLUES = (
    Clue(
        "key_budget",
        "budget",
        codes=(
            r"insufficient(?:quota|balance|credits?|funds)",
            r".*(?:billing|spend|budget|credit|balance).*(?:limit|reached|exceeded|exhausted|low|error).*",
            r".*currentquota.*|quotaexceeded|quotaexhausted|usagelimitreached|arrearage|paymentrequired.*",
        ),
        text=(
            # Google says the same of a quota a minute as others do of money that is spent.
            r"exceeded (?:your|its|the) current quota(?!(?:(?!per ?day).)*(?:per ?minute|retry in [\d.]+ ?s))",
            r"(?:extra|additional|paid) usage (?:is )?required",
            r"payment required|in arrears|failure to pay|past[ -]due",
            r"insufficient (?:account )?(?:balance|credits?|funds|quota)",
            r"balance (?:is |was )?(?:too low|insufficient|depleted|exhausted|negative)",
            r"(?:requires? more|out of|any|no(?:t enough)?|all (?:your |available )|available|purchase) ?credits",
            r"exceeded your [\w ]{0,30}credits",
            rf"\b{_LIMITED} (?:hard |soft )?(?:limit|cap)s?\b[^.]{{0,30}}\b(?:reached|exceeded|hit)\b",
            rf"\b(?:reached|exceeded|hit)\b[^.]{{0,60}}\b{_LIMITED} (?:limit|cap)s?\b",
            r"limit of your (?:current )?(?:plan|subscription)",
            r"budget has been exceeded|(?:exceed|cross)ed ?(?:\w+ )?budget|\bover budget\b",
        ),
        types=(
            r"\w*(?:Budget|Billing|Spend(?:ing)?Limit|Credits?)(?:Exceeded|Reached|Exhausted)?(?:Error|Exception)",
            r"PaymentRequired\w*",
        ),
        statuses=(402,),
    ),
    Clue(
        "key_auth",
        "auth",
        codes=(
            r"(?:invalid|incorrect|expired|missing)apikey.*|apikey(?:invalid|expired|missing|disabled|revoked).*",
            r"(?:invalid)?authentication(?:error|failed)?|invalid(?:token|clienttokenid|grant)|tokenexpired",
            r".*expiredtoken.*|unrecognizedclient.*|signaturedoesnotmatch|missingauthenticationtoken.*",
            r"servicedisabled|(?:account|organization|user)(?:deactivated|suspended|disabled)|unsupportedcountry.*",
        ),
        bare_codes=(
            r"unauthenticated|unauthorized|(?:request)?forbidden|(?:iam)?permission(?:denied|error)",
            r"accessdenied(?:exception)?",
        ),
        text=(
            rf"\b(?:invalid|incorrect|expired|missing|no|wrong|revoked|malformed) (?:\w+ )?{_KEY}",
            rf"\b{_KEY}\b[^.]{{0,40}}\b(?:invalid|expired|not valid|incorrect|missing|revoked|disabled|not set)\b",
            r"(?:missing|invalid|expired|unable to locate|could not (?:find|load)) (?:\w+ )?credentials",
            r"could not resolve authentication|invalid authentication|authentication (?:failed|required)",
            r"\b(?:security token|access token|session|credentials?)\b[^.]{0,60}\bexpired\b",
            rf"\b{_KEY}\b[^.]{{0,40}}\bmust be set\b|\binvalid_grant\b",
            r"\btoken (?:has |is )?(?:been )?(?:expired|revoked)|unauthori[sz]ed",
            r"(?:organi[sz]ation|account) (?:has been |is |was )?(?:deactivated|disabled|suspended|blocked)",
        ),
        types=(
            r"Authentication\w*|Unauthori[sz]ed\w*|PermissionDenied\w*|Forbidden\w*|AccessDenied\w*",
            r"\w*Credentials?\w*Error|ExpiredToken\w*|TokenRetrievalError",
        ),
        statuses=(401, 403),
    ),
    Clue(
        "unknown",
        "oom",
        text=(
            r"\bout of memory\b|outofmemory|\boom\b|oom[- _]?kill|cannot allocate memory|_alloc_failed\b",
            r"(?:unable|failed) to allocate|requires more (?:\w+ )?memory",
        ),
        types=(r"\w*OutOfMemory\w*|MemoryError",),
    ),
    Clue(
        "unknown",
        "context_length",
        codes=(r"contextlengthexceeded|exceedcontextsize.*|contextwindowexceeded.*|contextoverflow",),
        text=(
            r"context[ _-](?:length|window|size|limit)|model token limit|reduce the length of",
            r"\b(?:prompt|input|messages?)\b[^.]{0,40}\btoo long\b|truncat\w+ (?:the )?(?:input|prompt)",
            r"\binput (?:tokens?|token count|length)\b[^.]{0,60}\b(?:exceeds?|too long)\b",
            r"\btokens?\b[^.]{0,30}\bexceeds? (?:the )?(?:maximum|limit)|maximum (?:number of )?(?:input )?tokens",
            r"max_new_tokens\W+must be",
        ),
        types=(r"Context(?:Window|Length)\w*",),
    ),
    Clue(
        "unknown",
        "content_filter",
        codes=(
            r"contentfilter.*|content(?:policy|moderation|blocked).*|responsibleaipolicy.*",
            r"invalidprompt|.*datainspection.*|moderation.*|prohibitedcontent",
        ),
        text=(
            r"content[ _-](?:filter|polic|moderation|management)|\bflagged\b|usage polic(?:y|ies)",
            r"inappropriate content|(?:output|response|prompt) (?:was )?(?:blocked|filtered)",
            r"considered high risk|requires moderation|safety (?:filter|setting|polic|system)",
            r"finish_?reason[^.]{0,10}\bsafety\b",
        ),
        types=(r"Content(?:Policy|Filter)\w*",),
    ),
    Clue(
        "unknown",
        "process_death",
        text=(
            r"\b(?:runner|model|server|process|worker)\b[^.]{0,30}"
            r"\b(?:unexpectedly (?:stopped|exited|terminated)|has (?:crashed|terminated|died)|was killed)\b",
        ),
    ),
    Clue(
        "transient",
        "overloaded",
        codes=(r".*overloaded.*",),
        text=(
            r"\boverloaded\b|capacity exceeded|at (?:full )?capacity|high demand|server (?:is )?busy|too busy",
            r"queue is full|maximum pending requests",
        ),
        types=(r"\w*Overloaded\w*",),
        statuses=(529,),
    ),
    Clue(
        "transient",
        "not_ready",
        codes=(r"modelnotready.*|modelloading",),
        text=(
            r"\bmodel\b[^.]{0,60}\b(?:is (?:currently |still )?loading|not (?:yet )?ready|warming up)",
            r"\bloading model\b|waiting for [\w .]{0,40} to start",
        ),
        types=(r"ModelNotReady\w*",),
    ),
    Clue(
        "transient",
        "rate_limit",
        bare_codes=(r"ratelimit.*|.*throttl.*|toomanyrequests.*|resourceexhausted",),
        text=(
            r"\brate[ -]?limit|too many (?:requests|tokens)|(?:tokens|requests) per (?:second|min|day)",
            r"\brequests? (?:was |were |is )?throttled|\bthrottling",
        ),
        types=(r"RateLimit\w*|\w*Throttl\w*|TooManyRequests\w*|ResourceExhausted\w*",),
        statuses=(429,),
    ),
    Clue(
        "transient",
        "timeout",
        codes=(r"(?:request|gateway|model|read)?timeout(?:error|exception)?|deadlineexceeded",),
        text=(
            rf"{_SUPPLIER}[^.]{{0,40}}\b(?:tim(?:ed?|ing)[ -]?out|stalled)\b",
            r"\bread (?:operation )?timed out|gateway time-?out|deadline exceeded",
            r"time-?out (?:error )?(?:while |waiting |from |calling )",
        ),
        types=(r"(?:API|Read|Connect|Write|Pool|Request|Response|Server|Gateway|Model)?Time[dD]?[oO]ut\w*",),
        statuses=(408, 504, 522, 524),
    ),
    Clue(
        "transient",
        "connection",
        text=(
            r"\bconnection (?:error|reset|refused|closed|aborted|lost|terminat)|\beconn(?:reset|refused)\b",
            r"server disconnected|peer closed|incomplete (?:chunked )?read|disconnect/reset",
            r"socket hang up|\bstream (?:disconnected|ended|closed|interrupted)|name or service not known",
            r"failure in name resolution|\bgetaddrinfo\b|response payload is not completed",
        ),
        types=(
            r"(?:API|Client|Proxy|Endpoint|New)?Conn(?:ect(?:ion|or)?)?(?:Reset|Refused|Aborted|DNS|SSL|Certificate"
            r"|Closed)?(?:Error|Exception)",
            r"ReadError|WriteError|\w*ProtocolError|IncompleteRead|ChunkedEncodingError|ServerDisconnected\w*",
            r"SSL\w*Error|gaierror|BrokenPipeError|MidStream\w*",
        ),
    ),
    Clue(
        "unknown",
        "not_found",
        codes=(r"modelnotfound.*|deploymentnotfound",),
        bare_codes=(r"notfound(?:error)?",),
        types=(r"\w*NotFound(?:Error|Exception)?",),
        statuses=(404, 410),
    ),
    Clue(
        "unknown",
        "bad_request",
        bare_codes=(r"invalid(?:request(?:error)?|argument)|failedprecondition|validationexception|badrequest",),
        types=(r"BadRequest\w*|Unprocessable\w*|InvalidRequest\w*|ValidationException|\w*UnsupportedParams\w*",),
        statuses=(400, 405, 409, 413, 415, 422),
    ),
    Clue(
        "transient",
        "server_error",
        bare_codes=(r"internal(?:servererror)?|servererror|apierror|(?:service)?unavailable(?:error)?",),
        text=(
            r"internal (?:server )?error|bad gateway|service (?:is )?(?:temporarily )?unavailable",
            r"server had an error|\bengine\w* (?:encountered|is dead|died)",
        ),
        types=(r"\w*ServerError|ServiceUnavailable\w*|BadGateway\w*",),
        statuses=tuple(range(500, 600)),
    ),
)

FOREIGN = re.compile(
    r"\bcurl: \(\d+\)|\bwget\b|\bnpm (?:err!|error)|\bfatal: (?:unable to access|authentication failed)"
    r"|could not install packages|\bwhile getting https?://|\bkubectl\b|\bssh: connect to host\b|\bpytest\b"
    r"|(?<![-./\w])test_\w+|\btool (?:call|execution)\b[^.]{0,30}\b(?:failed|error)\b"
    r"|when calling the (?!invoke|converse|retrieve|assumerole|getcalleridentity|counttokens|applyguardrail)\w+"
    r" operation\b"
    r"|\bfailed to fetch\b|error response from daemon|pull rate limit|\btoomanyrequests:|\bsource metadata\b"
    r"|\bHEAD request\b|\bMCP error\b|^(?:subprocess|docker|sqlalchemy|psycopg2?|redis|pymongo|paramiko)\.",
    re.IGNORECASE | re.MULTILINE,
)
"""What tools and the environment say: never evidence about the model supplier."""

OUTER_DEADLINE = re.compile(
    r"\b(?:agent|task|trial|verifier|tests?|sample|command|execution|episode)\b"
    rf"(?:(?!{_SUPPLIER})[^.]){{0,60}}?\btimed[ -]?out\b",
    _FLAGS,
)
"""A harness's own limit: what it cut short may have been anything."""
