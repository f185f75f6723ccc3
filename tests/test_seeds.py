"""Three recorded conversations, played again: what the editor sees and what the model is sent.

expected.jsonl of a seed is the transcript of another agent. What must be equal is brought into one
form on both sides (see `told`); what may be richer in ours is checked to be no poorer.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from tests.agent_process import HOME, PROGRAM, Machine, Request, filled, machine, read_lines
from tests.fake_editor import Editor
from tests.laws import Message

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs bash"),
]

FIXTURES = Path(__file__).parent / "fixtures"
CHUNKS = {"agent_thought_chunk": "thought", "agent_message_chunk": "message"}
DELTAS = {
    "response.reasoning_summary_text.delta": "thought",
    "response.output_text.delta": "message",
}
VERBATIM = {"replay": "verbatim"}
"""Items go back to the model exactly as they came."""


# -- playing --------------------------------------------------------------------------------------


class Replay:
    """One seed at play: its client's messages go to the agent, its streams answer the agent."""

    def __init__(self, name: str, here: Machine, editor: Editor) -> None:
        self.folder = FIXTURES / name
        self.marks = {"cwd": str(here.workspace)}
        self.model = here.model
        self.editor = editor
        self.shown = {"thought": 0, "message": 0}
        """Characters streamed so far."""

    def lines(self, name: str) -> list[Message]:
        return read_lines(self.folder / name, self.marks)

    def expected(self) -> list[Message]:
        return self.lines("expected.jsonl")

    async def play(self, *streams: Sequence[str]) -> None:
        """Send what the client sent; for each prompt, serve these streams."""
        requests = self.lines("client_requests.jsonl")
        for line in requests:
            if "method" not in line:
                method = line["id"].partition(":")[2].rstrip("}")
                self.editor.answers[method] = lambda _, result=line["result"]: result
        prompts = iter(streams)
        for line in requests:
            if line.get("method") == "session/prompt":
                await self._prompt(line, next(prompts))
            elif "method" in line:
                await self._send(line)
                answer = await self.editor.result(line["id"])
                if "sessionId" in answer:
                    self.marks["sessionId"] = answer["sessionId"]

    async def _send(self, line: Message) -> None:
        await self.editor.send(filled(line, self.marks))

    async def _prompt(self, line: Message, streams: Sequence[str]) -> None:
        await self._send(line)
        for name in streams:
            await self._serve(await self.model.request(), (self.folder / name).read_bytes())
        await self.editor.result(line["id"])

    async def _serve(self, request: Request, stream: bytes) -> None:
        """Serve a stream event by event: what can be shown must be shown before the next one."""
        for frame in stream.split(b"\n\n"):
            await request.raw(frame + b"\n\n")
            event = frame.partition(b"data: ")[2].strip()
            if event.startswith(b"{"):
                await self._until_shown(json.loads(event))
        await request.close()

    async def _until_shown(self, event: Message) -> None:
        kind = DELTAS.get(event["type"])
        if kind is not None:
            self.shown[kind] += len(event["delta"])
            await self.editor.message(_has_said(kind, self.shown[kind]))

    def check_requests(self, expected: Iterable[Message]) -> None:
        """Every request held what it must: the conversation exactly, and these fields."""
        wanted, got = list(expected), [request.body for request in self.model.requests]
        assert len(got) == len(wanted)
        for want, body in zip(wanted, got, strict=True):
            assert body["input"] == want["input"]
            must = {**want.get("must", {}), "model": want.get("model", body["model"])}
            assert {key: body.get(key) for key in must} == must
            if "mode" in want:
                assert ("plan mode" in body["instructions"]) is (want["mode"] == "plan")


def _has_said(kind: str, characters: int) -> Any:
    """Whether the messages so far, given one after the other, show so much text."""
    said = 0

    def has_said(message: Message) -> bool:
        nonlocal said
        update = message.get("params", {}).get("update", {})
        if CHUNKS.get(update.get("sessionUpdate")) == kind:
            said += len(update["content"]["text"])
        return said >= characters

    return has_said


# -- comparing ------------------------------------------------------------------------------------


def told(frames: Iterable[Message], cwd: str) -> list[Message]:
    """What these frames tell a person, in order; neighbouring chunks joined, paths relative."""
    story: list[Message] = []
    for frame in frames:
        for one in _told(frame, cwd):
            kind = next(iter(one))
            if kind in CHUNKS.values() and story and kind in story[-1]:
                story[-1][kind] += one[kind]
            else:
                story.append(one)
    return story


def _told(frame: Message, cwd: str) -> list[Message]:
    if "method" not in frame:
        answer = frame["result"]
        return [{"answer": frame["id"], "stop": answer.get("stopReason")}]
    if "id" in frame:
        left_out = ("toolCallId", "sessionId")
        asked = {key: value for key, value in frame["params"].items() if key not in left_out}
        return [{"request": frame["method"], **asked}]
    update = frame["params"]["update"]
    match update["sessionUpdate"]:
        case "agent_thought_chunk" | "agent_message_chunk" as kind:
            return [{CHUNKS[kind]: update["content"]["text"]}]
        case "current_mode_update":
            return [{"mode": update["currentModeId"]}]
        case "available_commands_update":
            hints = {
                one["name"]: one.get("input", {}).get("hint") for one in update["availableCommands"]
            }
            return [{"commands": {name: hints[name] for name in ("goal", "plan")}}]
        case "tool_call":
            return [{"call": _card(update, cwd)}]
        case "tool_call_update" if update.get("status") in ("completed", "failed"):
            return [{"end": {"status": update["status"], **_card(update, cwd)}}]
        case _:
            return []


def _card(update: Message, cwd: str) -> Message:
    """A tool call without what may differ: raw data, and the form of paths and last line ends."""
    keys = ("toolCallId", "title", "kind", "locations", "content")
    card = {key: update[key] for key in keys if key in update}
    text = json.dumps(card).replace(f'"path": "{cwd}/', '"path": "')
    card = json.loads(text)
    for block in card.get("content", []):
        if block["type"] == "diff":
            block |= {key: block[key].removesuffix("\n") for key in ("oldText", "newText")}
    return card


def without_titles(story: list[Message], wanted: list[Message]) -> list[Message]:
    """An end may repeat the title of its call where the transcript has none."""
    for got, want in zip(story, wanted, strict=False):
        if "end" in got and "end" in want and "title" not in want["end"]:
            got["end"].pop("title", None)
    return story


def like(wanted: Any, got: Any) -> bool:
    """Whether a frame fits an expectation with wildcards; "..." allows more keys."""
    if isinstance(wanted, str) and wanted.startswith("{{"):
        kinds: Mapping[str, type] = {"{{object}}": dict, "{{array}}": list}
        return isinstance(got, kinds.get(wanted, object))
    if not isinstance(wanted, dict) or not isinstance(got, dict):
        return wanted == got
    want, given = cast("Message", wanted), cast("Message", got)
    keys = want.keys() - {"..."}
    more = given.keys() - keys - {"jsonrpc", "messageId"}
    return (not more or "..." in want) and all(
        key in given and like(want[key], given[key]) for key in keys
    )


def is_no_poorer(wanted: Any, got: Any) -> bool:
    """Whether everything wanted is there; of a list, in any place."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        want, given = cast("Message", wanted), cast("Message", got)
        texts = ("name", "description")
        return all(
            key in given and (key in texts or is_no_poorer(want[key], given[key])) for key in want
        )
    if isinstance(wanted, list) and isinstance(got, list):
        entries = cast("list[Any]", got)
        return all(any(is_no_poorer(one, other) for other in entries) for one in wanted)  # pyright: ignore[reportUnknownVariableType] (JSON)
    return wanted == got


def answer_to(editor: Editor, call: int) -> Message:
    return next(one["result"] for one in editor.received if "result" in one and one["id"] == call)


# -- the seeds ------------------------------------------------------------------------------------


async def test_plan_mode_the_edit_guard_and_two_prompts(tmp_path: Path) -> None:
    models = {"deepseek-v4-flash": VERBATIM, "deepseek-v4-pro": VERBATIM}
    async with machine(tmp_path, provider="deepseek", models=models) as here:
        (here.workspace / "notes.txt").write_bytes(workspace_file("workspace"))
        async with here.agent(greet=False) as agent:
            replay = Replay("seed1", here, agent.editor)
            streams = [f"sse/turn{turn:02}.sse" for turn in range(1, 9)]
            await replay.play(streams[:6], streams[6:])
            check_first_seed(replay, here)


def check_first_seed(replay: Replay, here: Machine) -> None:
    editor, cwd = replay.editor, str(here.workspace)
    expected, got = replay.expected(), editor.received
    hello = expected[0]["result"]
    for one in ("agentInfo", "promptCapabilities"):  # free but for being there
        (hello if one in hello else hello["agentCapabilities"])[one] = {}
    assert is_no_poorer(hello, answer_to(editor, 1))
    assert is_no_poorer(expected[1]["result"], answer_to(editor, 2))
    assert [one.get("id") for one in got[:2]] == [1, 2]
    wanted = told(expected[2:], cwd)
    assert without_titles(told(got[2:], cwd), wanted) == wanted
    titles = [one["title"] for one in editor.updates("session_info_update")]
    assert titles == ["The typo is on line"]
    replay.check_requests(replay.lines("expected_requests.jsonl"))
    assert (here.workspace / "notes.txt").read_bytes() == workspace_file("workspace_after")


def workspace_file(folder: str) -> bytes:
    return (FIXTURES / "seed1" / folder / "notes.txt").read_bytes()


async def test_a_question_by_form_with_a_client_of_another_version(tmp_path: Path) -> None:
    async with (
        machine(tmp_path, models={"m": VERBATIM}) as here,
        here.agent(greet=False) as agent,
    ):
        replay = Replay("seed2", here, agent.editor)
        await replay.play(["sse/turn01.sse", "sse/turn02.sse"])
        told_so_far = iter(coalesced(agent.editor.received))
        for want in replay.expected():
            want.pop("coalesce", None)
            assert any(like(want, frame) for frame in told_so_far), want
        replay.check_requests(replay.lines("expected_requests.jsonl"))


def coalesced(frames: Iterable[Message]) -> list[Message]:
    """The frames, each run of message chunks as one."""
    joined: list[Message] = []
    for frame in cast("list[Message]", json.loads(json.dumps(list(frames)))):
        if joined and _is_message(joined[-1]) and _is_message(frame):
            text = frame["params"]["update"]["content"]["text"]
            joined[-1]["params"]["update"]["content"]["text"] += text
        else:
            joined.append(frame)
    return joined


def _is_message(frame: Message) -> bool:
    update: Message = frame.get("params", {}).get("update", {})
    return update.get("sessionUpdate") == "agent_message_chunk"


STUB = """
import json, sys
sys.path.insert(0, sys.argv.pop(1))
from bridge.__main__ import main
from tools.base import Access, Arguments, Card, Prepared, Result, Tool
from tools.table import TOOLS

stub = json.loads(sys.argv.pop(1))

class StubArguments(Arguments):
    repository: str
    path: str
    ref: str

async def prepare(arguments, context):
    async def run():
        return Result(json.dumps(stub["result"], separators=(",", ":")))
    return Prepared(Access("none"), run)

TOOLS[stub["name"]] = Tool(stub["name"], stub["description"], StubArguments,
                           lambda arguments, cwd: Card(stub["name"]), prepare)
sys.exit(main())
"""
"""The agent with one more row in its table of tools."""


@pytest.mark.parametrize("tool", ["unknown_tool", "registered_tool"])
async def test_a_stream_with_reasoning_preamble_and_a_call(tmp_path: Path, tool: str) -> None:
    stub = (FIXTURES / "seed3" / "stub_tool.json").read_text(encoding="utf-8")
    start = (sys.executable, "-I", "-c", STUB, str(HOME), stub)
    program = start if tool == "registered_tool" else PROGRAM
    models = {"glm": {"model": "z-ai/glm-5.3-flash", **VERBATIM}}
    async with (
        machine(tmp_path, models=models) as here,
        here.agent(greet=False, program=program) as agent,
    ):
        replay = Replay("seed3", here, agent.editor)
        await replay.play(["stream.sse", "stream2.sse"])
        cwd = str(here.workspace)
        wanted = told(replay.lines(f"expected_updates.{tool}.jsonl"), cwd)
        story = told(agent.editor.received[3:], cwd)
        assert without_titles(story, wanted) == wanted
        then = json.loads((replay.folder / f"continuation_request.{tool}.json").read_bytes())
        must = {key: value for key, value in then.items() if key != "input"}
        bodies = ({"input": then["input"][:1], "must": must}, {**then, "must": must})
        replay.check_requests(bodies)
