"""A recorded session, played again: the same where nothing changed, and what differs where it did.

The session holds all that is hard to play: a tool call with a permission, one that is declined,
a command, a cancel in the middle of an answer and one in the middle of a command.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge import replay
from bridge.recording import begin
from tests.fake_editor import choose
from tests.fake_responses import FakeResponses, Pause, Reply, called, said, stream, thought
from tests.laws import Message
from tests.stage import stage

Line = dict[str, Any]

EDIT = json.dumps({"file_path": "a.txt", "old_string": "one", "new_string": "two"})
SCRIPTS = (
    stream(thought("Let me see."), said("I look."), called("c1", "read", '{"file_path":"a.txt"}')),
    stream(called("c2", "edit", EDIT)),
    stream(called("c3", "edit", EDIT.replace("two", "three"))),
    stream(called("c4", "shell", '{"command":"printf x; printf y >&2","description":"Print"}')),
    stream(said("Done, and here is a long answer.")),
    Reply(stream(said("This will be cut."))[:6], hold=True),
    stream(called("c5", "shell", '{"command":"echo begun; sleep 1000","description":"Sleep"}')),
    stream(said("And on it goes.")),
)


def model() -> FakeResponses:
    return FakeResponses(*SCRIPTS)


async def session(folder: Path, file: Path) -> None:
    """Record the session."""
    (folder / "ws").mkdir(parents=True)
    (folder / "ws" / "a.txt").write_text("one\n", encoding="utf-8")
    (folder / "ws" / "AGENTS.md").write_text("Be kind.\n", encoding="utf-8")
    kinds = iter(("allow_once", "reject_once", "allow_once", "allow_once"))

    def answer(params: Message) -> Message | None:
        return choose(next(kinds))(params)

    async with stage(folder, model(), top={"permission": "ask"}, recording=begin(str(file))) as on:
        on.editor.answers["session/request_permission"] = answer
        await on.prompt("Change a.txt.")
        request = await begun(on, "Again.")
        await on.editor.update("agent_message_chunk", messageId="m6.0")
        await cancelled(on, request)
        request = await begun(on, "Run.")
        await on.editor.update("tool_call_update", toolCallId="c5", status="in_progress")
        await cancelled(on, request)
        await on.prompt()


async def begun(on: Any, text: str) -> int:
    prompt = [{"type": "text", "text": text}]
    return await on.editor.begin("session/prompt", {"sessionId": on.session, "prompt": prompt})


async def cancelled(on: Any, request: int) -> None:
    await on.editor.notify("session/cancel", {"sessionId": on.session})
    assert await on.editor.result(request) == {"stopReason": "cancelled"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    folder = tmp_path_factory.mktemp("session")

    async def main() -> None:
        with anyio.fail_after(20):
            await session(folder / "run", folder / "recording.jsonl")

    anyio.run(main)
    return lines_of(folder / "recording.jsonl")


def lines_of(file: Path) -> list[Line]:
    return [json.loads(row) for row in file.read_text(encoding="ascii").splitlines()]


def played(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = replay.run(str(file))
    told = capsys.readouterr()
    return code, told.out + told.err


def written(folder: Path, lines: list[Line]) -> Path:
    file = folder / "recording.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")
    return file


def test_a_recorded_session_is_the_same_when_it_is_played(
    recorded: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = played(written(tmp_path, recorded), capsys)
    assert (code, told.partition(":")[0]) == (0, "The same"), told
