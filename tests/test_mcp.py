"""Real MCP servers behind the real agent: a program and a URL, well-behaved and not."""

import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.agent_process import Machine, Request, begin_prompt, cancel, is_alive, machine, printed
from tests.fake_editor import Editor, choose, fill
from tests.laws import Message
from tests.mcp_server import PICTURE

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX processes"),
]

SERVER = Path(__file__).with_name("mcp_server.py")
FORM: Message = {"elicitation": {"form": {}}, "session": {"notices": {}}}
PATIENT: Message = {"mcp_wait": 25}


def stdio(name: str = "s", **env: str) -> Message:
    """The test server as an editor names it."""
    pairs = [{"name": key, "value": value} for key, value in env.items()]
    return {"name": name, "command": sys.executable, "args": [str(SERVER)], "env": pairs}


async def open_session(here: Machine, editor: Editor, *servers: Message) -> str:
    params: Message = {"cwd": str(here.workspace), "mcpServers": list(servers)}
    return str((await editor.request("session/new", params))["sessionId"])


async def until_ready(editor: Editor, session: str, *names: str) -> None:
    """Wait for servers to be there, as long as it takes: they load what we load, or more."""
    while not all(re.search(rf"- {name} \(\w+\): ready", editor.text()) for name in names):
        await editor.result(await begin_prompt(editor, session, "/mcp"))


def offered(request: Request) -> list[str]:
    """The MCP tools that the model can call."""
    names = [str(tool["name"]) for tool in request.body["tools"]]
    return [name for name in names if name.startswith("mcp__")]


async def call(here: Machine, editor: Editor, session: str, tool: str, /, **arguments: Any) -> str:
    """A turn with one call of the model's; gives what the model was told of it."""
    prompt = await begin_prompt(editor, session)
    number = f"call_{len(here.model.requests)}"
    await (await here.model.request()).ask_for(number, tool, **arguments)
    request = await here.model.request()
    await request.answer()
    assert (await editor.result(prompt))["stopReason"] == "end_turn"
    return request.input[-1]["output"]


def last_card(editor: Editor, title: str) -> Message:
    """The last update of the last call with this title, on top of its announcement."""
    cards = [one for one in editor.updates("tool_call") if one["title"] == title]
    ends = [
        one
        for one in editor.updates("tool_call_update")
        if one["toolCallId"] == cards[-1]["toolCallId"] and "rawOutput" in one
    ]
    return {**cards[-1], **ends[-1]}


async def test_a_program_of_the_editors_serves_its_tools(tmp_path: Path) -> None:
    async with machine(tmp_path, deadline=90, settings=PATIENT) as here:
        here.secrets += ["value-of-the-key"]
        # Requests to the model stay on this machine, where no proxy is asked.
        proxied = {**here.environment, "HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "127.0.0.1"}
        async with here.agent(env=proxied, **FORM) as agent:
            editor = agent.editor
            broken = {**stdio("broken"), "command": "/no/such/server"}
            env = {"NOISE": "1", "SERVER_KEY": "value-of-the-key", "PLAIN": "p"}
            session = await open_session(here, editor, broken, stdio("s", **env))
            await until_ready(editor, session, "s")
            assert await call(here, editor, session, "mcp__s__echo", text="hello") == "hello"
            first = here.model.requests[0]
            assert offered(first)[:3] == ["mcp__s__look", "mcp__s__echo", "mcp__s__fail"]
            echo = next(tool for tool in first.body["tools"] if tool["name"] == "mcp__s__echo")
            assert echo["strict"] is False
            assert echo["parameters"]["properties"]["text"]["type"] == "string"
            assert here.model.requests[1].body["tools"] == first.body["tools"]
            notices = [one["title"] for one in editor.updates("notice")]
            assert notices == ['MCP server "broken" cannot be used: No such file or directory']

            card = last_card(editor, "s: echo")
            assert (card["kind"], card["status"]) == ("other", "completed")
            assert card["rawOutput"] == {"output": "hello"}

            told = await call(here, editor, session, "mcp__s__fail")
            assert "that did not work" in told
            assert last_card(editor, "s: fail")["status"] == "failed"

            told = await call(here, editor, session, "mcp__s__variable", name="SERVER_KEY")
            assert told == "[redacted]"
            assert await call(here, editor, session, "mcp__s__variable", name="PLAIN") == "p"
            assert await call(here, editor, session, "mcp__s__variable", name="TEST_KEY") == "unset"
            told = await call(here, editor, session, "mcp__s__variable", name="HTTPS_PROXY")
            assert told == "http://proxy:3128"

            told = await call(here, editor, session, "mcp__s__mixed")
            assert told.splitlines() == [
                "Look:",
                "[image of type image/png, shown to the user]",
                '[resource_link name="a.txt" uri="file:///a.txt"]',
                '<resource uri="file:///notes.txt">',
                "Notes.",
                "</resource>",
            ]
            blocks = [one["content"] for one in last_card(editor, "s: mixed")["content"]]
            assert [one["type"] for one in blocks] == ["text", "image", "resource_link", "resource"]
            assert blocks[1] == {"type": "image", "data": PICTURE, "mimeType": "image/png"}

            prompt = await begin_prompt(editor, session, "/mcp")
            await editor.result(prompt)
            assert "- s (editor): ready, 11 tools, about " in editor.text()
            assert "- broken (editor): failed: No such file" in editor.text()
        assert "value-of-the-key" not in here.log()


async def test_a_server_asks_reports_grows_and_crashes(tmp_path: Path) -> None:
    async with (
        machine(tmp_path, deadline=90, settings=PATIENT) as here,
        here.agent(**FORM) as agent,
    ):
        editor = agent.editor
        session = await open_session(here, editor, stdio())
        await until_ready(editor, session, "s")
        editor.answers["elicitation/create"] = fill(colour="red", dark=True)
        told = await call(here, editor, session, "mcp__s__ask")
        assert told == "accept: colour='red' dark=True"
        asked = [one for one in editor.received if one.get("method") == "elicitation/create"]
        form = asked[0]["params"]
        assert form["message"] == 'MCP server "s" asks:\n\nWhich colour?'
        assert form["toolCallId"] == last_card(editor, "s: ask")["toolCallId"]
        assert form["requestedSchema"]["required"] == ["colour"]
        for answer, said in (
            ({"action": "decline"}, "decline: None"),
            ({"action": "accept", "content": {"colour": 5}}, "cancel: None"),
            ({}, "cancel: None"),
        ):
            editor.answers["elicitation/create"] = lambda _, answer=answer: answer
            assert await call(here, editor, session, "mcp__s__ask") == said, answer

        # It tells how far it is; a cancelled turn cancels the call, and the server lives on.
        prompt = await begin_prompt(editor, session)
        await (await here.model.request()).ask_for("w", "mcp__s__work")
        await printed(editor, "w", "1 of 3: a third")
        await cancel(editor, session)
        assert (await editor.result(prompt))["stopReason"] == "cancelled"
        assert await call(here, editor, session, "mcp__s__wait_for_stop") == "stopped"

        # A tool that came later is offered from the next request on.
        assert "mcp__s__grown" not in offered(here.model.requests[-1])
        assert await call(here, editor, session, "mcp__s__grow") == "grown"
        assert offered(here.model.requests[-1])[-1] == "mcp__s__grown"
        assert await call(here, editor, session, "mcp__s__grown", text="g") == "g"

        # A crash in the middle costs one notice and the tools.
        told = await call(here, editor, session, "mcp__s__crash")
        reason = "it ended: the disk is on fire"
        assert told == f'Error: the call to MCP server "s" failed: {reason}'
        assert offered(here.model.requests[-1]) == []
        told = await call(here, editor, session, "mcp__s__echo", text="anyone?")
        assert told == f'Error: the call to MCP server "s" failed: {reason}'
        notices = [one["title"] for one in editor.updates("notice")]
        assert notices == [f'MCP server "s" cannot be used: {reason}']


async def test_a_late_server_joins_at_a_later_request_and_none_outlives_the_agent(
    tmp_path: Path,
) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    go = tmp_path / "go"
    async with machine(tmp_path, deadline=90, settings={"mcp_wait": 0}) as here:
        async with here.agent() as agent:
            editor = agent.editor
            late = stdio("late", LATE=str(go), PIDS=str(pids))
            stuck = stdio("stuck", LATE="/no/such/file", PIDS=str(pids), STUBBORN="1")
            session = await open_session(here, editor, late, stuck)
            told = await call(here, editor, session, "shell", command="echo hi", description="E.")
            assert told.startswith("hi")
            assert offered(here.model.requests[-1]) == []
            go.touch()
            while not offered(here.model.requests[-1]) or len(list(pids.iterdir())) < 2:
                prompt = await begin_prompt(editor, session)
                await (await here.model.request()).answer()
                await editor.result(prompt)
            assert all(name.startswith("mcp__late__") for name in offered(here.model.requests[-1]))
            running = [int(path.name) for path in pids.iterdir()]
            assert all(map(is_alive, running))
        assert not any(map(is_alive, running))


@asynccontextmanager
async def http_server(**env: str) -> AsyncGenerator[str]:
    """The test server on loopback; gives its URL."""
    command = [sys.executable, str(SERVER), "http"]
    async with await anyio.open_process(command, env={**os.environ, **env}) as process:
        assert process.stdout is not None
        try:
            port = (await process.stdout.receive()).decode().strip()
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            with suppress(ProcessLookupError):  # it crashed
                process.kill()


CONFIGURED = """\
[mcp.own]
url = "{}"
api_key_env = "SERVER_TOKEN"
tools = ["look", "header", "gr*"]
trust_read_only = true
"""


async def test_a_url_of_the_editors_and_one_of_the_configuration_serve_their_tools(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path, deadline=90) as here, http_server() as url:
        here.secrets += ["secret-of-the-header", "secret-of-the-file"]
        here.configure({"permission": "workspace-write", **PATIENT})
        with here.config.open("a", encoding="utf-8") as config:
            config.write(CONFIGURED.format(url))
        environment = {**here.environment, "SERVER_TOKEN": "secret-of-the-file"}
        async with here.agent(env=environment, **FORM) as agent:
            editor = agent.editor
            headers = [{"name": "X-Token", "value": "secret-of-the-header"}]
            sent = {"type": "http", "name": "sent", "url": url, "headers": headers}
            old: Message = {"type": "sse", "name": "old", "url": url, "headers": []}
            session = await open_session(here, editor, sent, old)
            await until_ready(editor, session, "sent", "own")
            # Trusted and read-only: nobody is asked, not even in plan mode.
            await editor.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
            assert await call(here, editor, session, "mcp__own__look", what="it") == "saw it"
            assert last_card(editor, "own: look")["kind"] == "read"
            assert offered(here.model.requests[0])[:4] == [
                "mcp__own__look", "mcp__own__header", "mcp__own__grow", "mcp__sent__look",
            ]  # fmt: skip
            told = await call(here, editor, session, "mcp__sent__look", what="it")
            assert "is not available in plan mode" in told
            await editor.request("session/set_mode", {"sessionId": session, "modeId": "default"})

            # Everything else asks, until it is allowed as it is described.
            told = await call(here, editor, session, "mcp__sent__look", what="it")
            assert "declined" in told
            editor.answers["session/request_permission"] = choose("allow_always")
            told = await call(here, editor, session, "mcp__sent__header", name="x-token")
            assert told == "[redacted]"
            del editor.answers["session/request_permission"]
            told = await call(here, editor, session, "mcp__sent__header", name="x-token")
            assert told == "[redacted]"
            told = await call(here, editor, session, "mcp__own__header", name="authorization")
            assert "declined" in told
            editor.answers["session/request_permission"] = choose("allow_once")
            told = await call(here, editor, session, "mcp__own__header", name="authorization")
            assert told == "Bearer [redacted]"

            # What changes by itself there is heard of here as well.
            assert await call(here, editor, session, "mcp__own__grow") == "grown"
            assert "mcp__own__grown" in offered(here.model.requests[-1])
            notices = [one["title"] for one in editor.updates("notice")]
            assert len(notices) == 1
            assert notices[0].startswith('MCP server "old" cannot be used: servers over SSE')


async def test_a_url_that_is_slow_at_first_joins_later_and_may_crash(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with (
        machine(
            tmp_path, deadline=90, settings={"mcp_wait": 0}, models={"m": {"images": True}}
        ) as here,
        http_server(LATE=str(go), LISTENS="1") as url,
        here.agent(**FORM) as agent,
    ):
        editor = agent.editor
        sent: Message = {"type": "http", "name": "s", "url": url, "headers": []}
        session = await open_session(here, editor, sent)
        told = await call(here, editor, session, "shell", command="echo hi", description="E.")
        assert told.startswith("hi")
        assert offered(here.model.requests[-1]) == []
        go.touch()
        while not offered(here.model.requests[-1]):
            prompt = await begin_prompt(editor, session)
            await (await here.model.request()).answer()
            await editor.result(prompt)
        told = await call(here, editor, session, "mcp__s__echo", text="hello")
        assert told == "hello"

        # Progress and questions come over the stream of the call.
        editor.answers["elicitation/create"] = fill(colour="red", dark=True)
        assert await call(here, editor, session, "mcp__s__ask") == "accept: colour='red' dark=True"
        prompt = await begin_prompt(editor, session)
        await (await here.model.request()).ask_for("w", "mcp__s__work")
        await printed(editor, "w", "1 of 3: a third")
        await cancel(editor, session)
        assert (await editor.result(prompt))["stopReason"] == "cancelled"

        # A crash in the middle costs one notice and the tools.
        told = await call(here, editor, session, "mcp__s__crash")
        assert told.startswith('Error: the call to MCP server "s" failed: ')
        while offered(here.model.requests[-1]):
            told = await call(here, editor, session, "mcp__s__echo", text="anyone?")
            assert told.startswith('Error: the call to MCP server "s" failed: ')
        (notice,) = [one["title"] for one in editor.updates("notice")]
        assert notice == 'MCP server "s" cannot be used: it cannot be reached (ConnectError)'
