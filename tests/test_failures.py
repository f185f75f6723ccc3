"""Whatever fails on the model's side: exactly what the editor is told, and that it goes on.

Each row is one prompt: what the server does, request by request, then the lines of the editor, in
order, and the answer. After each the next prompt of the same session is answered.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fake_responses import (
    EVENT_STREAM,
    Event,
    FakeResponses,
    Pause,
    Piece,
    Reply,
    Script,
    called,
    failed,
    said,
    stream,
    thought,
)
from tests.laws import Message
from tests.skipped_time import BACKEND, no_waiting, skipped
from tests.stage import NOTICES, stage
from tools.frozen import frozen

# -- what the server does

JSON = {"content-type": "application/json"}
HELLO = stream(said("Hello there"))
HALF: list[Piece] = list(HELLO[:6])
"""Up to the second of three deltas."""
CUT = httpx.ReadError("cut")
LOOK = stream(said("Look"), called("c1", "read", '{"file_path":"a.txt"}'))
READ = stream(called("c1", "read", '{"file_path":"a.txt"}'))


def refusal(status: int, code: str | None = None, message: str = "No.", **headers: str) -> Reply:
    body = {"error": {"code": code, "message": message}}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply([json.dumps(body).encode()], status, {**JSON, **given})


# -- what the editor is told

END: Message = {"stopReason": "end_turn"}


def say(*pieces: str, message: str = "m1.0", kind: str = "agent_message_chunk") -> list[Message]:
    contents = [{"type": "text", "text": piece} for piece in pieces]
    return [{"sessionUpdate": kind, "messageId": message, "content": one} for one in contents]


GREETED, BEGUN, REST = say("Hello", " ther", "e"), say("Hello", " ther"), say("e")


def again(sentence: str, attempt: int, most: int = 4, when: str = "<soon>") -> list[Message]:
    """A notice of a wait: what happened, without what a person could do about it."""
    cause = re.split("[:;] (?:send|wait|check)", sentence)[0]
    title = f"{cause}; trying again {when} ({attempt} of {most})"
    return [{"sessionUpdate": "notice", "severity": "warning", "title": title}]


def reading(card: str = "c1") -> list[Message]:
    """A call is announced."""
    return [{
        "sessionUpdate": "tool_call", "toolCallId": card, "title": "Read a.txt", "name": "read",
        "kind": "read", "status": "pending", "rawInput": {"file_path": "a.txt"},
        "locations": [{"path": "<ws>/a.txt", "line": 1}],
    }]  # fmt: skip


def ended(status: str, output: str, card: str = "c1") -> list[Message]:
    shown = {"type": "content", "content": {"type": "text", "text": output}}
    said_so = {"rawOutput": {"output": output}, "content": [shown]}
    return [{"sessionUpdate": "tool_call_update", "toolCallId": card, "status": status, **said_so}]


def was_read(card: str = "c1") -> list[Message]:
    """An announced call runs."""
    text = "1: x\n\n(End of file - total 1 lines)"
    output = f"<path><ws>/a.txt</path>\n<type>file</type>\n<content>\n{text}\n</content>"
    begun = {"sessionUpdate": "tool_call_update", "toolCallId": card, "status": "in_progress"}
    return [begun, *ended("completed", output, card)]


def error(kind: str, sentence: str, *, number: int = -32603, **known: object) -> Message:
    data = {"details": sentence, "error": sentence, "kind": kind, **known}
    return {"code": number, "message": sentence, "data": data}


SEND = "send the prompt again"
BROKE_OFF = f"The answer broke off before its end: {SEND}"
FAILED = f"The provider failed: {SEND}; if it stays, ask the provider"
IDLE = f"127.0.0.1 sent nothing for 5 s: {SEND}, or raise idle_timeout"
LIMITED = f"The provider limits the rate of requests (HTTP 429): No; wait 7 s, then {SEND}"
SETTINGS = "check the model and its settings in the configuration"
NO = error("bad_request", f"The provider refused the request: No; {SETTINGS}",
           code="invalid_prompt")  # fmt: skip
NEVER_RAN = ended("failed", "Error: the model's answer broke off before this call could run")


# -- the table


@frozen
class Row:
    """One prompt and what becomes of it."""

    scripts: Sequence[Script]
    updates: Sequence[Message]
    answer: Message
    waited: int | None = 0
    """Whole seconds; None: left to chance, up to a second or two."""
    provider: Mapping[str, Any] = field(default_factory=dict[str, Any])
    can: Mapping[str, Any] = field(default_factory=lambda: NOTICES)
    forgets: bool = False
    """The prompt does not stay in the conversation."""


def at_once(answer: Message, *scripts: Script) -> Row:
    """One request, no wait, and nothing to see but the answer."""
    return Row(scripts, [], answer)


ROWS: dict[str, Row] = {
    # -- before anything was shown
    "a rate limit with a hint, twice": Row(
        [*[refusal(429, "rate_limit_exceeded", retry_after="7")] * 2, HELLO],
        [*again(LIMITED, 1, when="in 7 s"), *again(LIMITED, 2, when="in 7 s"), *GREETED], END, 14),
    "an error of the server, twice": Row(
        [*[refusal(500, message="")] * 2, HELLO],
        [one for attempt in (1, 2)
         for one in again(FAILED.replace(":", " (HTTP 500):"), attempt)] + GREETED, END, None),
    "HTML from a proxy, until the attempts are used up": Row(
        [Reply([b"<html>Bad gateway</html>"], 502, {"content-type": "text/html"})] * 2,
        again(FAILED.replace(":", " (HTTP 502):"), 1, 1),
        error("server_error", FAILED.replace(":", " (HTTP 502):"), status=502),
        None, {"max_retries": 1}),
    "a connection that is refused, once": Row(
        [httpx.ConnectError("x"), HELLO],
        [*again("No connection to 127.0.0.1 (nobody answers there): "
                "check that the server runs, and base_url", 1), *GREETED], END, None),
    "a hint that is longer than we wait": at_once(
        error("rate_limit", LIMITED.replace("7 s", "61 s"), status=429, retryAfter=61.0,
              code="slow"), refusal(429, "slow", retry_after="61")),
    "no quota": at_once(
        error("quota", "The account has no quota left (HTTP 429): No; "
              "check the plan and billing of the account", status=429,
              code="insufficient_quota", retryAfter=1.0),
        refusal(429, "insufficient_quota", retry_after="1")),
    "a key that is wrong": at_once(
        error("auth", "The provider refused the credentials (HTTP 401): No; check the API key "
              "that the configuration names", number=-32000, status=401, code="invalid_api_key",
              requestId="r1"),
        refusal(401, "invalid_api_key", x_request_id="r1")),
    "a message that is too long by itself": Row(
        [refusal(400, "context_length_exceeded")], [],
        error("context_too_long", "The message is too long for the model, even without the rest of "
              "the conversation, and was taken out of it: send a shorter one, or choose a model "
              "with a larger window", status=400, code="context_length_exceeded"), forgets=True),
    "a whole answer as JSON": Row(
        [Reply([json.dumps(HELLO[-1]["response"]).encode()], 200, JSON)],
        say("Hello there"), END),
    "an error as JSON, with a status that promises an answer": at_once(
        NO, refusal(200, "invalid_prompt")),
    "a web page, with a status that promises an answer": at_once(
        error("bad_stream", "What the server sent is not a Responses stream but text/html: "
              "check that base_url leads to a server of the Responses API"),
        Reply([b"<html>"], 200, {"content-type": "text/html"})),
    # -- after something was shown
    "a cut after text": Row(
        [[*HALF, CUT], HELLO], [*BEGUN, *again(BROKE_OFF, 1), *REST], END, None),
    "an end without an end": Row(
        [HALF, HELLO], [*BEGUN, *again(BROKE_OFF, 1), *REST], END, None),
    "only the word that all is done": Row(
        [[*HALF, b"data: [DONE]\n\n"], HELLO], [*BEGUN, *again(BROKE_OFF, 1), *REST], END, None),
    "a cut after text, then another answer": Row(
        [[*HALF, CUT], stream(said("Howdy"))],
        [*BEGUN, *again(BROKE_OFF, 1),
         *say("\n\nThe answer broke off and starts again:\n\n", message="r1.1"),
         *say("Howdy", message="m1.2")], END, None),
    "a cut inside a call": Row(
        [[*LOOK[:11], CUT], LOOK, stream(said("Hi"))],
        [*say("Look"), *again(BROKE_OFF, 1), *reading(), *was_read(), *say("Hi", message="m2.0")],
        END, None),
    "a cut after a whole call": Row(
        [READ[:-1], READ, stream(said("Hi"))],
        [*reading(), *NEVER_RAN, *again(BROKE_OFF, 1), *reading("c1#2"), *was_read("c1#2"),
         *say("Hi", message="m2.0")], END, None),
    "a failure after a whole call": Row(
        [[*READ[:-1], *failed(code="invalid_prompt", message="No.")[2:]]],
        [*reading(), *NEVER_RAN], NO),
    "failures until the attempts are used up": Row(
        [failed(said("Hello there"), message="")] * 3,
        [*GREETED, *again(FAILED, 1, 2), *again(FAILED, 2, 2)],
        error("server_error", FAILED, code="server_error"), None, {"max_retries": 2}),
    "failures that count together, before and after text": Row(
        [refusal(500, message=""), [*HALF, CUT], refusal(429, retry_after="7")],
        [*again(FAILED.replace(":", " (HTTP 500):"), 1, 2), *BEGUN, *again(BROKE_OFF, 2, 2)],
        error("rate_limit", LIMITED, status=429, retryAfter=7.0), None, {"max_retries": 2}),
    # -- silence
    "a failure, then silence": at_once(
        NO, Reply(failed(code="invalid_prompt", message="No."), hold=True)),
    "a failure without a reason, then silence": Row(
        [Reply([*HALF, {"type": "response.failed", "response": {"error": None}}], hold=True)],
        BEGUN, error("server_error", FAILED), 1, {"max_retries": 0}),
    "silence after text, then the rest": Row(
        [Reply(HALF, hold=True), HELLO], [*BEGUN, *again(IDLE, 1), *REST], END, None,
        {"idle_timeout": 5}),
    "silence after text": Row(
        [Reply(HALF, hold=True)], BEGUN, error("timeout", IDLE), 5,
        {"idle_timeout": 5, "max_retries": 0}),
    "silence before the first byte, of a server elsewhere": Row(
        [Reply(hold=True), HELLO],
        [*again("model.test did not begin to answer within 9 s: send the prompt again, "
                "or raise first_event_timeout", 1), *GREETED], END, None,
        {"base_url": "https://model.test/v1", "first_event_timeout": 9}),
    # -- no failures
    "one byte at a time, each just in time": Row(
        [[piece for byte in b'data:{"type":"response.output_text.delta","delta":"Hi"}\n\n'
          b'data:{"type":"response.completed","response":{}}\n\n'
          for piece in (Pause(4), bytes([byte]))]],
        say("Hi"), END, 4 * 107, {"idle_timeout": 5}, {}),
    "nothing for 400 seconds, of a server on this machine": Row(
        [[Pause(400), *HELLO]], GREETED, END, 400, {}, {}),
    "nothing but thoughts, twice": Row(
        [stream(thought("Hm."))] * 2,
        [*say("Hm.", message="t1.0", kind="agent_thought_chunk"),
         *say("The model ended its turn without an answer.", message="n1")], END),
}  # fmt: skip

_ERROR: Event = {"code": "invalid_prompt", "message": "No."}
SHAPES: dict[str, list[Event]] = {
    "flat": [{"type": "error", **_ERROR, "param": None}],
    "nested": [{"type": "error", "error": {"type": "invalid_request_error", **_ERROR}}],
    "in the response": [{"type": "response.failed", "response": {"error": _ERROR}}],
    "in a frame of its own": [{"type": "response.failed", "response": {"error": None}},
                              {"type": "error", "error": _ERROR}],
    "beside the response": [{"type": "response.failed", "response": {}, "error": _ERROR}],
    "untyped": [{"error": _ERROR}],
}  # fmt: skip
"""The forms in which servers say in a stream that it failed."""
for _name, _frames in SHAPES.items():
    ROWS[f"an error {_name}"] = at_once(NO, Reply([*HELLO[:2], *_frames], 200, EVENT_STREAM))
    ROWS[f"an error {_name}, after text"] = Row([[*HALF, *_frames]], BEGUN, NO)


@pytest.fixture
def anyio_backend() -> Any:
    return BACKEND


@pytest.mark.anyio
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
async def test_a_failure_is_told_as_it_is_and_the_next_prompt_answered(
    row: Row, tmp_path: Path
) -> None:
    model = FakeResponses(*row.scripts, stream(said("Fine.")), forgets=row.forgets)
    with no_waiting():
        async with stage(tmp_path, model, provider=row.provider, can=row.can) as play:
            (play.workspace / "a.txt").write_text("x\n", encoding="utf-8")
            before = skipped()
            answer, waited = await play.prompt(), skipped() - before
            title, *updates = play.news()
            assert title["sessionUpdate"] == "session_info_update"
            assert plain(updates, play.workspace) == list(row.updates)
            assert answer == row.answer
            assert len(model.asked) == len(row.scripts)
            assert round(waited) == row.waited or (row.waited is None and waited < 12)
            assert await play.prompt() == END
            assert [one["content"]["text"] for one in play.news()] == ["Fine."]


def plain(updates: Sequence[Message], workspace: Path) -> list[Message]:
    """The updates without what differs from run to run."""
    text = json.dumps(updates).replace(str(workspace), "<ws>")
    return json.loads(re.sub(r"again (?:now|in [01] s)", "again <soon>", text))
