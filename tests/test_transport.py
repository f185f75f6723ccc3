import gzip
import json
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from bridge.core.effects import Say
from bridge.core.response import Response
from bridge.errors import (
    BadStream,
    Busy,
    ConfigError,
    ErrorKind,
    Fault,
    ModelError,
    Refused,
    Unreachable,
)
from bridge.responses.events import Delta, Ended, Event, Failure
from bridge.responses.faults import Broken
from bridge.responses.sse import BOM
from bridge.responses.transport import Transport, boot_time
from tests.fake_responses import (
    EVENT_STREAM,
    FakeResponses,
    Piece,
    Reply,
    failed,
    frame,
    said,
    stream,
    thought,
)
from tests.raw_server import Conversation, http, server

pytestmark = pytest.mark.anyio

SECRET = "sk-0123456789abcdef"
HELLO = stream(said("Hello"))
GREETING = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
BODY: dict[str, Any] = {"model": "m", "input": [GREETING], "stream": True, "store": False}
JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Place:
    """An endpoint that is patient for as long as a test may take."""

    base_url: str = "http://model.test/v1"
    is_local: bool = False
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"authorization": f"Bearer {SECRET}"}
    )
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    ca_file: str | None = None
    connect_timeout: float = 5
    first_event_timeout: float | None = 5
    idle_timeout: float = 5
    max_wait: float = 60
    max_retries: int = 0


@dataclass
class Heard:
    """What came of one request, and what was told and waited for meanwhile."""

    batches: list[list[Event]] = field(default_factory=list[list[Event]])
    waits: list[tuple[ErrorKind, int, int]] = field(
        default_factory=list[tuple[ErrorKind, int, int]]
    )
    slept: list[float] = field(default_factory=list[float])

    @property
    def text(self) -> str:
        response = Response()
        effects = chain.from_iterable(response.feed(event) for event in chain(*self.batches))
        return "".join(effect.text for effect in effects if isinstance(effect, Say))

    def on_wait(self, fault: Fault, attempt: int, most: int, seconds: float) -> None:
        assert seconds >= 0
        self.waits.append((fault.kind, attempt, most))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await anyio.lowlevel.checkpoint()


async def ask(
    fake: FakeResponses | None,
    place: Place | None = None,
    *,
    after: Broken | None = None,
    heard: Heard | None = None,
) -> Heard:
    """One request, read to its end, in-process unless there is no fake."""
    heard = heard or Heard()
    inner = None if fake is None else fake.inner
    with anyio.fail_after(10):
        async with (
            Transport(inner, sleep=heard.sleep) as transport,
            transport.stream(place or Place(), BODY, heard.on_wait, after) as batches,
        ):
            async for batch in batches:
                heard.batches.append(batch)
    return heard


async def fault_of(fake: FakeResponses | None, place: Place | None = None) -> Fault:
    """The fault that one request ends with, which never holds the key."""
    with pytest.raises(ModelError) as raised:
        await ask(fake, place)
    fault = raised.value.fault
    assert SECRET not in repr(fault)
    assert SECRET not in repr(raised.value)
    return fault


# -- the request


async def test_a_request_is_a_post_with_the_provider_s_headers_and_query() -> None:
    fake = FakeResponses(HELLO)
    await ask(fake, Place(query={"api-version": "a b"}))
    (asked,) = fake.asked
    assert asked.target == "/v1/responses?api-version=a+b"
    assert asked.body == BODY
    wanted = {
        "authorization": f"Bearer {SECRET}",
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "host": "model.test",
    }
    assert {name: asked.headers[name] for name in wanted} == wanted


async def test_the_body_is_json_whatever_it_holds() -> None:
    fake = FakeResponses(HELLO, any_body=True)
    body = {"input": "ä\ud800", "temperature": float("inf")}
    with anyio.fail_after(10):
        async with Transport(fake.inner) as transport, transport.stream(Place(), body):
            pass
    assert fake.asked[0].body == {"input": "ä\ufffd", "temperature": None}


# -- streams


async def test_events_come_in_one_batch_per_network_read() -> None:
    pieces: list[Piece] = [frame(HELLO[0]), b"".join(map(frame, HELLO[1:-1])), frame(HELLO[-1])]
    heard = await ask(FakeResponses(pieces))
    assert [len(batch) for batch in heard.batches] == [len(HELLO) - 2, 1, 0]
    assert isinstance(heard.batches[-2][0], Ended)


@pytest.mark.parametrize("cut", [1, 7, 10_000])
async def test_a_stream_means_the_same_however_it_is_cut(cut: int) -> None:
    heard = await ask(FakeResponses(stream(thought("Hm."), said("Hello \u2028 you ✓")), cut=cut))
    assert heard.text == "Hello \u2028 you ✓"


async def test_streams_are_read_whatever_their_framing() -> None:
    async def check(*body: Piece, **headers: str) -> None:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        heard = await ask(FakeResponses(Reply(body, headers=given)))
        assert heard.text == "Hello"
        assert isinstance(list(chain(*heard.batches))[-1], Ended)

    plain = b"".join(map(frame, HELLO))
    datas = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in HELLO)
    await check(plain, **{"content-type": "text/event-stream"})
    await check(plain)
    await check(datas, b"data: [DONE]\n\n", content_type="text/event-stream; charset=utf-8")
    await check(BOM + plain)
    await check(BOM[:1], BOM[1:], plain)
    await check(b"\n\n", b"\r\n", plain)
    await check(plain.rstrip())
    await check(plain.replace(b"\n", b"\r\n"))
    await check(plain.replace(b"\n", b"\r"))
    await check(plain.replace(b": ", b":"))
    await check(b": hello\n\n" + plain)
    await check(plain, content_type="application/json")
    await check(plain, content_type="text/plain; charset=iso-8859-1")
    await check(b"event: error\ndata: not JSON\n\n", plain)


async def test_the_encoding_is_utf_8_whatever_the_server_says() -> None:
    headers = {"content-type": "text/event-stream; charset=iso-8859-1"}
    body = [json.dumps(event, ensure_ascii=False) for event in stream(said("Grüße ✓"))]
    data = "".join(f"data: {text}\n\n" for text in body).encode()
    assert (await ask(FakeResponses(Reply([data], headers=headers)))).text == "Grüße ✓"


async def test_an_answer_is_unpacked_that_was_packed_unasked() -> None:
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    packed = gzip.compress(b"".join(map(frame, HELLO)))
    heard = await ask(FakeResponses(Reply([packed[:50], packed[50:]], headers=headers)))
    assert heard.text == "Hello"


async def test_data_are_read_whatever_json_they_are() -> None:
    async def check(delta: bytes, text: str) -> None:
        data = b'data: {"type":"response.output_text.delta","delta":%s}\n\n' % delta
        assert (await ask(FakeResponses([data, *stream(said(""))]))).text == text

    await check(b'"a\\u00e4\\ud83d\\ude00"', "aä😀")
    await check(b'"half a pair: \\ud83d"', "half a pair: \ud83d")
    await check(b'"x","y":%s%s' % (b"[" * 300, b"]" * 300), "")
    await check(b'"x","y":NaN', "")


async def test_the_name_of_a_frame_counts_where_the_data_have_no_type() -> None:
    def nameless(kind: str, **data: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()

    heard = await ask(FakeResponses([
        nameless("response.output_text.delta", delta="Hi", type=None),
        nameless("response.output_text.delta", delta="no", type="ping"),
        nameless("response.completed", response={}),
    ]))  # fmt: skip
    assert heard.text == "Hi"
    fault = await fault_of(FakeResponses([b'data: {"error":{"message":"m"}}\n\n']))
    assert (fault.kind, fault.code) == ("server_error", None)


async def test_keepalives_and_odd_frames_are_nothing() -> None:
    pieces: list[Piece] = [
        b": OPENROUTER PROCESSING\n\n", b"event: keepalive\n\n", b"data:\n\n", b"data: 7\n\n",
        b"data: {cut\n\n", b'data: {"type":"ping"}\n\n', *HELLO, b": bye\n\n",
    ]  # fmt: skip
    heard = await ask(FakeResponses(pieces))
    assert heard.text == "Hello"
    assert [
        event for batch in heard.batches[:1] for event in batch if isinstance(event, Delta)
    ] == []


async def test_a_finished_response_in_one_piece_is_an_answer() -> None:
    whole = HELLO[-1]["response"]

    async def check(*body: bytes, headers: Mapping[str, str]) -> None:
        heard = await ask(FakeResponses(Reply(body, headers=headers)))
        assert heard.text == "Hello"
        assert [len(batch) for batch in heard.batches] == [1]

    data = json.dumps(whole).encode()
    await check(data, headers=JSON)
    await check(b" \n", data[:9], data[9:], headers=JSON)
    await check(BOM + data, headers=EVENT_STREAM)
    await check(data, headers={})


async def test_done_ends_a_stream_that_is_held_open() -> None:
    fake = FakeResponses(Reply([*HELLO[:-1], b"data: [DONE]\n\n"], hold=True))
    heard = await ask(fake)
    assert heard.text == "Hello"
    assert fake.hung_up.is_set()


# -- failures


async def test_what_is_no_stream_is_a_fault_with_words() -> None:
    async def check(kind: ErrorKind, words: str, *body: bytes, **headers: str) -> None:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        fault = await fault_of(FakeResponses(Reply(body, headers=given)))
        assert fault.kind == kind
        assert words in fault.message

    await check("bad_stream", "but text/html:", b"<html>", content_type="text/html")
    await check("bad_stream", "but text:", b"<html>")
    await check("bad_stream", "but text/plain:", b"Bad gateway", content_type="text/plain")
    await check("bad_stream", "but application/json:", b'{"cut', content_type="application/json")
    await check("bad_stream", "but application/json:", b"[]", content_type="application/json")
    await check("bad_stream", "but JSON without an output:", b'{"detail":"x"}', content_type="a/b")
    await check("rate_limit", ": slow; ", b'{"error":{"code":429,"message":"slow"}}')
    await check("server_error", ": sad; ", b'{"output":[],"error":{"message":"sad"}}')
    await check("server_error", "The provider failed", b'{"output":[],"status":"failed"}')
    await check("stream_truncated", "broke off", b"", content_type="text/event-stream")
    await check("stream_truncated", "broke off", b"")
    await check("stream_truncated", "broke off", b": nothing\n\n", b"data: [DONE]\n\n")
    await check("stream_truncated", "broke off", *map(frame, HELLO[:2]))


async def test_an_error_status_is_a_fault_whatever_the_body() -> None:
    async def check(status: int, *body: Piece, words: str = "") -> None:
        reply = Reply(body, status, {"x-request-id": "r1", "content-type": "text/event-stream"})
        fault = await fault_of(FakeResponses(reply))
        assert (fault.status, fault.request_id) == (status, "r1")
        assert words in fault.message

    await check(500, b'data: {"error":{"message":"m"}}\n\ndata: [DONE]\n\n', words=": m; ")
    await check(400, b'{"error":', b'{"message":"m"}}', words=": m; ")
    await check(502, b"<html>bad</html>", words="(HTTP 502): send")
    await check(429)
    await check(401, f'{{"error":{{"message":"no {SECRET}"}}}}'.encode(), words=": no [hidden]; ")
    await check(400, b"x" * 70_000, b"y" * 70_000, words="xxx")
    await check(503, b'{"detail":"busy"}', httpx.ReadError("cut"), words=": busy; ")


async def test_a_fault_knows_whose_server_it_was() -> None:
    place = Place(base_url="http://team.openai.azure.com/openai/v1")
    fault = await fault_of(FakeResponses(Reply([], 404)), place)
    assert "`model` must be the name of the deployment" in fault.message


async def test_an_error_body_that_never_ends_is_not_waited_for_long() -> None:
    reply = Reply([b'{"detail":"busy"}'], 503, JSON, hold=True)
    fault = await fault_of(FakeResponses(reply), Place(idle_timeout=0.01))
    assert ": busy; " in fault.message


async def test_a_frame_that_never_ends_is_given_up() -> None:
    endless: list[Piece] = [b"data: ", *[b"x" * 1_000_000] * 70]
    fake = FakeResponses(Reply(endless, hold=True))
    fault = await fault_of(fake)
    assert (fault.kind, fault.retryable) == ("bad_stream", False)
    assert "but a frame without an end" in fault.message


async def test_a_redirect_is_not_followed() -> None:
    reply = Reply([], 307, {"location": "http://evil.test/v1/responses"})
    fake = FakeResponses(reply)
    fault = await fault_of(fake, Place(max_retries=2))
    assert (fault.kind, fault.status) == ("bad_request", 307)
    assert "evil" not in fault.message
    assert len(fake.asked) == 1


async def test_a_failure_inside_a_stream_has_what_the_headers_tell() -> None:
    headers = {**EVENT_STREAM, "retry-after": "7", "x-request-id": "r1"}
    said_so = failed(code="rate_limit_exceeded", message=f"no {SECRET}")
    fault = await fault_of(FakeResponses(Reply(said_so, headers=headers)))
    assert (fault.kind, fault.retry_after, fault.request_id) == ("rate_limit", 7.0, "r1")
    assert ": no [hidden]; " in fault.message

    heard = await ask(FakeResponses(Reply(failed(said("Half"), code="x"), headers=headers)))
    last = heard.batches[-1][-1]
    assert isinstance(last, Failure)
    assert last.fault
    assert (last.fault.code, last.fault.request_id) == ("x", "r1")


async def test_the_reason_of_a_failure_may_come_in_a_frame_of_its_own() -> None:
    reasonless = [*failed()[:-1], {"type": "response.failed", "response": {"error": None}}]
    reason = {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow"}}

    async def check(kind: ErrorKind, *after: Piece, hold: bool = False) -> None:
        fault = await fault_of(FakeResponses(Reply([*reasonless, *after], hold=hold)))
        assert fault.kind == kind

    await check("rate_limit", reason)
    await check("rate_limit", b": still\n\n", {"type": "ping"}, reason, hold=True)
    await check("rate_limit", frame(reason).rstrip())
    await check("server_error")
    await check("server_error", b"data: [DONE]\n\n", hold=True)
    await check("server_error", httpx.ReadError("cut"))
    together = b"".join(map(frame, [*reasonless, reason]))
    assert (await fault_of(FakeResponses([together]))).kind == "rate_limit"


async def test_a_missing_reason_is_not_waited_for_long() -> None:
    reasonless: Piece = {"type": "response.failed", "response": {}}
    with anyio.fail_after(4):
        fault = await fault_of(
            FakeResponses(Reply([reasonless], hold=True)), Place(idle_timeout=60)
        )
    assert fault.kind == "server_error"


async def test_a_failure_after_the_end_is_nothing() -> None:
    late: Piece = {"type": "response.failed", "response": {}}
    together = b"".join(map(frame, [*HELLO, late]))
    heard = await ask(FakeResponses(Reply([together], hold=False)))
    assert [event for batch in heard.batches for event in batch][-1] == Failure(late)
    assert heard.text == "Hello"


async def test_a_connection_that_breaks_in_the_middle_is_a_cut_answer() -> None:
    heard = Heard()
    fake = FakeResponses([*HELLO[:5], httpx.ReadError("Bearer " + SECRET)])
    with pytest.raises(Unreachable) as raised:
        await ask(fake, Place(max_retries=3), heard=heard)
    assert raised.value.fault.kind == "stream_truncated"
    assert raised.value.fault.retryable
    assert SECRET not in str(raised.value)
    assert heard.text == "Hello"
    assert heard.waits == []
    assert len(fake.asked) == 1


async def test_a_connection_that_cannot_be_made_is_named() -> None:
    def connection(error: Exception) -> FakeResponses:
        return FakeResponses(error)

    async def check(error: Exception, words: str, *, retry: bool = True) -> None:
        fault = await fault_of(connection(error))
        assert words in fault.message
        assert (fault.status, fault.retryable) == (None, retry)

    bearer = f"illegal header value b'Bearer {SECRET}'"
    await check(httpx.ConnectError("x"), "No connection to model.test (nobody answers there)")
    await check(httpx.ReadError(""), "(it hung up)")
    gone = "Server disconnected without sending a response."
    await check(httpx.RemoteProtocolError(gone), "(it hung up)")
    await check(httpx.ProxyError(""), "(the proxy refused)")
    await check(httpx.LocalProtocolError(bearer), "(LocalProtocolError)")
    await check(httpx.WriteTimeout(""), "(WriteTimeout)")
    await check(httpx.RemoteProtocolError("illegal status line"), "(what it says is not HTTP)")
    await check(httpx.ConnectTimeout(""), "No connection to model.test within 5 s")
    certificate = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"
    await check(httpx.ConnectError(certificate), "certificate of model.test", retry=False)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (httpx.ProxyError(f"403 Forbidden {SECRET}"),
         "The proxy of ALL_PROXY makes no connection to model.test (HTTP 403): have the host"),
        (httpx.ProxyError("502 Bad Gateway"), "(HTTP 502): have the host allowed there, or name"),
        (httpx.ProxyError(SECRET), "makes no connection to model.test (no reason given): have"),
        (httpx.ConnectError("x"), "(nobody answers there, by way of ALL_PROXY): check that "),
    ],
)  # fmt: skip
async def test_a_proxy_that_refuses_is_told_from_a_server_that_is_not_there(
    error: httpx.HTTPError, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    fault = await fault_of(FakeResponses(error))
    assert said in fault.message
    assert SECRET not in fault.message


async def test_what_is_wrong_with_an_address_is_told_apart() -> None:
    async def answer(talk: Conversation, _: int) -> None:
        await talk.some()
        await talk.send(b"\x15\x03\x01\x00\x02\x02\x46 SSH-2.0\r\n\r\n")

    async with server(answer) as (base_url, _):
        fault = await fault_of(None, Place(base_url=base_url))
        assert "(what it says is not HTTP)" in fault.message
        fault = await fault_of(None, Place(base_url=base_url.replace("http:", "https:")))
        assert "(it does not speak TLS, which https:// in base_url asks for)" in fault.message

    async def hang_up(talk: Conversation, _: int) -> None:
        await talk.some()

    async with server(hang_up) as (base_url, _):
        fault = await fault_of(None, Place(base_url=base_url))
        assert "(it hung up)" in fault.message
        fault = await fault_of(None, Place(base_url=base_url.replace("http:", "https:")))
        assert "(it does not speak TLS, which https:// in base_url asks for)" in fault.message
    fault = await fault_of(None, Place(base_url="http://no-such-host.invalid/v1"))
    assert "No connection to no-such-host.invalid (its name is not known)" in fault.message
    fault = await fault_of(None, Place(base_url="http://xn--/v1"))
    assert "No connection to xn-- (its name is none that can be known)" in fault.message


async def test_an_address_that_is_none_is_no_crash() -> None:
    fault = await fault_of(FakeResponses(), Place(base_url="http://model.test:x/v1"))
    assert fault.kind == "unreachable"


async def test_nobody_there_is_said_so() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    fault = await fault_of(None, Place(base_url=f"http://127.0.0.1:{port}/v1"))
    assert "No connection to 127.0.0.1 (nobody answers there)" in fault.message


# -- time


async def test_a_server_that_does_not_begin_in_time_is_given_up() -> None:
    async def check(*body: Piece, local: bool) -> None:
        fake = FakeResponses(Reply(body, hold=True))
        place = Place(first_event_timeout=0.02, idle_timeout=60, is_local=local)
        fault = await fault_of(fake, place)
        assert fault.kind == "timeout"
        assert "did not begin to answer within 0.02 s" in fault.message
        assert "first_event_timeout" in fault.message
        assert fault.retryable is not local
        assert fake.hung_up.is_set()

    await check(local=False)
    await check(local=True)


async def test_a_server_that_falls_silent_is_given_up() -> None:
    fake = FakeResponses(Reply(HELLO[:5], hold=True))
    place = Place(first_event_timeout=60, idle_timeout=0.02)
    fault = await fault_of(fake, place)
    assert fault.kind == "timeout"
    assert "sent nothing for 0.02 s" in fault.message
    assert fault.retryable
    assert fake.hung_up.is_set()


async def test_bytes_are_activity_even_if_they_are_no_events() -> None:
    """After a keepalive the shorter patience for a running answer counts."""
    fake = FakeResponses(Reply([b": alive\n\n"], hold=True))
    fault = await fault_of(fake, Place(first_event_timeout=60, idle_timeout=0.02, is_local=True))
    assert "sent nothing for 0.02 s" in fault.message
    assert fault.retryable


async def test_without_a_limit_the_first_event_is_waited_for() -> None:
    fake = FakeResponses(Reply([], hold=True))
    place = Place(first_event_timeout=None, idle_timeout=0.001)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, fake, place)
            while not fake.asked:
                await anyio.lowlevel.checkpoint()
            await anyio.sleep(20 * place.idle_timeout)
            tasks.cancel_scope.cancel()
        await fake.hung_up.wait()


async def test_a_transport_knows_how_long_nothing_was_said() -> None:
    now = 100.0
    fake = FakeResponses(HELLO)
    async with Transport(fake.inner, clock=lambda: now) as transport:
        assert transport.quiet_for() == inf
        async with transport.stream(Place(), BODY) as batches:
            now += 5
            first, *later = [transport.quiet_for() async for _ in batches]
            assert (first, set(later)) == (5, {0})  # the first was read while it was opened
        now += 3
        assert transport.quiet_for() == 3


# -- another try


async def test_a_request_is_sent_again_while_nothing_was_shown() -> None:
    async def check(*scripts: Any, waits: list[ErrorKind]) -> None:
        fake = FakeResponses(*scripts, HELLO)
        heard = await ask(fake, Place(max_retries=3))
        assert heard.text == "Hello"
        assert heard.waits == [(kind, number, 3) for number, kind in enumerate(waits, 1)]
        assert len(fake.asked) == len(scripts) + 1
        assert all(asked.body == BODY for asked in fake.asked)

    busy = Reply([b"{}"], 503, JSON)
    await check(waits=[])
    await check(busy, waits=["overloaded"])
    await check(busy, Reply([], 429), Reply([], 500), waits=["overloaded", "rate_limit",
                "server_error"])  # fmt: skip
    await check(httpx.ConnectError(""), httpx.ReadError(""), waits=["unreachable", "unreachable"])
    await check(failed(), waits=["server_error"])
    await check(HELLO[:2], waits=["stream_truncated"])
    await check([HELLO[0], httpx.ReadError("")], waits=["stream_truncated"])


async def test_some_refusals_are_final() -> None:
    async def check(reply: Reply, kind: type[ModelError] = Refused) -> None:
        fake = FakeResponses(reply)
        with pytest.raises(kind):
            await ask(fake, Place(max_retries=3))
        assert len(fake.asked) == 1

    for status in (400, 401, 403, 404, 422):
        await check(Reply([], status))
    quota = b'{"error":{"code":"insufficient_quota"}}'
    await check(Reply([quota], 429, JSON))
    await check(Reply([], 500, {"x-should-retry": "false"}), Busy)
    await check(Reply(failed(code="invalid_prompt")))
    await check(Reply([b"<html>"], headers={"content-type": "text/html"}), BadStream)


async def test_a_server_may_ask_for_another_try() -> None:
    fake = FakeResponses(Reply([], 400, {"x-should-retry": "true"}), HELLO)
    assert (await ask(fake, Place(max_retries=1))).text == "Hello"


async def test_tries_are_counted() -> None:
    for most in (0, 1, 3):
        fake = FakeResponses(*[Reply([], 500)] * (most + 1))
        heard = Heard()
        with pytest.raises(Busy):
            await ask(fake, Place(max_retries=most), heard=heard)
        assert len(fake.asked) == most + 1
        assert [attempt for _, attempt, _ in heard.waits] == list(range(1, most + 1))


async def test_a_hint_is_honoured_up_to_a_limit() -> None:
    async def waited(fake: FakeResponses) -> list[float]:
        heard = await ask(fake, Place(max_retries=1, max_wait=5))
        return heard.slept

    def hinted(**headers: str) -> Reply:
        return Reply([], 429, {name.replace("_", "-"): value for name, value in headers.items()})

    assert await waited(FakeResponses(hinted(retry_after="3"), HELLO)) == [3.0]
    assert await waited(FakeResponses(hinted(retry_after_ms="40"), HELLO)) == [0.04]
    assert await waited(FakeResponses(hinted(retry_after="0"), HELLO)) == [0.0]
    assert await waited(FakeResponses(hinted(retry_after="5"), HELLO)) == [5.0]
    said_so = failed(code="rate_limit_exceeded", message="try again in 1.5s")
    assert await waited(FakeResponses(said_so, HELLO)) == [1.5]

    fake = FakeResponses(hinted(retry_after="6"))
    fault = await fault_of(fake, Place(max_retries=1, max_wait=5))
    assert fault.retry_after == 6.0
    assert "wait 6 s" in fault.message
    assert len(fake.asked) == 1


async def test_without_a_hint_waits_grow_up_to_a_limit() -> None:
    bounds = [0.5, 1, 2, 4, 8, 8, 8]
    heard = await ask(FakeResponses(*[Reply([], 500)] * 7, HELLO), Place(max_retries=7))
    assert all(0 <= seconds <= bound for seconds, bound in zip(heard.slept, bounds, strict=True))
    later = Broken(Fault("server_error", "m", retryable=True), 3)
    heard = await ask(FakeResponses(HELLO), Place(max_retries=7), after=later)
    assert 0 <= heard.slept[0] <= bounds[2]


async def test_nobody_needs_to_be_told_of_waits() -> None:
    fake = FakeResponses(Reply([], 500, {"retry-after": "0"}), HELLO)
    with anyio.fail_after(10):
        async with (
            Transport(fake.inner) as transport,
            transport.stream(Place(max_retries=1), BODY) as batches,
        ):
            assert [batch async for batch in batches]


async def test_an_attempt_after_one_that_showed_something_counts_with_it() -> None:
    cut = Fault("stream_truncated", "cut", retryable=True)

    async def check(attempt: int, *scripts: Any, waits: list[int]) -> None:
        fake = FakeResponses(*scripts)
        heard = await ask(fake, Place(max_retries=2), after=Broken(cut, attempt))
        assert heard.text == "Hello"
        assert [number for _, number, _ in heard.waits] == waits
        assert len(fake.asked) == len(scripts)

    busy = Reply([], 500)
    await check(1, HELLO, waits=[1])
    await check(2, HELLO, waits=[2])
    await check(1, busy, HELLO, waits=[1, 2])


async def test_an_attempt_that_makes_no_sense_is_not_made() -> None:
    async def check(fault: Fault, attempt: int, *scripts: Any) -> None:
        fake = FakeResponses(*scripts)
        with pytest.raises(ModelError) as raised:
            await ask(fake, Place(max_retries=2, max_wait=5), after=Broken(fault, attempt))
        assert len(fake.asked) == len(scripts)
        assert scripts or raised.value.fault is fault

    cut = Fault("stream_truncated", "cut", retryable=True)
    await check(cut, 3)
    await check(cut, 9)
    await check(Fault("bad_request", "no"), 1)
    await check(replace(cut, retry_after=6), 1)
    await check(cut, 2, Reply([], 500))


# -- hanging up


async def test_a_cancelled_request_is_hung_up_at_once_while_the_server_is_silent() -> None:
    async def check(*body: Piece) -> None:
        fake = FakeResponses(Reply(body, hold=True))
        async with fake.serve() as base_url, Transport() as transport:
            place = Place(base_url=base_url, first_event_timeout=None, idle_timeout=60)
            with anyio.fail_after(10):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(read_all, transport, place)
                    while not fake.asked:
                        await anyio.lowlevel.checkpoint()
                    await anyio.wait_all_tasks_blocked()
                    tasks.cancel_scope.cancel()
                await fake.hung_up.wait()

    await check()
    await check(b": alive\n\n")
    await check(*HELLO[:5])


async def test_an_answer_that_is_cancelled_while_it_is_shown_has_no_end() -> None:
    fake = FakeResponses(Reply(HELLO[:5], hold=True))
    ended = False
    with anyio.fail_after(10):
        async with fake.serve() as base_url, Transport() as transport:
            with anyio.CancelScope() as turn:
                async with transport.stream(Place(base_url=base_url), BODY) as batches:
                    async for _ in batches:
                        turn.cancel()
                        with anyio.CancelScope(shield=True):  # what is shown is shown to its end
                            await anyio.lowlevel.checkpoint()
                    ended = True
            await fake.hung_up.wait()
    assert (ended, turn.cancelled_caught) == (False, True)


async def read_all(transport: Transport, place: Place) -> None:
    async with transport.stream(place, BODY) as batches:
        async for _ in batches:
            pass


async def test_a_stream_that_is_left_is_hung_up() -> None:
    fake = FakeResponses(Reply(HELLO, hold=True))
    with anyio.fail_after(10):
        async with fake.serve() as base_url, Transport() as transport:
            async with transport.stream(Place(base_url=base_url), BODY) as batches:
                async for batch in batches:
                    if any(isinstance(event, Ended) for event in batch):
                        break
            await fake.hung_up.wait()


# -- connections


async def test_connections_are_kept_but_not_those_that_were_idle_for_long() -> None:
    now = 1000.0
    fake = FakeResponses(HELLO, HELLO, HELLO, HELLO)
    with anyio.fail_after(10):
        async with fake.serve() as base_url, Transport(clock=lambda: now) as transport:
            place = Place(base_url=base_url)
            for later in (0.0, 59.0, 61.0):
                now += later
                await read_all(transport, place)
            async with transport.stream(place, BODY) as batches:
                now += 999.0
                assert [batch async for batch in batches]
    assert [asked.connection for asked in fake.asked] == [1, 1, 2, 2]


async def test_a_connection_is_kept_where_an_answer_ends_after_all_that_counts() -> None:
    left: list[bool] = []

    async def answer(talk: Conversation, _: int) -> None:
        whole = http(b"".join(map(frame, HELLO)) + b": bye")
        while await talk.request():
            await talk.send(whole[:-3])
            while not left:
                await anyio.lowlevel.checkpoint()
            left.clear()
            await talk.send(whole[-3:])

    with anyio.fail_after(10):
        async with server(answer) as (base_url, connections), Transport() as transport:
            for _ in range(3):
                async with transport.stream(Place(base_url=base_url), BODY) as batches:
                    async for batch in batches:
                        if any(isinstance(event, Ended) for event in batch):
                            left.append(True)
                            break
        assert connections == [1]


async def test_a_client_in_use_is_not_closed_however_old_it_is() -> None:
    now = 1000.0
    fake = FakeResponses(HELLO, HELLO)
    with anyio.fail_after(10):
        async with (
            Transport(fake.inner, clock=lambda: now) as transport,
            transport.stream(Place(), BODY) as first,
        ):
            now += 999.0
            await read_all(transport, Place())
            assert [batch async for batch in first]


def test_the_clock_runs_while_the_machine_sleeps() -> None:
    assert 0 < boot_time() <= boot_time()


async def test_several_requests_run_at_the_same_time() -> None:
    fake = FakeResponses(HELLO, HELLO, HELLO)
    with anyio.fail_after(10):
        async with (
            fake.serve() as base_url,
            Transport() as transport,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(3):
                tasks.start_soon(read_all, transport, Place(base_url=base_url))
    assert len(fake.asked) == 3


# -- certificates and proxies

CERTIFICATE = Path(__file__).parent / "fixtures" / "responses" / "localhost.pem"


@asynccontextmanager
async def secure(fake: FakeResponses, certificate: Path = CERTIFICATE) -> AsyncGenerator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with fake.serve(context) as base_url:
        yield base_url


async def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    fake = FakeResponses()
    async with secure(fake) as base_url:
        fault = await fault_of(None, Place(base_url=base_url))
    assert fault.message.startswith("The TLS certificate of 127.0.0.1 is not trusted")
    assert not fault.retryable


async def test_a_certificate_is_looked_at_however_the_address_is_written() -> None:
    async with secure(FakeResponses(HELLO)) as base_url:
        fault = await fault_of(None, Place(base_url=base_url.replace("https", "HTTPS")))
    assert fault.message.startswith("The TLS certificate of 127.0.0.1 is not trusted")


@pytest.mark.parametrize("how", ["ca_file", "SSL_CERT_FILE"])
async def test_a_certificate_may_be_trusted_by_name(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeResponses(HELLO)
    async with secure(fake) as base_url:
        place = Place(base_url=base_url)
        if how == "ca_file":
            place = replace(place, ca_file=str(CERTIFICATE))
        else:
            monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert (await ask(None, place)).text == "Hello"


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SSL_CERT_FILE": "/nowhere.pem"}, "SSL_CERT_FILE cannot be used (No such file"),
        ({"SSL_CERT_FILE": os.devnull}, "SSL_CERT_FILE cannot be used ("),
        ({"ALL_PROXY": "socks5://127.0.0.1:9"}, "ALL_PROXY names a SOCKS proxy, which needs"),
        ({"https_proxy": "socks5h://127.0.0.1:9"}, "HTTPS_PROXY names a SOCKS proxy"),
        ({"HTTPS_PROXY": "gopher://127.0.0.1"}, "HTTPS_PROXY cannot be used: it must hold a URL"),
        ({"ALL_PROXY": "http://[::1"}, "ALL_PROXY cannot be used"),
        ({"ALL_PROXY": "http://127.0.0.1:99999"}, "ALL_PROXY cannot be used"),
        ({"ALL_PROXY": "http://127.0.0.1:0"}, "ALL_PROXY cannot be used"),
        ({"ALL_PROXY": "http:// "}, "ALL_PROXY cannot be used"),
        ({"ALL_PROXY": "http://:8080"}, "ALL_PROXY cannot be used"),
    ],
)
@pytest.mark.usefixtures("no_proxy")
async def test_an_unusable_setting_is_named(
    variables: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as raised:
        await ask(None, Place(base_url="https://model.invalid/v1"))
    assert words in str(raised.value)
    assert not any(value in str(raised.value) for value in variables.values())


async def test_an_unusable_ca_file_is_named_and_not_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with pytest.raises(ConfigError, match=r"^ca_file cannot be used"):
        await ask(None, Place(base_url="https://127.0.0.1:9/v1", ca_file="/nowhere.pem"))
