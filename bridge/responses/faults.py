"""What a server says of a failure, in any of its forms: in; one Fault, out.

Rule 1: the sentence is ours: what happened, with the provider's own words cut short, and what to
do. Nothing of a header or a key is in it.
Rule 2: CODES and STATUSES say what a failure is; a code says more than a status.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import cast

from bridge.core.wire import Json, JsonObject, load
from bridge.errors import ErrorKind, Fault

_MOST_WORDS = 240
_MOST_CODE = 80

_REMEDIES: dict[ErrorKind, str] = {
    "auth": "check the API key that the configuration names",
    "quota": "check the plan and billing of the account",
    "rate_limit": "wait a moment, then send the prompt again",
    "overloaded": "wait a moment, then send the prompt again",
    "server_error": "send the prompt again; if it stays, ask the provider",
    "bad_request": "check the model and its settings in the configuration",
    "context_too_long": "start a new session, or use a model with a larger window",
    "bad_stream": "check that base_url leads to a server of the Responses API",
    "stream_truncated": "send the prompt again",
}

_WHAT: dict[ErrorKind, str] = {
    "auth": "The provider refused the credentials",
    "quota": "The account has no quota left",
    "rate_limit": "The provider limits the rate of requests",
    "overloaded": "The provider is overloaded",
    "server_error": "The provider failed",
    "bad_request": "The provider refused the request",
    "context_too_long": "The conversation is longer than the model's context window",
    "bad_stream": "What the server sent is not a Responses stream",
    "stream_truncated": "The answer broke off before its end",
}

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
    "invalid_encrypted_content": "bad_request",
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
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}
"""Below 500 every other status is a bad request, from 500 on a failure of the server."""

_RETRYABLE: frozenset[ErrorKind] = frozenset(
    {"rate_limit", "overloaded", "server_error", "stream_truncated"}
)

_REQUEST_IDS = ("x-request-id", "x-oai-request-id", "apim-request-id", "cf-ray")
_HINT = re.compile(
    r"(?:try again|retry) (?:in|after) (\d+(?:\.\d+)?) ?(ms|milliseconds?|s|seconds?|m|minutes?)\b",
    re.IGNORECASE,
)
_UNIT_SECONDS = {"ms": 0.001, "mi": 60.0, "m": 60.0, "s": 1.0}


@dataclass(frozen=True, slots=True)
class _Said:
    """What a body holds, wherever it holds it."""

    message: str
    code: str | None
    type: str | None


def of_response(status: int, headers: Mapping[str, str], body: bytes, now: float) -> Fault:
    """The fault of an HTTP answer that is an error; `now`: seconds of the epoch."""
    said = _said(_body(body))
    kind = _kind(said, status)
    if status in (404, 405) and (said.code or "") not in CODES:
        what = f"The server has no Responses API at this address (HTTP {status})"
        message = _sentence(what, said, "check base_url and the model's name")
    elif kind == "auth" and status == 403:
        message = _sentence("The provider denied access (HTTP 403)", said, _REMEDIES["auth"])
    else:
        message = _sentence(f"{_WHAT[kind]} (HTTP {status})", said, _REMEDIES[kind])
    request = next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
    wait = _header_wait(headers, now)
    return Fault(
        kind,
        message,
        status,
        _code(said),
        None if request is None else _clean(request, _MOST_CODE),
        _text_wait(said.message) if wait is None else wait,
        _obeyed(headers, retryable=kind in _RETRYABLE),
    )


def of_event(body: JsonObject, headers: Mapping[str, str], now: float) -> Fault:
    """The fault of a failure inside a stream that began well."""
    said = _said(body)
    kind = _kind(said, None)
    wait = _text_wait(said.message)
    return Fault(
        kind,
        _sentence(_WHAT[kind], said, _REMEDIES[kind]),
        code=_code(said),
        retry_after=_header_wait(headers, now) if wait is None else wait,
        retryable=kind in _RETRYABLE,
    )


def is_reasonless(body: JsonObject) -> bool:
    """A failure that says nothing of its cause: the cause may come in a frame of its own."""
    said = _said(body)
    return not said.message and said.code is None


def truncated() -> Fault:
    """The fault of a stream that ended without saying so."""
    what, remedy = _WHAT["stream_truncated"], _REMEDIES["stream_truncated"]
    return Fault("stream_truncated", f"{what}: {remedy}", retryable=True)


def not_a_stream(found: str) -> Fault:
    """The fault of an answer that is something else altogether."""
    what, remedy = _WHAT["bad_stream"], _REMEDIES["bad_stream"]
    return Fault("bad_stream", f"{what} but {_clean(found, _MOST_CODE)}: {remedy}")


def _body(body: bytes) -> Json:
    text = body.decode("utf-8", "replace").strip()
    for candidate in (text, *_data_lines(text)):
        try:
            return load(candidate)
        except ValueError:
            continue
    return "" if text.startswith("<") else text


def _data_lines(text: str) -> list[str]:
    """An error may come framed as a stream, under an error status."""
    return [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]


def _said(body: Json) -> _Said:
    """Message, code and type, each from the innermost place that has it."""
    places = _places(body)
    message = next((text for place in places if (text := _text(place, "message", "detail"))), "")
    if not message:
        plain = [place.get("error") for place in places] + [body]
        message = next((text for text in plain if isinstance(text, str)), "")
    code = next((text for place in places if (text := _text(place, "code"))), None)
    kind = next((text for place in places if (text := _text(place, "type"))), None)
    known = kind if kind not in ("error", "response.failed") else None
    return _Said(message, code, known)


def _places(body: Json) -> list[JsonObject]:
    if not isinstance(body, dict):
        return []
    response = body.get("response")
    nested = [body.get("error"), response.get("error") if isinstance(response, dict) else None]
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
        return _refined(_numbered(said.code), said)
    if status in STATUSES:
        return STATUSES[status]
    return _refined("server_error" if status >= 500 else "bad_request", said)


def _numbered(code: str | None) -> ErrorKind:
    """Some gateways put the HTTP status they got into the code of an event."""
    if code is None or not code.isdecimal() or not 400 <= int(code) < 600:
        return "server_error"
    status = int(code)
    return STATUSES.get(status, "server_error" if status >= 500 else "bad_request")


def _refined(kind: ErrorKind, said: _Said) -> ErrorKind:
    """Some providers fold an overlong conversation into a general refusal."""
    if kind != "bad_request":
        return kind
    text = said.message.lower()
    is_long = "context" in text and ("length" in text or "window" in text or "exceed" in text)
    return "context_too_long" if is_long else kind


def _sentence(what: str, said: _Said, remedy: str) -> str:
    words = _clean(said.message, _MOST_WORDS).rstrip(". ")
    return f"{what}: {words}; {remedy}" if words else f"{what}: {remedy}"


def _clean(text: str, most: int) -> str:
    printable = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return printable if len(printable) <= most else f"{printable[:most]}…"


def _code(said: _Said) -> str | None:
    name = said.code or said.type
    return None if name is None else _clean(name, _MOST_CODE)


def _obeyed(headers: Mapping[str, str], *, retryable: bool) -> bool:
    match headers.get("x-should-retry"):
        case "true":
            return True
        case "false":
            return False
        case _:
            return retryable


def _header_wait(headers: Mapping[str, str], now: float) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None or not given:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - now)
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip()):
        return None
    return float(text)


def _text_wait(text: str) -> float | None:
    found = _HINT.search(text)
    if found is None:
        return None
    unit = found[2].lower()
    scale = _UNIT_SECONDS.get(unit[:2], _UNIT_SECONDS.get(unit[:1], 1.0))
    return float(found[1]) * (0.001 if unit.startswith("milli") else scale)
