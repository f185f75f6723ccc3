"""The protocol's own example server, from npm, behind the real agent: a program and a URL."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import pytest
from anyio.abc import ByteReceiveStream

from tests.agent_process import Machine, begin_prompt, machine, printed
from tests.fake_editor import Editor, fill
from tests.laws import Message
from tests.npm import installed, node
from tests.test_mcp import FORM, PATIENT, call, last_card, open_session, until_ready

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX processes"),
]

PACKAGE = "@modelcontextprotocol/server-everything"
SEEING: Message = {"m": {"images": True}}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """How to run the server."""
    modules = installed(f"{PACKAGE}@2026.8.31", tmp_path_factory.mktemp("everything"))
    return [node(), str(modules / PACKAGE / "dist" / "index.js")]


async def work_through(here: Machine, editor: Editor, session: str) -> None:
    """Use what the server is there to show."""
    await until_ready(editor, session, "all")
    told = await call(here, editor, session, "mcp__all__echo", message="hello")
    assert told == "Echo: hello"
    told = await call(here, editor, session, "mcp__all__get-sum", a="x", b=1)
    assert "expected number" in told
    assert last_card(editor, "all: get-sum")["status"] == "failed"

    text, picture = await parts(here, editor, session, "mcp__all__get-tiny-image")
    assert text["text"].startswith("Here's the image you requested:")
    assert picture["type"] == "input_image"
    assert picture["image_url"].startswith("data:image/png;base64,iVBOR")
    blocks = [one["content"]["type"] for one in last_card(editor, "all: get-tiny-image")["content"]]
    assert blocks == ["text", "image", "text"]

    told = await call(here, editor, session, "mcp__all__get-resource-links", count=2)
    assert len(re.findall(r"\[resource_link name=", told)) == 2

    prompt = await begin_prompt(editor, session)
    work = {"duration": 0.4, "steps": 2}
    name = "mcp__all__trigger-long-running-operation"
    await (await here.model.request()).ask_for("long", name, **work)
    await printed(editor, "long", "1 of 2")
    request = await here.model.request()
    assert "Long running operation completed" in request.input[-1]["output"]
    await request.answer()
    await editor.result(prompt)


async def parts(here: Machine, editor: Editor, session: str, name: str) -> list[Message]:
    """The output of one call without arguments, in parts."""
    prompt = await begin_prompt(editor, session)
    await (await here.model.request()).ask_for("parts", name)
    request = await here.model.request()
    await request.answer()
    await editor.result(prompt)
    output: list[Message] = request.input[-1]["output"]
    return output


async def test_everything_over_standard_streams(program: list[str], tmp_path: Path) -> None:
    async with (
        machine(tmp_path, deadline=90, settings=PATIENT, models=SEEING) as here,
        here.agent(**FORM) as agent,
    ):
        editor = agent.editor
        server: Message = {"name": "all", "command": program[0], "args": program[1:], "env": []}
        session = await open_session(here, editor, server)
        await work_through(here, editor, session)
        editor.answers["elicitation/create"] = fill(name="Ada", check=True)
        told = await call(here, editor, session, "mcp__all__trigger-elicitation-request")
        assert "Ada" in told


@asynccontextmanager
async def served(program: list[str]) -> AsyncGenerator[str]:
    """The server on loopback; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*program, "streamableHttp"]
    environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
    async with await anyio.open_process(
        command, env=environment, stderr=subprocess.STDOUT
    ) as process:
        try:
            said = b""
            while b"listening on port" not in said:
                said += await cast("ByteReceiveStream", process.stdout).receive()
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


async def test_everything_over_a_url(program: list[str], tmp_path: Path) -> None:
    async with (
        machine(tmp_path, deadline=90, settings=PATIENT, models=SEEING) as here,
        served(program) as url,
        here.agent(**FORM) as agent,
    ):
        server: Message = {"type": "http", "name": "all", "url": url, "headers": []}
        session = await open_session(here, agent.editor, server)
        await work_through(here, agent.editor, session)
