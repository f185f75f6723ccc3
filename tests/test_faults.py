import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridge.core.wire import load
from bridge.errors import ErrorKind, Fault
from bridge.responses import faults
from bridge.responses.faults import CODES, STATUSES

NOW = 1_000_000_000.0
SECRET = "sk-0123456789abcdef"


def answered(status: int, body: Any = None, /, **headers: str) -> Fault:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return faults.of_response(status, given, data, NOW)


def streamed(body: Any, **headers: str) -> Fault:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return faults.of_event(body, given, NOW)


def test_a_status_says_what_failed_and_whether_another_try_helps() -> None:
    def check(status: int, kind: ErrorKind, *, retry: bool = False) -> None:
        fault = answered(status, {"error": {"message": "m"}})
        assert (fault.kind, fault.status, fault.retryable) == (kind, status, retry)
        assert f"(HTTP {status}): m; " in fault.message

    check(400, "bad_request")
    check(401, "auth")
    check(402, "quota")
    check(403, "auth")
    check(404, "bad_request")
    check(405, "bad_request")
    check(408, "server_error", retry=True)
    check(409, "server_error", retry=True)
    check(413, "context_too_long")
    check(422, "bad_request")
    check(429, "rate_limit", retry=True)
    check(500, "server_error", retry=True)
    check(502, "server_error", retry=True)
    check(503, "overloaded", retry=True)
    check(504, "server_error", retry=True)
    check(529, "overloaded", retry=True)


def test_a_code_says_more_than_a_status() -> None:
    def check(status: int, error: dict[str, Any], kind: ErrorKind) -> None:
        assert answered(status, {"error": {"message": "m", **error}}).kind == kind

    check(429, {"code": "insufficient_quota"}, "quota")
    check(429, {"type": "usage_limit_reached"}, "quota")
    check(401, {"code": "invalid_api_key", "type": "invalid_request_error"}, "auth")
    check(401, {"type": "invalid_request_error"}, "auth")
    check(400, {"code": "context_length_exceeded"}, "context_too_long")
    check(400, {"code": 400, "type": "exceed_context_size_error"}, "context_too_long")
    check(500, {"code": "500", "type": "odd"}, "server_error")
    check(503, {"code": "slow_down"}, "overloaded")
    check(400, {"code": "server_is_overloaded"}, "overloaded")
    check(400, {"code": "unheard_of"}, "bad_request")


def test_an_overlong_conversation_is_known_by_the_words_too() -> None:
    def check(message: str, kind: ErrorKind) -> None:
        error = {"code": "invalid_prompt", "message": message}
        assert answered(400, {"error": error}).kind == kind

    check("This endpoint's maximum context length is 8192 tokens.", "context_too_long")
    check("Your input exceeds the context window of this model.", "context_too_long")
    check("The context was not understood.", "bad_request")
    check("The length of the name is wrong.", "bad_request")


def test_message_and_code_are_found_in_every_form() -> None:
    def check(body: Any, message: str, code: str | None = None) -> None:
        fault = answered(400, body)
        said = f": {message}; " if message else "(HTTP 400): check"
        assert said in fault.message
        assert fault.code == code

    check({"error": {"message": "m", "type": "t", "param": None, "code": None}}, "m", "t")
    check({"error": {"code": 400, "message": "m", "type": "t"}}, "m", "400")
    check({"error": {"message": "m"}, "metadata": {}, "error_type": "x"}, "m")
    check({"detail": "d"}, "d")
    check({"detail": [{"loc": ["body"], "msg": "d"}]}, "d")
    check({"detail": []}, "")
    check({"error": "text"}, "text")
    check({"code": "c", "error": "text"}, "text", "c")
    check({"message": "m", "code": True}, "m")
    check([{"error": {"message": "m"}}], "m")
    check([], "")
    check("plain", "plain")
    check(b"not JSON at all", "not JSON at all")
    check(b"<html><h1>Bad gateway</h1></html>", "")
    check(b"", "")
    check(b"\xff\xfe", "\ufffd\ufffd")
    check(b'data: {"error":{"message":"m","code":"c"}}\n\ndata: [DONE]\n\n', "m", "c")
    check(b'event: error\ndata: {"detail":"d"}\n\n', "d")
    check(b"data: cut", "data: cut")
    # What is not the error comes first.
    pings = b': hi {"a":1}\n\ndata: 7\n\ndata: {"type":"ping"}\r\n\r\ndata: {"message":"alive"}\n\n'
    check(pings + b'data: {"error":{"message":"m","code":"c"}}\n\ndata: [DONE]\n\n', "m", "c")
    check(pings + b'data: {"error":null}\n\n', "alive")
    check(b'data: {"type":"ping"}\n\ndata: {"detail":"d"}\n\n', "d")
    check(b'data: {"type":"response.failed","response":{"error":{"code":"c"}}}\n\n', "", "c")
    check('data: {"error":{"message":"a\u2028b"}}\n\n'.encode(), "a b")
    check({"error": None}, "")
    check({"error": {"message": {"msg": "m"}}}, "m")


def test_a_refused_parameter_is_named_with_the_way_to_leave_it_out() -> None:
    def check(status: int, error: dict[str, Any], parameter: str | None) -> None:
        fault = answered(status, {"error": error})
        assert fault.parameter == parameter
        assert ('add omit = ["store"] to the model' in fault.message) is (parameter is not None)

    refusal = {"message": "Unknown parameter: 'store'.", "param": "store"}
    check(400, refusal, "store")
    check(422, refusal, "store")
    check(400, {"message": "Unknown parameter: 'input'."}, None)
    check(400, {"message": "No."}, None)
    check(429, refusal, None)
    check(500, refusal, None)
    check(401, refusal, None)


def test_nothing_at_an_address_of_azure_has_three_causes() -> None:
    def check(host: str, body: bytes, *, named: bool) -> None:
        fault = faults.of_response(404, {}, body, NOW, (), host)
        assert ("`model` must be the name of the deployment and not" in fault.message) is named
        assert ("check base_url and the model's name" in fault.message) is not named

    said = b'{"error":{"code":"404","message":"Resource not found"}}'
    for host in ("x.openai.azure.com", "x.cognitiveservices.azure.com", "x.services.ai.azure.com"):
        check(host, b"", named=True)
        check(host, said, named=True)
        check(host, b'{"error":{"message":"The deployment does not exist."}}', named=False)
    check("api.openai.com", said, named=False)
    assert faults.of_response(404, {}, said, NOW, (), "x.openai.azure.com").message == (
        "The provider refused the request (HTTP 404): Resource not found; `model` must be the name "
        "of the deployment and not of the model, base_url must end in /openai/v1, and the region "
        "or API version must have the Responses API"
    )


def test_the_sentence_names_the_cause_and_a_remedy() -> None:
    def check(fault: Fault, message: str) -> None:
        assert fault.message == message

    check(
        answered(401, {"error": {"message": "Incorrect API key."}}),
        "The provider refused the credentials (HTTP 401): Incorrect API key; "
        "check the API key that the configuration names",
    )
    check(
        answered(403, {}),
        "The provider denied access (HTTP 403): check the API key that the configuration names",
    )
    missing = "The server has no Responses API at this address (HTTP 404)"
    check(
        answered(404, {"detail": "Not Found"}),
        f"{missing}: Not Found; check base_url and the model's name",
    )
    check(answered(404, b""), f"{missing}: check base_url and the model's name")
    check(
        answered(404, {"error": {"message": "no m", "type": "not_found_error"}}),
        "The provider refused the request (HTTP 404): no m; check base_url and the model's name",
    )
    check(
        answered(404, {"error": {"message": "no m", "code": "model_not_found"}}),
        "The provider refused the request (HTTP 404): no m; "
        "check the model and its settings in the configuration",
    )
    check(
        answered(429, b"", retry_after="90"),
        "The provider limits the rate of requests (HTTP 429): "
        "wait 90 s, then send the prompt again",
    )
    check(
        answered(429, b""),
        "The provider limits the rate of requests (HTTP 429): "
        "wait a moment, then send the prompt again",
    )
    check(
        answered(503, b"", retry_after="0.2"),
        "The provider is overloaded (HTTP 503): wait 1 s, then send the prompt again",
    )
    check(faults.truncated(), "The answer broke off before its end: send the prompt again")
    check(
        faults.not_a_stream("text/html"),
        "What the server sent is not a Responses stream but text/html: "
        "check that base_url leads to a server of the Responses API",
    )
    check(
        faults.redirected(307),
        "The server redirects to another address (HTTP 307): put that address into base_url",
    )
    check(
        faults.late("h", 5.0, "idle_timeout"),
        "h sent nothing for 5 s: send the prompt again, or raise idle_timeout",
    )
    check(
        faults.unreachable("h", "it hung up"),
        "No connection to h (it hung up): check that the server runs, and base_url",
    )
    check(
        faults.untrusted("h"),
        "The TLS certificate of h is not trusted: set ca_file, or check base_url",
    )


def test_words_of_the_provider_are_cut_and_printable() -> None:
    fault = answered(400, {"error": {"message": "a\x1b[31m\n" + "b" * 999, "code": "c" * 999}})
    assert "a [31m bbb" in fault.message
    assert len(fault.message) < 400
    assert fault.code == "c" * 80 + "…"


def test_no_secret_comes_back_in_an_error() -> None:
    def check(message: str, secrets: tuple[str, ...], shown: str) -> None:
        error: Any = {"error": {"message": message, "code": f"c {message}", "type": message}}
        fault = faults.of_response(400, {}, json.dumps(error).encode(), NOW, secrets)
        assert f": {shown}; " in fault.message
        assert fault.code == f"c {shown}"
        event = faults.of_event(error, None, NOW, secrets)
        assert f": {shown}; " in event.message

    check(f"wrong key {SECRET} here", (f"Bearer {SECRET}",), "wrong key [hidden] here")
    check(f"got Bearer {SECRET}", (f"Bearer {SECRET}",), "got [hidden]")
    check(f"wrong key {SECRET}", (SECRET,), "wrong key [hidden]")
    check("title acme", ("acme", ""), "title acme")


def test_a_wait_is_taken_from_headers_and_then_from_words() -> None:
    def check(seconds: float | None, words: str = "", **headers: str) -> None:
        assert answered(429, {"error": {"message": words}}, **headers).retry_after == seconds

    check(None)
    check(1.5, retry_after_ms="1500", retry_after="9")
    check(9.0, retry_after_ms="soon", retry_after="9")
    check(0.25, retry_after=" 0.25 ")
    check(None, retry_after="-1")
    check(None, retry_after="nan")
    check(None, retry_after="")
    check(None, retry_after="1" * 99)
    check(30.0, retry_after="Sun, 09 Sep 2001 01:47:10 GMT")
    check(0.0, retry_after="Sun, 09 Sep 2001 01:46:00 GMT")
    check(None, retry_after="Sun, 99 Sep 2001 01:46:00 GMT")
    check(None, retry_after="Sun, 09 Sep 99999999999999999999 01:46:00 GMT")
    check(2.0, "try again in 7 s", retry_after="2")
    check(7.0, "Please try again in 7s.")
    check(1.5, "Try again in 1.5 seconds")
    check(0.028, "try again in 28ms")
    check(0.005, "retry after 5 milliseconds")
    check(360.0, "Please try again in 6m0s. Visit us.")
    check(72.5, "try again in 1m12.5s")
    check(3720.0, "try again in 1h2m")
    check(7200.0, "wait for 2 hours")
    check(120.0, "please wait 2 minutes")
    check(None, "try again in 7 sandwiches")
    check(None, "try again in a while")
    check(None, f"try again in {'9' * 99}s")


def test_in_a_stream_the_words_say_more_of_the_wait_than_the_headers_of_the_whole() -> None:
    def check(seconds: float | None, words: str, **headers: str) -> None:
        error = {"code": "rate_limit_exceeded", "message": words}
        assert streamed({"error": error}, **headers).retry_after == seconds

    check(None, "m")
    check(3.0, "m", retry_after="3")
    check(1.0, "try again in 1s", retry_after="3")


def test_a_server_may_say_whether_to_try_again() -> None:
    def check(status: int, order: str, *, retry: bool) -> None:
        assert answered(status, {}, x_should_retry=order).retryable is retry

    check(429, "false", retry=False)
    check(400, "true", retry=True)
    check(429, "maybe", retry=True)
    check(400, "", retry=False)


def test_the_request_s_id_is_kept_for_support() -> None:
    def check(name: str | None, **headers: str) -> None:
        assert answered(500, {}, **headers).request_id == name
        assert streamed({"error": {"message": "m"}}, **headers).request_id == name

    check("r1", x_request_id="r1", cf_ray="c1")
    check("r2", x_request_id="", x_oai_request_id="r2")
    check("c1", cf_ray="c1")
    check("x" * 80, x_request_id="x" * 80)
    check("x" * 80 + "…", x_request_id="x" * 81)
    check(None)
    headers = {"x-request-id": "sk-repeated-1"}
    for fault in (
        faults.of_response(500, headers, b"", NOW, ("Bearer sk-repeated-1",)),
        faults.of_event({}, headers, NOW, ("Bearer sk-repeated-1",)),
    ):
        assert fault.request_id == "[hidden]"


def test_failures_in_a_stream_are_read_in_every_form() -> None:
    def check(body: Any, kind: ErrorKind, code: str | None, words: str = "m") -> None:
        fault = streamed(body)
        assert (fault.kind, fault.code, fault.status) == (kind, code, None)
        assert f": {words}; " in fault.message

    error = {"code": "rate_limit_exceeded", "message": "m"}
    check({"type": "error", **error}, "rate_limit", "rate_limit_exceeded")
    check({"type": "error", "error": error}, "rate_limit", "rate_limit_exceeded")
    check({"type": "response.failed", "response": {"error": error}}, "rate_limit", error["code"])
    check({"type": "response.failed", "response": {}, "error": error}, "rate_limit", error["code"])
    check({"error": error}, "rate_limit", "rate_limit_exceeded")
    check({"error": "m"}, "server_error", None)
    check({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "overloaded",
          "overloaded_error")  # fmt: skip
    check({"type": "error", "error": {"type": "invalid_request_error", "message": "m"}},
          "bad_request", "invalid_request_error")  # fmt: skip
    check({"error": {"code": 429, "message": "m"}}, "rate_limit", "429")
    check({"error": {"code": 502, "message": "m"}}, "server_error", "502")
    check({"error": {"code": "0429", "message": "m"}}, "server_error", "0429")
    check({"error": {"code": 418, "message": "m"}}, "bad_request", "418")
    check({"error": {"code": 999, "message": "m"}}, "server_error", "999")
    check({"error": {"code": "new_code", "message": "m"}}, "server_error", "new_code")
    check({"error": {"code": 400, "message": "context length exceeded"}}, "context_too_long", "400",
          "context length exceeded")  # fmt: skip
    assert streamed({"error": {"code": "new_code"}}).retryable
    assert not streamed({"error": {"code": "invalid_prompt"}}).retryable
    assert not streamed({"error": {"code": "insufficient_quota"}}).retryable


def test_unreadable_reasoning_has_one_code_however_it_is_said() -> None:
    message = "The encrypted content gAAA could not be verified."
    said = {"message": message, "type": "invalid_request_error", "code": None}
    assert answered(400, {"error": said}).code == faults.UNREADABLE
    assert answered(400, {"error": {**said, "code": faults.UNREADABLE}}).code == faults.UNREADABLE
    assert answered(400, {"error": {"message": "The encrypted content is fine"}}).code is None


def test_a_failure_without_a_reason_is_known_as_one() -> None:
    def check(body: Any, *, reasonless: bool) -> None:
        assert faults.is_reasonless(body) is reasonless

    check({"type": "response.failed", "response": {"error": None}}, reasonless=True)
    check({"type": "response.failed"}, reasonless=True)
    check({"type": "error", "error": {"type": "server_error"}}, reasonless=True)
    check({"type": "error", "code": "c"}, reasonless=False)
    check({"type": "error", "message": "m"}, reasonless=False)
    check({"error": "m"}, reasonless=False)


def test_every_kind_has_its_words() -> None:
    for code in CODES:
        assert streamed({"error": {"code": code}}).kind == CODES[code]
    for status in STATUSES:
        assert answered(status, {}).kind == STATUSES[status]


@given(st.integers(400, 599), st.binary(max_size=60), st.text(max_size=30))
def test_no_answer_raises(status: int, body: bytes, header: str) -> None:
    answered(status, body, retry_after=header, retry_after_ms=header, x_request_id=header)


@given(st.text(alphabet='{}[]":,aerdtomsc1 ', max_size=60))
def test_no_event_raises(text: str) -> None:
    for whole in (text, f'{{"error":{{{text}}}}}', f'{{"response":{{"error":{text}}}}}'):
        try:
            body = load(whole)
        except ValueError:
            continue
        if isinstance(body, dict):
            assert streamed(body).message
