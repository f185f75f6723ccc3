"""How the real agent ends, and how a session goes on in another process."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.agent_process import Machine, begin_prompt, is_alive, machine, printed
from tests.fake_editor import Agent, Editor, Refused
from tests.laws import Message

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs bash"),
]


async def sleeping(here: Machine, editor: Editor, session: str) -> int:
    """A turn in which a command runs; gives the command's process."""
    await begin_prompt(editor, session, "Sleep")
    request = await here.model.request()
    command = "echo $$ > pid; echo begun; trap '' TERM; sleep 1000 & wait; sleep 1000"
    await request.ask_for("sleep", "shell", command=command, description="Sleeps.")
    await printed(editor, "sleep", "begun")
    return int((here.workspace / "pid").read_text(encoding="utf-8"))


async def check_ends(pid: int) -> None:
    """The process ends by itself; its zombie may stay, where nobody reaps orphans."""
    ask = ["ps", "-o", "state=", "-p", str(pid)]
    with anyio.fail_after(10):
        while (await anyio.run_process(ask, check=False)).stdout.strip() not in (b"", b"Z"):  # noqa: ASYNC110 (nothing tells of it)
            await anyio.sleep(0.01)


async def load(here: Machine, editor: Editor, session: str) -> None:
    params: Message = {"sessionId": session, "cwd": str(here.workspace), "mcpServers": []}
    await editor.request("session/load", params)


# -- the end --------------------------------------------------------------------------------------


async def signalled(agent: Agent, kind: signal.Signals) -> None:
    os.kill(agent.pid, kind)
    await agent.editor.end()


async def end_of_input(agent: Agent) -> None:
    await agent.end()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, None])
async def test_the_end_takes_a_running_command_along_and_keeps_the_session(
    tmp_path: Path, how: signal.Signals | None
) -> None:
    async with machine(tmp_path) as here:
        async with here.agent(answers_all=False) as agent:
            session = await agent.editor.new_session(here.workspace)
            pid = await sleeping(here, agent.editor, session)
            with anyio.fail_after(3):
                await (end_of_input(agent) if how is None else signalled(agent, how))
                assert await agent.end() == 0
            assert not is_alive(pid)
        assert here.log() == ""
        async with here.agent() as agent:
            await load(here, agent.editor, session)
            await check_aborted_call(here, agent.editor, session)


async def check_aborted_call(here: Machine, editor: Editor, session: str) -> None:
    """The call that ran has failed, for the person and for the model."""
    await editor.update("tool_call_update", toolCallId="sleep", status="failed")
    call = await begin_prompt(editor, session, "What now?")
    request = await here.model.request()
    kinds = [item["type"] for item in request.input]
    assert kinds == ["message", "function_call", "function_call_output", "message"]
    assert request.input[2]["output"].startswith("Error: ")
    await request.answer()
    assert (await editor.result(call))["stopReason"] == "end_turn"


async def test_an_editor_that_is_gone_ends_everything(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent(answers_all=False) as agent:
        session = await agent.editor.new_session(here.workspace)
        await begin_prompt(agent.editor, session)
        request = await here.model.request()
        await request.say("Half")
        await agent.editor.update("agent_message_chunk")
        with anyio.fail_after(3):
            await agent.end()
            await request.hung_up.wait()


# -- and after it ---------------------------------------------------------------------------------


def shown(editor: Editor, session: str) -> list[Message]:
    """What the person sees of the conversation: texts whole, cards as they stand in the end."""
    seen: dict[tuple[str, str], Message] = {}
    for update in editor.updates(session=session):
        match update["sessionUpdate"]:
            case "agent_message_chunk" | "agent_thought_chunk" as kind:
                text = seen.setdefault((kind, update["messageId"]), {"kind": kind, "text": ""})
                text["text"] += update["content"]["text"]
            case "tool_call" | "tool_call_update":
                card = seen.setdefault(("card", update["toolCallId"]), {})
                card |= {key: value for key, value in update.items() if key != "sessionUpdate"}
            case "session_info_update":
                seen["title", ""] = update
            case _:
                pass
    return list(seen.values())


async def a_rich_turn(here: Machine, editor: Editor, session: str) -> None:
    """A turn with a bit of everything; reads the file `old`."""
    call = await begin_prompt(editor, session, "Do a bit of everything")
    rounds: list[tuple[str, Message]] = [
        ("read", {"file_path": "old"}),
        ("read", {"file_path": "missing"}),
        ("write", {"file_path": "new", "content": "a\nb\n"}),
        ("shell", {"command": "echo out; echo err >&2; exit 3", "description": "Fails."}),
        ("no_such_tool", {"a": 1}),
    ]
    for number, (tool, arguments) in enumerate(rounds):
        request = await here.model.request()
        await request.think(f"Thought {number}")
        await request.say(f"Step {number}.")
        await request.say(" Going on.")
        await request.ask_for(f"c{number}", tool, **arguments)
    await (await here.model.request()).answer("All done.")
    assert (await editor.result(call))["stopReason"] == "end_turn"


async def test_a_session_of_a_killed_process_is_shown_and_continued_as_it_was(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as here:
        (here.workspace / "old").write_text("old\n", encoding="utf-8")
        async with here.agent(code=-signal.SIGKILL, answers_all=False) as agent:
            editor = agent.editor
            session = await editor.new_session(here.workspace)
            await a_rich_turn(here, editor, session)
            live = shown(editor, session)
            await begin_prompt(editor, session, "Go on")
            last = await here.model.request()
            await last.say("Half an answer")
            await editor.message(lambda _: editor.text().endswith("Half an answer"))
            await signalled(agent, signal.SIGKILL)
        async with here.agent() as agent:
            editor = agent.editor
            (listed,) = (await editor.request("session/list"))["sessions"]
            assert (listed["sessionId"], listed["title"]) == (session, "Do a bit of everything")
            await load(here, editor, session)
            assert shown(editor, session) == live
            assert editor.text("user_message_chunk") == "Do a bit of everythingGo on"
            # What the first process read need not be read again.
            await check_edit(here, editor, session, last.input)
        assert (here.workspace / "old").read_text(encoding="utf-8") == "new\n"


async def check_edit(here: Machine, editor: Editor, session: str, before: list[Message]) -> None:
    """The next prompt continues what the model was sent before, and an edit needs no reading."""
    call = await begin_prompt(editor, session, "And now?")
    request = await here.model.request()
    assert request.input[:-1] == before
    edit: dict[str, Any] = {"file_path": "old", "old_string": "old", "new_string": "new"}
    await request.ask_for("c0", "edit", **edit)  # an id that was used before
    request = await here.model.request()
    assert request.input[-1]["call_id"] == "c0"
    await editor.update("tool_call_update", toolCallId="c0#2", status="completed")
    await request.answer()
    assert (await editor.result(call))["stopReason"] == "end_turn"


async def test_a_call_that_ran_when_the_process_was_killed_has_failed(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        async with here.agent(code=-signal.SIGKILL, answers_all=False) as agent:
            session = await agent.editor.new_session(here.workspace)
            pid = await sleeping(here, agent.editor, session)
            await signalled(agent, signal.SIGKILL)
        await check_ends(pid)
        async with here.agent() as agent:
            await load(here, agent.editor, session)
            await check_aborted_call(here, agent.editor, session)


async def test_a_session_is_open_in_one_process_at_a_time(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent() as later:
        async with here.agent() as agent:
            session = await agent.editor.new_session(here.workspace)
            call = await begin_prompt(agent.editor, session)
            await (await here.model.request()).answer()
            await agent.editor.result(call)
            with pytest.raises(Refused, match=rf"another process \({agent.pid}\)"):
                await load(here, later.editor, session)
            with pytest.raises(Refused, match="loaded already"):
                await load(here, agent.editor, session)
        await load(here, later.editor, session)
        assert later.editor.text() == "Done."


async def test_the_plan_is_shown_again_when_a_session_is_loaded(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        async with here.agent() as agent:
            session = await agent.editor.new_session(here.workspace)
            call = await begin_prompt(agent.editor, session)
            for number, status in enumerate(("in_progress", "completed")):
                request = await here.model.request()
                todos = [{"content": "Look", "status": status}]
                await request.ask_for(f"c{number}", "todo_write", todos=todos)
            await (await here.model.request()).answer()
            await agent.editor.result(call)
            shown = agent.editor.updates("plan")
            assert [plan["entries"][0]["status"] for plan in shown] == ["in_progress", "completed"]
        async with here.agent() as agent:
            await load(here, agent.editor, session)
            assert agent.editor.updates("plan") == shown[-1:]
