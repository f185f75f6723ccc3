"""What a server says of a failure, in any of its forms: in; one Fault, out.

It must not know what is done about a failure; only whether another try makes sense.

Rule 1: the sentence is ours: what happened, with the provider's own words cut short, and what to
do. Nothing of a header is in it, and no secret, even where the server repeats one.
Rule 2: CODES and STATUSES say what a failure is; a code says more than a status.
Rule 3: how long to wait, a server says in a header or in words; what cannot be read is no hint.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import cast

from bridge.core.wire import Json, JsonObject, load, object_of
from bridge.errors import ErrorKind, Fault
from bridge.responses.quirks import QUIRKS, is_named
from bridge.responses.refused import refused_parameter
from tools.frozen import frozen
from tools.late import pattern

_MOST_WORDS = 240
_MOST_CODE = 80

_TEXTS: dict[ErrorKind, tuple[str, str]] = {
    "auth": (
        "The provider refused the credentials",
        "check the API key that the configuration names",
    ),
    "quota": ("The account has no quota left", "check the plan and billing of the account"),
    "rate_limit": (
        "The provider limits the rate of requests",
        "wait a moment, then send the prompt again",
    ),
    "overloaded": ("The provider is overloaded", "wait a moment, then send the prompt again"),
    "server_error": (
        "The provider failed",
        "send the prompt again; if it stays, ask the provider",
    ),
    "bad_request": (
        "The provider refused the request",
        "check the model and its settings in the configuration",
    ),
    "context_too_long": (
        "The conversation is longer than the model's context window",
        "start a new session, or use a model with a larger window",
    ),
    "bad_stream": (
        "What the server sent is not a Responses stream",
        "check that base_url leads to a server of the Responses API",
    ),
    "stream_truncated": ("The answer broke off before its end", "send the prompt again"),
}
"""What happened, and what to do."""
_NOT_THERE = "check base_url and the model's name"
_NOT_IN_AZURE = (
    "`model` must be the name of the deployment and not of the model, base_url must end in "
    "/openai/v1, and the region or API version must have the Responses API"
)

UNREADABLE = "invalid_encrypted_content"
"""The code of a request whose encrypted reasoning the server cannot read, however it says so."""

CODES: dict[str, ErrorKind] = {
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "insufficient_quota": "quota",
    "credit_balance_exhausted": "quota",
    "usage_limit_reached": "quota",
    "usage_not_included": "quota",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "too_many_requests": "rate_limit",
    "server_is_overloaded": "overloaded",
    "slow_down": "overloaded",
    "overloaded_error": "overloaded",
    "overloaded": "overloaded",
    "server_error": "server_error",
    "internal_error": "server_error",
    "invalid_prompt": "bad_request",
    "invalid_request_error": "bad_request",
    UNREADABLE: "bad_request",
    "model_not_found": "bad_request",
    "unsupported_parameter": "bad_request",
    "bio_policy": "bad_request",
    "cyber_policy": "bad_request",
    "misalignment_policy_violation": "bad_request",
    "data_residency_mismatch": "bad_request",
    "context_length_exceeded": "context_too_long",
    "exceed_context_size_error": "context_too_long",
}

STATUSES: dict[int, ErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "server_error",
    409: "server_error",
    413: "context_too_long",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}
"""Below 500 every other status is a bad request, from 500 on a failure of the server."""

_RETRYABLE: frozenset[ErrorKind] = frozenset(
    {"rate_limit", "overloaded", "server_error", "stream_truncated"}
)
_REFUSALS = (400, 413, 415, 422)
_NOT_THE_INPUT = frozenset(
    {"model_not_found", "unsupported_parameter", "data_residency_mismatch"}
    | {code for code in CODES if code.endswith(("_policy", "_policy_violation"))}
)
_REQUEST_IDS = ("x-request-id", "x-oai-request-id", "apim-request-id", "cf-ray")
_ORDERS = {"true": True, "false": False}
_SHORTEST_SECRET = 8
"""Characters of a header's value from which on it may be a secret rather than a word."""

_NUMBER = pattern(r"\d{1,9}(?:\.\d{1,9})?")
_SPAN = r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milliseconds?|s|seconds?|m|minutes?|h|hours?)(?![a-z])"
_WORDS = pattern(rf"(?:try again|retry|wait)(?: in| after| for)? ((?:{_SPAN} ?)+)", re.IGNORECASE)
_SPANS = pattern(_SPAN, re.IGNORECASE)
_LINE_END = pattern(r"\r\n?|\n")
_UNITS = {"ms": 0.001, "mil": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0}
"""Seconds by the first letters of a unit; hours are the rest."""


@frozen
class _Said:
    """What a body holds, wherever it holds it."""

    code: str | None
    type: str | None
    message: str


@frozen
class Broken:
    """An attempt at a response that failed; another one may follow."""

    fault: Fault
    attempt: int
    """Which one it was: 1 is the first request for this response."""


def of_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    now: float,
    secrets: Iterable[str] = (),
    host: str = "",
) -> Fault:
    """The fault of an HTTP answer that is an error; `now`: seconds of the epoch."""
    whole = _body(body)
    said = _said(whole, secrets)
    kind = _kind(said, status)
    wait = _header_wait(headers, now)
    wait = _words_wait(said.message) if wait is None else wait
    parameter = refused_parameter(whole) if kind == "bad_request" else None
    what, remedy = _told(kind, wait)
    what = f"{what} (HTTP {status})"
    if status in (404, 405) and (said.code or "") not in CODES:
        what, remedy = _not_there(status, said, host, what)
    elif kind == "auth" and status == 403:
        what = "The provider denied access (HTTP 403)"
    elif parameter is not None:
        remedy = f'add omit = ["{parameter}"] to the model\'s settings'
    return replace(
        _fault(kind, what, remedy, said),
        status=status,
        request_id=_request_id(headers, secrets),
        retry_after=wait,
        retryable=_ORDERS.get(headers.get("x-should-retry", ""), kind in _RETRYABLE),
        parameter=parameter,
    )


def _not_there(status: int, said: _Said, host: str, what: str) -> tuple[str, str]:
    """What happened and what to do, where nothing answers at this address."""
    if not said.code and not said.type:
        what = f"The server has no Responses API at this address (HTTP {status})"
    is_wordless = said.message in ("", "Resource not found")
    is_azure = is_wordless and is_named(host, QUIRKS["azure"].hosts)
    return what, _NOT_IN_AZURE if is_azure else _NOT_THERE


def of_event(
    body: JsonObject,
    headers: Mapping[str, str] | None = None,
    now: float = 0.0,
    secrets: Iterable[str] = (),
) -> Fault:
    """The fault of a failure inside a stream that began well; headers: of the whole answer."""
    given = headers or {}
    said = _said(body, secrets)
    kind = _kind(said, None)
    wait = _words_wait(said.message)
    wait = _header_wait(given, now) if wait is None else wait
    return replace(
        _fault(kind, *_told(kind, wait), said),
        request_id=_request_id(given, secrets),
        retry_after=wait,
        retryable=kind in _RETRYABLE,
    )


def is_reasonless(body: JsonObject) -> bool:
    """A failure that says nothing of its cause: the cause may come in a frame of its own."""
    said = _said(body, ())
    return not said.message and said.code is None


def is_about_input(fault: Fault) -> bool:
    """A refusal that may be due to something the conversation holds."""
    return fault.status in _REFUSALS and (fault.code or "") not in _NOT_THE_INPUT


def truncated() -> Fault:
    """The fault of a stream that ended without saying so."""
    what, remedy = _TEXTS["stream_truncated"]
    return Fault("stream_truncated", f"{what}: {remedy}", retryable=True, cause=what)


def not_a_stream(found: str) -> Fault:
    """The fault of an answer that is something else altogether."""
    what, remedy = _TEXTS["bad_stream"]
    return Fault("bad_stream", f"{what} but {clean(found, _MOST_CODE)}: {remedy}")


def redirected(status: int) -> Fault:
    """The fault of an answer that leads elsewhere: the key is for the configured address only."""
    what = f"The server redirects to another address (HTTP {status})"
    return Fault("bad_request", f"{what}: put that address into base_url", status)


def late(host: str, seconds: float, setting: str) -> Fault:
    """The fault of a server that took longer than a setting allows it."""
    what = {
        "connect_timeout": f"No connection to {host} within {seconds:g} s",
        "first_event_timeout": f"{host} did not begin to answer within {seconds:g} s",
        "idle_timeout": f"{host} sent nothing for {seconds:g} s",
    }[setting]
    text = f"{what}: send the prompt again, or raise {setting}"
    return Fault("timeout", text, retryable=True, cause=what)


def unreachable(host: str, reason: str, proxy: str | None = None) -> Fault:
    """The fault of a connection that could not be made, or broke before it told anything.

    proxy: what names the proxy that it went by.
    """
    what = f"No connection to {host} ({reason})"
    if proxy is None:
        text = f"{what}: check that the server runs, and base_url"
    else:
        text = f"{what}: check that proxy, base_url, and that the server runs"
    return Fault("unreachable", text, retryable=True, cause=what)


def refused_by_proxy(host: str, proxy: str, status: str) -> Fault:
    """The fault of a proxy that makes no connection to this host."""
    what = f"The proxy of {proxy} makes no connection to {host} ({status})"
    remedy = "have the host allowed there, or name it in NO_PROXY if it can be reached directly"
    return Fault("unreachable", f"{what}: {remedy}", retryable=True, cause=what)


def untrusted(host: str) -> Fault:
    """The fault of a server whose certificate nobody vouches for."""
    text = f"The TLS certificate of {host} is not trusted: set ca_file, or check base_url"
    return Fault("unreachable", text)


def _body(body: bytes) -> Json:
    text = body.decode("utf-8", "replace").strip()
    found = list(_parsed(text)) or [one for line in _data_lines(text) for one in _parsed(line)]
    if found:
        return max(found, key=_is_error)
    return "" if text.startswith("<") else text


def _data_lines(text: str) -> list[str]:
    """An error may come framed as a stream, under an error status."""
    return [line[5:].strip() for line in _LINE_END.split(text) if line.startswith("data:")]


def _parsed(text: str) -> Iterator[Json]:
    """The JSON that this is, if it is any."""
    with suppress(ValueError):
        yield load(text)


def _is_error(body: Json) -> tuple[bool, bool]:
    """How much this looks like an error rather than a sign of life beside it."""
    said = _said(body, ())
    return len(_places(body)) > 1, bool(said.message or said.code)


def _said(body: Json, secrets: Iterable[str]) -> _Said:
    """Message, code and type, each from the innermost place that has it."""
    if isinstance(body, list):
        body = body[0] if body else ""
    places = _places(body)
    message = next((text for place in places if (text := _text(place, "message", "detail"))), "")
    if not message:
        plain = [place.get("error") for place in places] + [body]
        message = next((text for text in plain if isinstance(text, str)), "")
    code = next((text for place in places if (text := _text(place, "code"))), None)
    if "encrypted content" in message and "could not be" in message:
        code = UNREADABLE
    # The type of an event says that it is an error, not which.
    types = (text for place in places if (text := _text(place, "type")))
    kind = next((text for text in types if text != "error" and "response." not in text), None)
    return _Said(
        None if code is None else _scrubbed(code, secrets),
        None if kind is None else _scrubbed(kind, secrets),
        _scrubbed(message, secrets),
    )


def _places(body: Json) -> list[JsonObject]:
    if not isinstance(body, dict):
        return []
    nested = body.get("error"), object_of(body, "response").get("error")
    return [place for place in (*nested, body) if isinstance(place, dict)]


def _text(place: JsonObject, *names: str) -> str:
    for name in names:
        value = place.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict):
            value = cast("Json", value.get("msg") or value.get("message"))
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value)
    return ""


def _kind(said: _Said, status: int | None) -> ErrorKind:
    for name in (said.code, said.type):
        if name in CODES and (name != "invalid_request_error" or status is None):
            return _refined(CODES[name], said)
    if status is None:
        status = _numbered(said.code)
    if status in STATUSES:
        return STATUSES[status]
    return _refined("server_error" if status >= 500 else "bad_request", said)


def _numbered(code: str | None) -> int:
    """Some gateways put the HTTP status they got into the code of an event."""
    if code is not None and len(code) == 3 and code.isdecimal() and 400 <= int(code) < 600:
        return int(code)
    return 500


def _refined(kind: ErrorKind, said: _Said) -> ErrorKind:
    """Some providers fold an overlong conversation into a general refusal."""
    if kind != "bad_request":
        return kind
    text = said.message.lower()
    is_long = "context" in text and any(word in text for word in ("length", "window", "exceed"))
    return "context_too_long" if is_long else kind


def _told(kind: ErrorKind, wait: float | None) -> tuple[str, str]:
    """What happened, and what to do; wait: seconds that the server asked for."""
    what, remedy = _TEXTS[kind]
    return what, remedy if wait is None else remedy.replace("a moment", f"{math.ceil(wait)} s")


def _fault(kind: ErrorKind, what: str, remedy: str, said: _Said) -> Fault:
    """The fault as far as the body tells."""
    words = clean(said.message).rstrip(". ")
    cause = f"{what}: {words}" if words else what
    text = f"{cause}; {remedy}" if words else f"{cause}: {remedy}"
    name = said.code or said.type
    code = None if name is None else clean(name, _MOST_CODE)
    return Fault(kind, text, code=code, cause=cause)


def _request_id(headers: Mapping[str, str], secrets: Iterable[str]) -> str | None:
    found = next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
    return None if found is None else clean(_scrubbed(found, secrets), _MOST_CODE)


def _scrubbed(text: str, secrets: Iterable[str]) -> str:
    """The text without the values of headers, whole or without their first word."""
    for secret in secrets:
        for part in (secret, secret.rpartition(" ")[2]):
            if len(part) >= _SHORTEST_SECRET:
                text = text.replace(part, "[hidden]")
    return text


def clean(text: str, most: int = _MOST_WORDS) -> str:
    """A server's words on one line: no characters that cannot be seen, and not too many."""
    printable = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return printable if len(printable) <= most else f"{printable[:most]}…"


def _header_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the headers ask for; `now`: seconds of the epoch."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None or given is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _words_wait(text: str) -> float | None:
    """Seconds that the words ask for, such as "try again in 6m0s"."""
    found = _WORDS.search(text)
    if found is None:
        return None
    return sum(float(number) * _scale(unit.lower()) for number, unit in _SPANS.findall(found[1]))


def _scale(unit: str) -> float:
    return _UNITS.get(unit, _UNITS.get(unit[:3], 3600.0))


def _number(text: str | None) -> float | None:
    return None if text is None or not _NUMBER.fullmatch(text.strip()) else float(text.strip())
