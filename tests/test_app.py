"""The parts put together, over real descriptors, in this process."""

import json
import os
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.lowlevel import checkpoint
from anyio.streams.buffered import BufferedByteReceiveStream

from bridge import app, workshop
from bridge.acp.stdio import Stdio
from bridge.core.wire import JsonObject, dump
from bridge.demo.model import scripted_model
from bridge.folders import state_folder
from tests.laws import Laws

HELLO: JsonObject = {"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}}


@dataclass(eq=False, slots=True)
class Line:
    """The editor's ends of the two pipes."""

    to_agent: int
    from_agent: int
    laws: Laws
    received: bytes = b""

    async def send(self, message: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", **message}
        self.laws.sent(message)
        os.write(self.to_agent, dump(message) + b"\n")
        await checkpoint()

    async def answer(self, request: int) -> dict[str, Any]:
        return await self.message(lambda one: one.get("id") == request and "method" not in one)

    async def message(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for the next message that is wanted; what comes before it is only checked."""
        with anyio.fail_after(20):
            while True:
                while b"\n" not in self.received:
                    await anyio.wait_readable(self.from_agent)
                    self.received += os.read(self.from_agent, 1 << 20)
                line, _, self.received = self.received.partition(b"\n")
                message = self.laws.take(line + b"\n")
                if wanted(message):
                    return message


@pytest.fixture(autouse=True)
def a_home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # is not for this machine itself
    # Both last as long as the process, which here is the one that runs the tests.
    monkeypatch.setattr(workshop, "hide_memory", lambda: True)
    monkeypatch.setattr(workshop, "adopt_orphans", lambda: True)


@pytest.fixture
def config(tmp_path: Path) -> Generator[str]:
    with scripted_model() as base:
        file = tmp_path / "config.toml"
        file.write_text(
            f'permission = "danger-full-access"\n[providers.p]\nbase_url = "{base}"\n'
            '[models.m]\nprovider = "p"\n[sandbox]\nenv_keep = ["PATH"]\n',
            encoding="utf-8",
        )
        yield str(file)


@asynccontextmanager
async def running(config: str | None, received: bytes = b"") -> AsyncGenerator[Line]:
    stdin, to_agent = os.pipe()
    from_agent, stdout = os.pipe()
    line = Line(to_agent, from_agent, Laws())
    line.laws.can = app.handshake.client_capabilities(HELLO)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.run, config, Stdio(stdin, stdout), received, HELLO)
            yield line
            os.close(to_agent)
    os.set_blocking(from_agent, False)
    with suppress(BlockingIOError):
        line.received += os.read(from_agent, 1 << 16)
    for descriptor in (stdin, stdout, from_agent):
        os.close(descriptor)


@pytest.mark.anyio
async def test_a_prompt_is_answered_over_descriptors(config: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    async with running(config) as line:
        await line.send({"id": 1, "method": "session/new", "params": {"cwd": str(tmp_path)}})
        session = (await line.answer(1))["result"]["sessionId"]
        for request in (2, 3):
            text = [{"type": "text", "text": "What is here?"}]
            params = {"sessionId": session, "prompt": text}
            await line.send({"id": request, "method": "session/prompt", "params": params})
            assert (await line.answer(request))["result"] == {"stopReason": "end_turn"}
        await line.send({"id": 4, "method": "session/list"})
        assert len((await line.answer(4))["result"]["sessions"]) == 1


@pytest.mark.anyio
async def test_what_came_before_and_a_last_line_without_its_end_are_messages() -> None:
    first = dump({"jsonrpc": "2.0", "id": 1, "method": "session/list"}) + b"\n"
    async with running(None, first) as line:
        line.laws.sent(json.loads(first))
        assert (await line.answer(1))["result"] == {"sessions": []}
        last = {"jsonrpc": "2.0", "id": 2, "method": "no/such"}
        line.laws.sent(last)
        os.write(line.to_agent, dump(last))
    assert b"-32601" in line.received


@pytest.mark.anyio
async def test_a_signal_ends_it_like_the_end_of_input(config: str) -> None:
    async with running(config) as line:
        await line.send({"id": 1, "method": "session/list"})
        await line.answer(1)
        os.kill(os.getpid(), signal.SIGTERM)


def test_state_lives_where_the_user_has_a_place_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/var/tmp/state")
    assert state_folder() == Path("/var/tmp/state/responses-acp")


@pytest.mark.parametrize(
    ("home", "state", "is_one"),
    [
        ("there", "", True),
        ("nowhere", "", False),
        ("file", "", False),
        ("file/below", "", False),
        ("nowhere", "nowhere/state", False),
        ("nowhere", "elsewhere/state", True),
    ],
)
def test_a_home_that_does_not_exist_has_no_place_for_state(
    home: str, state: str, is_one: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / home))
    monkeypatch.setenv("XDG_STATE_HOME", state and str(tmp_path / state))
    assert (state_folder() is not None) == is_one


PRINTED = "sk-printed-0123456789"


async def list_models(stream: SocketStream) -> None:
    """A server that lists two models to who has the key, and nothing else."""
    async with stream:
        head = (await BufferedByteReceiveStream(stream).receive_until(b"\r\n\r\n", 9999)).decode()
        allowed = head.startswith("GET /v1/models ") and f"Bearer {PRINTED}" in head
        body = dump({"data": [{"id": "m"}, {"id": "n"}]})
        first = "HTTP/1.1 200 OK" if allowed else "HTTP/1.1 404 Not Found"
        await stream.send(f"{first}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)


@pytest.mark.anyio
async def test_the_models_of_a_server_are_offered_when_it_has_told_them(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, list_models)
        port = listener.extra(SocketAttribute.local_port)
        file.write_text(
            f'[providers.p]\nbase_url = "http://127.0.0.1:{port}/v1"\ndiscover = true\n'
            f'api_key_command = ["echo", "{PRINTED}"]\n[models.m]\nprovider = "p"\n',
            encoding="utf-8",
        )
        async with running(str(file)) as line:
            await line.send({"id": 1, "method": "session/new", "params": {"cwd": str(tmp_path)}})
            opened = await line.answer(1)
            session = opened["result"]["sessionId"]
            assert b"p/n" not in dump(opened)
            offered = await line.message(lambda one: b'"config_option_update"' in dump(one))
            assert b"p/n" in dump(offered)
            await line.send({"id": 2, "method": "session/new", "params": {"cwd": str(tmp_path)}})
            assert b"p/n" in dump(await line.answer(2))
            await line.send(prompt(session, f"Say {PRINTED}."))
            assert (await line.answer(3))["error"]["code"] == -32603  # it only lists models
        tasks.cancel_scope.cancel()
    (stored,) = (tmp_path / "home").rglob("*.jsonl")
    assert b"Say [" in stored.read_bytes()
    assert PRINTED.encode() not in stored.read_bytes()


def prompt(session: str, text: str) -> dict[str, Any]:
    """The third request: a prompt of one text."""
    blocks = [{"type": "text", "text": text}]
    return {"id": 3, "method": "session/prompt", "params": {"sessionId": session, "prompt": blocks}}
