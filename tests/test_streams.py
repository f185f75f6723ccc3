"""Streams of real servers, from the bytes of the socket to the lines of the editor.

What each must come to stands beside it, for the captures here in CAPTURES. The whole agent gets a
stream as it is and cut into small reads; its way from bytes to effects gets the many variants.
"""

import json
import random
from collections.abc import Sequence
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.core.effects import Effect, Failed, Finished, Say, Think
from bridge.core.response import Response
from bridge.errors import ModelError
from bridge.responses.transport import Transport
from tests.fake_responses import EVENT_STREAM, FakeResponses, Reply, said, stream
from tests.laws import Message
from tests.skipped_time import BACKEND, no_waiting
from tests.stage import stage
from tests.test_transport import BODY, Place
from tools.frozen import frozen

FIXTURES = Path(__file__).parent / "fixtures" / "responses"


@frozen
class Recording:
    """One answer of a server, and what must come of it."""

    name: str
    status: int
    headers: Message
    body: bytes
    expect: Message

    def reply(self, pieces: Sequence[bytes] | None = None) -> Reply:
        return Reply(pieces or [self.body], self.status, self.headers)


def _call(call_id: str, name: str, **arguments: Any) -> Message:
    return {"call_id": call_id, "name": name, "arguments": arguments}


_NOTHING: Message = {"thought": "", "message": "", "tool_calls": []}
CAPTURES: dict[str, Message] = {
    "litellm-bridge-tool": {"outcome": "tool_calls", "tool_calls": [
        _call("", "read_file", path="a.txt"), _call("", "read_file", path="b.txt")]},
    "llama-server-reasoning": {"outcome": "empty", "thought": "\n\nThe answer is yes."},
    "llama-server-text": {"outcome": "completed", "message": "I'm sorry for any confusion."},
    "llama-server-tool": {"outcome": "tool_calls",
                          "tool_calls": [_call("", "read_file", path="src/app.py")]},
}  # fmt: skip
"""The call ids of the captures are random."""


def _recorded(path: Path) -> Recording:
    wanted = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    sent = wanted["transport"]
    assert sent["end"] == "eof"
    body = path.read_bytes()
    return Recording(path.stem, sent["status"], sent["headers"], body, wanted["expect"])


def _captured(path: Path) -> Recording:
    head, _, body = path.read_bytes().partition(b"\n\n")
    assert b" 200 OK" in head
    return Recording(path.stem, 200, EVENT_STREAM, body, {**_NOTHING, **CAPTURES[path.stem]})


RECORDINGS = [
    *map(_recorded, sorted(FIXTURES.glob("*.sse"))),
    *map(_captured, sorted(FIXTURES.glob("*.http"))),
]
each_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda one: one.name)


def test_no_recording_is_left_out() -> None:
    assert [one.name for one in RECORDINGS].count("litellm-bridge-tool") == 1
    assert len(RECORDINGS) == 24 + len(CAPTURES)


def cut(body: bytes, sizes: Sequence[int]) -> list[bytes]:
    """The body in reads of these sizes, again and again."""
    pieces: list[bytes] = []
    at = 0
    for size in cycle(sizes):
        if at >= len(body):
            return pieces
        pieces.append(body[at : at + size])
        at += size
    return pieces


# -- the whole agent


@pytest.fixture
def anyio_backend() -> Any:
    return BACKEND


@pytest.mark.anyio
@pytest.mark.parametrize("size", [None, 7])
@each_recording
async def test_the_editor_sees_what_a_recorded_stream_means(
    recording: Recording, size: int | None, tmp_path: Path
) -> None:
    pieces = None if size is None else cut(recording.body, [size])
    expect, outcome = recording.expect, recording.expect["outcome"]
    again = 1 if outcome in ("retryable_error", "empty") else 0
    done = [stream(said("Done."))] if outcome == "tool_calls" else []
    scripts = [*[recording.reply(pieces)] * (1 + again), *done, stream(said("Fine."))]
    model = FakeResponses(*scripts, forgets=outcome == "refusal")
    patience = {"max_retries": 1}
    settings = {"context_window": 1000}
    with no_waiting():
        async with stage(tmp_path, model, provider=patience, settings=settings) as play:
            answer = await play.prompt()
            check_updates(play.news(), expect)
            check_answer(answer, expect)
            assert len(model.asked) == expect.get("requests_expected", 1 + again) + len(done)
            if done:
                check_replay(model.asked[-1].body["input"][1:], expect)
            assert await play.prompt("And now?") == {"stopReason": "end_turn"}
            assert _said(play.news(), "agent_message_chunk") == "Fine."


def check_updates(updates: Sequence[Message], expect: Message) -> None:
    wanted = {"tool_calls": "Done.", "empty": "The model ended its turn without an answer."}
    message = expect["message"] + wanted.get(expect["outcome"], "")
    assert _said(updates, "agent_thought_chunk") == expect["thought"]
    assert _said(updates, "agent_message_chunk") == message
    announced = [one for one in updates if one["sessionUpdate"] == "tool_call"]
    shown = [one for one in announced if expect["outcome"] == "tool_calls"]
    for card, call in zip(shown, expect["tool_calls"], strict=True):
        assert card["toolCallId"] == (call["call_id"] or card["toolCallId"])
        assert (card["title"], card["rawInput"]) == (call["name"], _raw_input(call))
    ended = {one["toolCallId"]: one["status"] for one in updates if "toolCallId" in one}
    # None of these tools is ours: their calls end with the word that they are unknown.
    assert set(ended.values()) <= {"failed"}
    if "usage" in expect:
        used = expect["usage"]["total_tokens"]
        (usage,) = [one for one in updates if one["sessionUpdate"] == "usage_update"]
        assert (usage["used"], usage["size"]) == (used, 1000)


def check_answer(answer: Message, expect: Message) -> None:
    if expect["outcome"] == "retryable_error":
        check_error(answer, expect.get("error", {}))
    else:
        assert answer == {"stopReason": expect.get("acp_stop_reason") or "end_turn"}


def check_error(error: Message, wanted: Message) -> None:
    data = error["data"]
    known = {"code": "code", "kind": "kind", "http_status": "status", "retry_after_s": "retryAfter"}
    assert {name: data.get(ours) for name, ours in known.items() if name in wanted} == {
        name: value for name, value in wanted.items() if name in known
    }
    assert wanted.get("message_contains", "") in error["message"]


def check_replay(items: Sequence[Message], expect: Message) -> None:
    calls = [item for item in items if item["type"].endswith("_call")]
    outputs = [item for item in items if item["type"].endswith("_output")]
    for call, output, wanted in zip(calls, outputs, expect["tool_calls"], strict=True):
        assert call["name"] == wanted["name"]
        assert output["type"] == expect.get("reply_item_type", "function_call_output")
        if "input" in wanted:
            assert call["input"] == wanted["input"]
        else:
            assert json.loads(call["arguments"] or "{}") == wanted["arguments"]
    made = [item["type"] for item in items if item not in outputs]
    assert made == expect.get("replay_types", made)


def _raw_input(call: Message) -> Message:
    return {"input": call["input"]} if "input" in call else call["arguments"]


def _said(updates: Sequence[Message], kind: str) -> str:
    return "".join(one["content"]["text"] for one in updates if one["sessionUpdate"] == kind)


# -- the many forms of the same bytes


@frozen
class Story:
    """What a stream comes to."""

    thought: str
    message: str
    calls: list[str]
    end: object


async def told(recording: Recording, pieces: Sequence[bytes]) -> Story:
    """What an answer that comes in these reads comes to."""
    response = Response()
    effects: list[Effect] = []
    fake = FakeResponses(recording.reply(pieces))
    try:
        async with (
            Transport(fake.inner) as transport,
            transport.stream(Place(), BODY) as batches,
        ):
            async for batch in batches:
                effects += chain.from_iterable(response.feed(event) for event in batch)
            effects += response.end()
    except ModelError as error:
        effects += [] if response.over else [Failed(error.fault)]
    (end,) = [one for one in effects if isinstance(one, Finished | Failed)]
    calls = [call.arguments for call in end.calls] if isinstance(end, Finished) else []
    return Story(_text(effects, Think), _text(effects, Say), calls, end)


def _text(effects: Sequence[Effect], kind: type[Say | Think]) -> str:
    return "".join(one.text for one in effects if isinstance(one, kind))


def alive(body: bytes, signs: Sequence[bytes]) -> bytes:
    """The body with signs of life between its frames."""
    frames = body.split(b"\n\n")
    between = random.Random(len(body))
    return b"".join(chain.from_iterable((frame, b"\n\n", *between.sample(signs, 2))
                                        for frame in frames[:-1])) + frames[-1]  # fmt: skip


COMMENTS = (b": OPENROUTER PROCESSING\n\n", b":\n\n", b"event: keepalive\n\n", b": a\n: b\n\n")
PINGS = (*COMMENTS, b"data:\n\n", b'data: {"type":"ping"}\n\n', b"event: ping\ndata: {}\n\n")


def in_form(recording: Recording, form: str) -> bytes:
    signs = PINGS if recording.status == 200 else COMMENTS
    body = recording.body if "lively" not in form else alive(recording.body, signs)
    return body.replace(b"\n", b"\r\n") if "CRLF" in form else body


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("form", "size"), [("plain", 1), ("CRLF", 9000), ("lively", 9000), ("lively CRLF", 7)]
)
@each_recording
async def test_a_stream_means_the_same_in_every_form(
    recording: Recording, form: str, size: int
) -> None:
    wanted = await told(recording, [recording.body])
    assert await told(recording, cut(in_form(recording, form), [size])) == wanted
    assert (wanted.thought, wanted.message) == (
        recording.expect["thought"],
        recording.expect["message"],
    )


@settings(deadline=None)
@given(
    st.sampled_from([one.name for one in RECORDINGS]),
    st.sampled_from(["plain", "CRLF", "lively", "lively CRLF"]),
    st.lists(st.integers(1, 300), min_size=1, max_size=20),
)
def test_a_stream_means_the_same_wherever_it_is_cut(name: str, form: str, sizes: list[int]) -> None:
    (recording,) = [one for one in RECORDINGS if one.name == name]

    async def both() -> tuple[Story, Story]:
        whole = await told(recording, [recording.body])
        return whole, await told(recording, cut(in_form(recording, form), sizes))

    whole, pieces = anyio.run(both)
    assert pieces == whole
