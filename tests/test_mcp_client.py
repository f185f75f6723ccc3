"""One MCP server behind the official client, in this process: asked, answering, and wrong."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.core.remote_content import Output
from bridge.mcp import connect
from bridge.remote_tool import Forgotten, ServerFault
from bridge.servers import Line
from bridge.wanted import Address, Program
from tests.agent_process import Model
from tests.laws import Message
from tools.base import Filled

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX processes"),
]

SCRIPT = """
import json, sys
{start}
def answer(message, **more):
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **more}}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {{}}
    match message["method"]:
        case "initialize":
            result = {{"protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "s", "version": "1"}}}}
        case "tools/list":
            result = {{"tools": [{{"name": "a", "inputSchema": {{"type": "object"}}}}]}}
        case "tools/call":
            result = {{"content": [{{"type": "text", "text": "called"}}]}}
    {special}
    answer(message, result=result)
"""
"""A server of few words that does not know the library."""

DISCOVERED: Message = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}


@dataclass(eq=False)
class Heard:
    """What a server does by itself."""

    can_ask: bool = True
    changes: int = 0
    ends: list[str] = field(default_factory=list[str])

    def changed(self) -> None:
        self.changes += 1

    def gone(self, last_words: str) -> None:
        self.ends.append(last_words)


@dataclass(eq=False)
class Asks:
    """Who makes a call."""

    answer: Filled = field(default_factory=lambda: Filled("decline"))
    said: list[str] = field(default_factory=list[str])

    def progress(self, text: str) -> None:
        self.said.append(text)

    async def fill(self, message: str, schema: Mapping[str, Any]) -> Filled:
        self.said.append(message)
        return self.answer


def text_of(output: Output) -> str:
    return str(output.blocks[0]["text"])


@asynccontextmanager
async def script(
    cwd: Path, special: str = "", start: str = "", heard: Heard | None = None
) -> AsyncGenerator[Line]:
    """A connected server of few words that does this besides."""
    code = SCRIPT.format(special=special.replace("\n", "\n    "), start=start)
    argv = (sys.executable, "-c", code)
    reach = Program(argv, {"PATH": os.environ["PATH"]}, str(cwd))
    with anyio.fail_after(30):
        async with connect(reach, heard or Heard()) as line:
            yield line


async def test_a_server_that_does_not_know_the_library_is_understood(tmp_path: Path) -> None:
    async with script(tmp_path, start="print('Listening on stdio…')\nprint('{}')") as line:
        (tool,) = await line.tools()
        assert (tool.name, tool.description, tool.read_only) == ("a", "", False)
        assert tool.schema == {"type": "object"}
        output = await line.call("a", {}, Asks())
        assert output == Output(({"type": "text", "text": "called"},))


async def test_tools_come_in_pages_and_a_server_that_never_ends_them_is_cut_short(
    tmp_path: Path,
) -> None:
    paged = """
if message["method"] == "tools/list":
    page = int(message["params"].get("cursor", 0)) if "params" in message else 0
    result["tools"][0]["name"] = f"t{page}"
    if page < LAST:
        result["nextCursor"] = str(page + 1)
"""
    async with script(tmp_path, paged, "LAST = 2") as line:
        assert [tool.name for tool in await line.tools()] == ["t0", "t1", "t2"]
    async with script(tmp_path, paged, "LAST = 1e9") as line:
        assert len(await line.tools()) == 100


async def test_a_server_of_the_newest_protocol_alone_is_asked_for_it(tmp_path: Path) -> None:
    modern = f"""
if message["method"] == "initialize":
    answer(message, error={{"code": -32022, "message": "no",
        "data": {{"supported": ["2026-07-28"], "requested": "2025-11-25"}}}})
    continue
result["resultType"] = "complete"
if message["method"] == "tools/list":
    result.update(ttlMs=0, cacheScope="private")
if message["method"] == "server/discover":
    result = {DISCOVERED}
"""
    async with script(tmp_path, modern) as line:
        assert [tool.name for tool in await line.tools()] == ["a"]
        assert (await line.call("a", {}, Asks())).failed is False


FAULTY: list[tuple[str, str, str]] = [
    ("", "sys.exit('no database')", "Connection closed"),
    ('answer(message, error={"code": -1, "message": "not today\\nnor tomorrow"}); continue', "",
     "not today"),
    ('result = {"protocolVersion": "1"} if message["method"] == "initialize" else result', "",
     "it answered something that is not MCP"),
    ('result.update(protocolVersion="1999-01-01")', "",
     "Unsupported protocol version from the server: 1999-01-01"),
]  # fmt: skip


@pytest.mark.parametrize(("special", "start", "reason"), FAULTY)
async def test_a_server_that_does_not_do_its_part_is_a_fault(
    special: str, start: str, reason: str, tmp_path: Path
) -> None:
    heard = Heard()
    with pytest.raises(ServerFault, match=reason) as fault:
        async with script(tmp_path, special, start, heard):
            raise AssertionError
    assert "\n" not in str(fault.value)
    assert heard.ends == (["no database"] if start else [])


GARBAGE = r"""
def litter():
    for line in (b"Listening...", b"\xff\xfe", b"{}", b"[]", b"null", b"", b"[" * 50000,
                 b'{"jsonrpc": "2.0", "id": 999, "result": {}}', b"x" * 3000000,
                 b'{"jsonrpc": "2.0", "method": "notifications/unheard_of"}'):
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
litter()
"""


async def test_what_is_no_message_is_passed_over(tmp_path: Path) -> None:
    heard = Heard()
    async with script(tmp_path, "litter()", GARBAGE, heard) as line:
        assert [tool.name for tool in await line.tools()] == ["a"]
        assert (await line.call("a", {}, Asks())).blocks == ({"type": "text", "text": "called"},)
    assert heard.ends == []


@pytest.mark.parametrize(
    "written",
    [r"b'\"cut \\ud83d\"'", r"b'\"caf\xe9\"'", r"b'\"\\ude00\\ud83d\"'"],
)
async def test_an_answer_with_half_a_character_is_an_answer(written: str, tmp_path: Path) -> None:
    special = f"""
if message["method"] == "tools/call":
    result["content"][0]["text"] = "HERE"
    whole = json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}})
    sys.stdout.buffer.write(whole.encode().replace(b'"HERE"', {written}) + b"\\n")
    sys.stdout.buffer.flush()
    continue
"""
    async with script(tmp_path, special) as line:
        output = await line.call("a", {}, Asks())
    assert "\ufffd" in text_of(output)


async def test_a_program_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    for command, reason in (("/no/such", "No such file or directory"), ("none", "no program none")):
        with pytest.raises(ServerFault, match=reason):
            async with connect(Program((command,), {"PATH": "/bin"}, str(tmp_path)), Heard()):
                raise AssertionError


@pytest.mark.parametrize(
    ("special", "reason"),
    [
        ('answer(message, error={"code": -32602, "message": "no such tool"}); continue',
         "no such tool"),
        ('answer(message, result={"content": 5}); continue', "it answered something"),
        ("sys.exit()", "Connection closed"),
    ],
)  # fmt: skip
async def test_a_call_that_is_not_answered_well_is_a_fault(
    special: str, reason: str, tmp_path: Path
) -> None:
    async with script(tmp_path, f'if message["method"] == "tools/call":\n    {special}') as line:
        with pytest.raises(ServerFault, match=reason):
            await line.call("a", {}, Asks())


async def test_a_server_that_no_longer_reads_is_gone(tmp_path: Path) -> None:
    deaf = """
if message["method"] == "tools/list":
    import os, time
    os.close(0)
    answer(message, result=result)
    time.sleep(60)
"""
    heard = Heard()
    async with script(tmp_path, deaf, heard=heard) as line:
        await line.tools()
        with pytest.raises(ServerFault, match="Connection closed"):
            await line.call("a", {}, Asks())
    assert heard.ends == [""]


ASKING = """
if message["method"] == "tools/call":
    ask = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": %s}
    print(json.dumps(ask), flush=True)
    reply = json.loads(sys.stdin.readline())
    result["content"][0]["text"] = json.dumps(reply.get("result") or reply["error"])
"""
FORM: Message = {"message": "What?", "requestedSchema": {"type": "object", "properties": {}}}
URL: Message = {"mode": "url", "message": "Go", "url": "https://h", "elicitationId": "e"}


@pytest.mark.parametrize(
    ("params", "answer", "reply"),
    [
        (FORM, Filled("accept", {"a": 1}), {"action": "accept", "content": {"a": 1}}),
        (FORM, Filled("decline"), {"action": "decline"}),
        (FORM, Filled("cancel"), {"action": "cancel"}),
        (URL, Filled("accept", {}), {"action": "decline"}),
    ],
)
async def test_a_question_of_a_server_is_put_to_who_called(
    params: Any, answer: Filled, reply: Any, tmp_path: Path
) -> None:
    async with script(tmp_path, ASKING % params) as line:
        asks = Asks(answer)
        output = await line.call("a", {}, asks)
        assert json.loads(text_of(output)) == reply
        assert asks.said == (["What?"] if params is FORM else [])


async def test_nobody_is_asked_who_cannot_answer(tmp_path: Path) -> None:
    told = 'if message["method"] == "initialize": can = message["params"]["capabilities"]\n'
    told += 'if message["method"] == "tools/call": result["content"][0]["text"] = json.dumps(can)'
    for can_ask in (True, False):
        async with script(tmp_path, told, heard=Heard(can_ask=can_ask)) as line:
            output = await line.call("a", {}, Asks())
            assert ("elicitation" in json.loads(text_of(output))) == can_ask


async def test_a_question_outside_of_a_call_is_declined(tmp_path: Path) -> None:
    early = (ASKING % FORM).replace("tools/call", "tools/list")
    early = early.replace('["content"][0]["text"]', '["tools"][0]["description"]')
    async with script(tmp_path, early) as line:
        (tool,) = await line.tools()
        assert json.loads(tool.description) == {"action": "decline"}


async def test_a_form_is_given_up_with_its_call(tmp_path: Path) -> None:
    asked, given_up = anyio.Event(), anyio.Event()

    class Slow(Asks):
        async def fill(self, message: str, schema: Mapping[str, Any]) -> Filled:
            asked.set()
            try:
                await anyio.sleep_forever()
            finally:
                given_up.set()
            raise AssertionError

    async with script(tmp_path, ASKING % FORM) as line, anyio.create_task_group() as tasks:
        nothing: Message = {}
        tasks.start_soon(line.call, "a", nothing, Slow())
        await asked.wait()
        tasks.cancel_scope.cancel()
    with anyio.fail_after(5):
        await given_up.wait()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"progress": 1, "total": 4, "message": "a quarter"}, "1 of 4: a quarter"),
        ({"progress": 0.5}, "0.5"),
        ({"progress": 3, "message": "three"}, "3: three"),
    ],
)
async def test_a_call_tells_how_far_it_is(params: Any, said: str, tmp_path: Path) -> None:
    report = f"""
if message["method"] == "tools/call":
    params = {{**{params}, "progressToken": message["params"]["_meta"]["progressToken"]}}
    note = {{"jsonrpc": "2.0", "method": "notifications/progress", "params": params}}
    print(json.dumps(note), flush=True)
"""
    async with script(tmp_path, report) as line:
        asks = Asks()
        await line.call("a", {}, asks)
        assert asks.said == [said]


async def test_a_server_tells_of_other_tools_and_of_its_end(tmp_path: Path) -> None:
    tells = """
if message["method"] == "tools/call":
    print('{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}', flush=True)
    answer(message, result=result)
    sys.exit("enough")
"""
    heard = Heard()
    async with script(tmp_path, tells, heard=heard) as line:
        await line.tools()
        await line.call("a", {}, Asks())
        with anyio.fail_after(10):
            while not heard.ends:
                await anyio.lowlevel.checkpoint()
    assert (heard.changes, heard.ends) == (1, ["enough"])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, r"it cannot be reached \(ConnectError\)"),
        (("401 Unauthorized", b"", "text/plain"), "it answered 401 Unauthorized"),
        (("500 Oops", b"broken", "text/plain"), "it answered 500 Oops"),
        (("200 OK", b"<html>", "text/html"), "content type"),
    ],
)
async def test_a_url_without_a_server_behind_it_is_a_fault(answer: Any, reason: str) -> None:
    model = Model()
    model.any_body = True
    async with model.serve(), anyio.create_task_group() as tasks:

        async def reply() -> None:
            while True:
                request = await model.request()
                status, body, kind = answer
                await request.refuse(status, body, kind=kind)

        url = "http://127.0.0.1:9/mcp"
        if answer is not None:
            tasks.start_soon(reply)
            url = f"{model.base_url}/mcp"
        with anyio.fail_after(20), pytest.raises(ServerFault, match=reason):
            async with connect(Address(url, {"X-A": "b"}), Heard()):
                raise AssertionError
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"HTTPS_PROXY": "socks5://127.0.0.1:9"}, "HTTPS_PROXY names a SOCKS proxy"),
        ({"HTTPS_PROXY": "ftp://127.0.0.1:9"}, "HTTPS_PROXY cannot be used: it must hold a URL"),
        ({"ALL_PROXY": "http://host:port"}, "ALL_PROXY cannot be used: it must hold a URL"),
        ({"SSL_CERT_FILE": "/nowhere.pem"}, "SSL_CERT_FILE cannot be used"),
    ],
)
async def test_a_way_to_a_url_that_cannot_be_gone_is_a_fault_that_names_the_variable(
    variables: Mapping[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with anyio.fail_after(20), pytest.raises(ServerFault, match=reason):
        async with connect(Address("https://tools.test/mcp", {}), Heard()):
            raise AssertionError


async def test_no_proxy_stands_before_a_url_on_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    model = Model()
    model.any_body = True
    async with model.serve(), anyio.create_task_group() as tasks:

        async def reply() -> None:
            while True:
                await (await model.request()).refuse("401 Unauthorized", b"", kind="text/plain")

        tasks.start_soon(reply)
        with anyio.fail_after(20), pytest.raises(ServerFault, match="it answered 401"):
            async with connect(Address(f"{model.base_url}/mcp", {}), Heard()):
                raise AssertionError
        tasks.cancel_scope.cancel()


async def test_a_url_that_has_forgotten_its_session_is_told_from_one_that_fails() -> None:
    model = Model()
    model.any_body = True

    async def reply() -> None:
        while True:
            request = await model.request()
            await request.refuse(*_as_a_server_that_forgets(request.body))

    async with model.serve(), anyio.create_task_group() as tasks:
        tasks.start_soon(reply)
        with anyio.fail_after(20):
            async with connect(Address(f"{model.base_url}/mcp", {}), Heard()) as line:
                with pytest.raises(Forgotten, match="it answered 404"):
                    await line.call("plain", {}, Asks())
                with pytest.raises(Forgotten, match="it answered 404"):
                    await line.call("told", {}, Asks())
                with pytest.raises(ServerFault, match="it answered 500") as failed:
                    await line.call("broken", {}, Asks())
                assert not isinstance(failed.value, Forgotten)
        tasks.cancel_scope.cancel()


def _as_a_server_that_forgets(body: Message) -> tuple[Any, ...]:
    """Status, body and headers: it knows a conversation until it is asked for something."""
    answer = {"jsonrpc": "2.0", "id": body.get("id")}
    match body.get("method"):
        case "initialize":
            result = {
                "protocolVersion": body["params"]["protocolVersion"],
                "capabilities": {},
                "serverInfo": {"name": "s", "version": "1"},
            }
            told = json.dumps({**answer, "result": result}).encode()
            return "200 OK", told, "mcp-session-id: one"
        case "tools/call" if body["params"]["name"] == "plain":
            return "404 Not Found", b"gone"
        case "tools/call" if body["params"]["name"] == "told":
            error = {"code": -32001, "message": "Session not found"}
            return "404 Not Found", json.dumps({**answer, "error": error}).encode()
        case "tools/call":
            return "500 Oops", b"broken"
        case _:
            return "202 Accepted", b""


async def test_a_fault_of_ours_is_not_blamed_on_the_server(tmp_path: Path) -> None:
    with pytest.raises(BaseExceptionGroup):
        async with script(tmp_path):
            raise ZeroDivisionError
