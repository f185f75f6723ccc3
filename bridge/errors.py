"""Everything that can go wrong in a conversation, and what each becomes towards the editor.

Rule 1: the text of an error names the thing, the cause and the remedy in one sentence.
Rule 2: no key, header, prompt text or traceback ever enters an error.
"""

from dataclasses import field
from typing import Literal

from tools.frozen import frozen

ErrorKind = Literal[
    "auth", "quota", "rate_limit", "overloaded", "server_error", "bad_request",
    "context_too_long", "unreachable", "timeout", "stream_truncated", "bad_stream",
    "config", "internal",
]  # fmt: skip
"""`data.kind` of an error answer."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
REQUEST_CANCELLED = -32800


class BridgeError(Exception):
    """Whatever we can explain to a person in one sentence: str(error) is that sentence."""

    kind: ErrorKind = "internal"


class ConfigError(BridgeError):
    """The configuration is missing or wrong; the text names file, line, key and remedy."""

    kind = "config"


class LoginRequired(BridgeError):
    """No credentials, or the user has logged out."""

    kind = "auth"


class EditorError(BridgeError):
    """The editor broke the protocol, or refused a request of ours."""

    def __init__(self, code: int, message: str, data: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data or {}


@frozen
class Fault:
    """What a model's server said of a failure, as far as it is known."""

    kind: ErrorKind
    message: str
    """Our sentence: cause and remedy."""
    cause: str = field(default="", kw_only=True)
    """The sentence without the remedy, for as long as we try ourselves."""
    status: int | None = None
    """HTTP status, where the failure came as one."""
    code: str | None = None
    """The provider's own code, as text."""
    request_id: str | None = None
    retry_after: float | None = None
    """Seconds the server asked us to wait."""
    retryable: bool = False
    parameter: str | None = None
    """The parameter of the request that the server refuses, where one can go without it."""


class ModelError(BridgeError):
    """The model's server failed us; the class tells how, the fault tells what is known."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.kind = fault.kind


class Unreachable(ModelError):
    """No connection, a time-out, or a stream that was cut."""


class Refused(ModelError):
    """The server understood the request and will not serve it."""


class Busy(ModelError):
    """Rate limit, overload or a fault of the server's own: later may be better."""


class TooLong(ModelError):
    """The conversation exceeds the model's context window."""


class BadStream(ModelError):
    """What arrived is not a Responses stream."""


_CLASS_OF_KIND: dict[ErrorKind, type[ModelError]] = {
    "auth": Refused,
    "quota": Refused,
    "bad_request": Refused,
    "rate_limit": Busy,
    "overloaded": Busy,
    "server_error": Busy,
    "context_too_long": TooLong,
    "unreachable": Unreachable,
    "timeout": Unreachable,
    "stream_truncated": Unreachable,
    "bad_stream": BadStream,
}


def model_error(fault: Fault) -> ModelError:
    """The exception for a fault of the model's server."""
    return _CLASS_OF_KIND.get(fault.kind, BadStream)(fault)


@frozen
class ErrorAnswer:
    """A JSON-RPC error answer."""

    code: int
    message: str
    data: dict[str, object]


TO_EDITOR: dict[ErrorKind, int] = {"auth": AUTH_REQUIRED}
"""JSON-RPC code by kind; every kind that is not named is an internal error."""


def to_editor(error: BridgeError) -> ErrorAnswer:
    """The answer for a request that ended with this error.

    Clients read the sentence from different places, so it stands in all of them.
    """
    message = str(error)
    said: dict[str, object] = {"details": message, "error": message}
    if isinstance(error, EditorError):
        return ErrorAnswer(error.code, message, {**said, **error.data})
    said["kind"] = error.kind
    if isinstance(error, ModelError):
        fault = error.fault
        known = {
            "status": fault.status,
            "code": fault.code,
            "requestId": fault.request_id,
            "retryAfter": fault.retry_after,
        }
        said |= {key: value for key, value in known.items() if value is not None}
    return ErrorAnswer(TO_EDITOR.get(error.kind, INTERNAL_ERROR), message, said)
