"""What each failure becomes towards the editor."""

import pytest

from bridge.errors import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    BadStream,
    BridgeError,
    Busy,
    ConfigError,
    EditorError,
    ErrorKind,
    Fault,
    LoginRequired,
    ModelError,
    Refused,
    TooLong,
    Unreachable,
    model_error,
    to_editor,
)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("auth", Refused),
        ("quota", Refused),
        ("bad_request", Refused),
        ("rate_limit", Busy),
        ("overloaded", Busy),
        ("server_error", Busy),
        ("context_too_long", TooLong),
        ("unreachable", Unreachable),
        ("timeout", Unreachable),
        ("stream_truncated", Unreachable),
        ("bad_stream", BadStream),
        ("internal", BadStream),
    ],
)
def test_every_kind_of_fault_has_its_class(kind: ErrorKind, expected: type[ModelError]) -> None:
    assert type(model_error(Fault(kind, "It broke."))) is expected


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (ConfigError("The file is wrong."), INTERNAL_ERROR, "config"),
        (LoginRequired("There is no key."), AUTH_REQUIRED, "auth"),
        (BridgeError("Something broke."), INTERNAL_ERROR, "internal"),
        (model_error(Fault("auth", "The key was refused.")), AUTH_REQUIRED, "auth"),
        (model_error(Fault("quota", "Nothing is left.")), INTERNAL_ERROR, "quota"),
    ],
)
def test_an_error_has_one_sentence_in_all_places(error: BridgeError, code: int, kind: str) -> None:
    answer = to_editor(error)
    assert answer.code == code
    assert answer.data == {"details": str(error), "error": str(error), "kind": kind}
    assert answer.message == str(error)


def test_what_is_known_of_a_fault_goes_along_and_nothing_else() -> None:
    fault = Fault("rate_limit", "Too fast.", 429, "rate_limit_exceeded", "req_1", 1.5)
    data = to_editor(model_error(fault)).data
    assert data == {
        "details": "Too fast.",
        "error": "Too fast.",
        "kind": "rate_limit",
        "status": 429,
        "code": "rate_limit_exceeded",
        "requestId": "req_1",
        "retryAfter": 1.5,
    }


def test_an_error_of_the_protocol_keeps_its_code_and_data() -> None:
    answer = to_editor(EditorError(INVALID_PARAMS, "cwd: not absolute", {"sessionId": "s"}))
    assert (answer.code, answer.message) == (INVALID_PARAMS, "cwd: not absolute")
    assert answer.data["sessionId"] == "s"
    assert to_editor(EditorError(INVALID_PARAMS, "x")).data == {"details": "x", "error": "x"}
