"""The official Python SDK drives a whole turn, then lists the session, loads it and goes on."""

import sys
from pathlib import Path
from typing import Any

import acp
import anyio
import pytest
from acp import schema

from tests.sdk_stage import COMMAND, TURNS, check_demo, demo, stage, surroundings


class Editor(acp.Client):
    """Allows what it is asked, and remembers what it is shown."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.shown: list[str] = []

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call.title)
        chosen = next(option for option in options if option.kind == "allow_once")
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.shown.append(update.session_update)


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_turn_with_a_permission_request(tmp_path: Path) -> None:
    with stage(tmp_path) as config, anyio.fail_after(60):
        work, home = str(tmp_path / "work"), {"HOME": str(tmp_path / "home")}
        agent = (sys.executable, "-I", "-m", "bridge", "--config", config)
        editor = Editor()  # pyright: ignore[reportAbstractUsage] (it offers no files and no terminals)
        async with acp.spawn_agent_process(editor, *agent, env=home) as (line, _):
            hello = await line.initialize(protocol_version=acp.PROTOCOL_VERSION)
            assert hello.protocol_version == 1
            session = (await line.new_session(cwd=work, mcp_servers=[])).session_id
            prompt: list[Any] = [acp.text_block("Run it")]
            answer = await line.prompt(session_id=session, prompt=prompt)
            assert answer.stop_reason == "end_turn"
        assert editor.asked == [COMMAND]
        assert (tmp_path / "work" / "made.txt").read_text() == "allowed\n"
        later = Editor()  # pyright: ignore[reportAbstractUsage] (as above)
        async with acp.spawn_agent_process(later, *agent, env=home) as (line, _):
            await line.initialize(protocol_version=acp.PROTOCOL_VERSION)
            (listed,) = (await line.list_sessions(cwd=work)).sessions
            assert (listed.session_id, listed.title) == (session, "Run it")
            await line.load_session(cwd=work, session_id=session, mcp_servers=[])
            shown, later.shown = later.shown, []
            answer = await line.prompt(session_id=session, prompt=prompt)
            assert answer.stop_reason == "end_turn"
        assert [kind for kind in shown if kind.startswith(("user", "agent", "tool"))] == [
            "user_message_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk",
        ]
        assert [kind for kind in later.shown if kind.startswith(("user", "agent", "tool"))] == [
            "agent_message_chunk"
        ]
        assert later.asked == []


class Canceller(Editor):
    """Cancels the turn when it is asked about the command that lists the folder, once."""

    def __init__(self) -> None:
        super().__init__()
        self.line: acp.ClientSideConnection | None = None

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> schema.RequestPermissionResponse:
        if tool_call.title == "ls" and self.line is not None:
            line, self.line = self.line, None
            await line.cancel(session_id=session_id)
            self.asked.append("ls, cancelled")
            return schema.RequestPermissionResponse(
                outcome=schema.DeniedOutcome(outcome="cancelled")
            )
        return await super().request_permission(session_id, tool_call, options)


@pytest.mark.slow
@pytest.mark.anyio
async def test_an_edit_a_permission_a_cancel_and_another_prompt(tmp_path: Path) -> None:
    agent, work = demo(tmp_path), str(tmp_path / "work")
    editor = Canceller()  # pyright: ignore[reportAbstractUsage] (as above)
    with anyio.fail_after(60):
        async with acp.spawn_agent_process(editor, *agent, env=surroundings(tmp_path)) as (line, _):
            await line.initialize(protocol_version=acp.PROTOCOL_VERSION)
            session = (await line.new_session(cwd=work, mcp_servers=[])).session_id
            await line.set_config_option("permission", session, "ask")
            editor.line = line
            reasons: list[str] = []
            for text in TURNS:
                prompt: list[Any] = [acp.text_block(text)]
                answer = await line.prompt(session_id=session, prompt=prompt)
                reasons.append(answer.stop_reason)
    assert reasons == ["end_turn", "cancelled", "end_turn"]
    assert editor.asked == ["cat notes.txt", "Edit notes.txt", "ls, cancelled", "ls"]
    check_demo(tmp_path, TURNS)
