"""Conversations with the real agent: what editors, models and configurations do wrong, what is
allowed to whom, and what must never be told."""

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent_process import KEY, Machine, Request, begin_prompt, cancel, machine
from tests.fake_editor import Editor, Refused, choose, fill
from tests.laws import Message
from tests.pictures import PNG

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs bash"),
]


async def check_prompt(here: Machine, editor: Editor, session: str) -> None:
    """The session goes on: a prompt is answered."""
    call = await begin_prompt(editor, session)
    await (await here.model.request()).answer()
    assert (await editor.result(call))["stopReason"] == "end_turn"


async def one_call(
    here: Machine, editor: Editor, session: str, tool: str, /, **arguments: Any
) -> str:
    """A turn with one call of the model's; gives what the model was told of it."""
    call = await begin_prompt(editor, session)
    request = await here.model.request()
    await request.ask_for(f"call_{len(here.model.requests)}", tool, **arguments)
    request = await here.model.request()
    await request.answer()
    assert (await editor.result(call))["stopReason"] == "end_turn"
    return request.input[-1]["output"]


# -- an editor that sends nonsense -----------------------------------------------------------------

NONSENSE: tuple[tuple[bytes, int | None], ...] = (
    (b"", None),
    (b" \t\r", None),
    (b"nope", -32700),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/list"', -32700),
    (b'{"jsonrpc":"2.0","id":7,"method":"\xff"}', -32700),
    (b"\xef\xbb\xbf{}", -32700),
    (b"\0", -32700),
    (b"[" * 100_000, -32700),
    (b'{"a":' * 5000 + b"1" + b"}" * 5000, -32700),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"session/list"}', -32700),
    (b"x" * (65 * 1024 * 1024), -32700),
    (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":7,"method":"session/list"}]', -32600),
    (b'"text"', -32600),
    (b"12", -32600),
    (b"null", -32600),
    (b"{}", -32600),
    (b'{"jsonrpc":"1.0","id":7,"method":"session/list"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"session/list"}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"session/list"}', -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":5}', -32600),
    # Answers and notifications are never answered.
    (b'{"jsonrpc":"2.0","id":99,"result":{}}', None),
    (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}', None),
    (b'{"jsonrpc":"2.0","id":99,"error":5}', None),
    (b'{"jsonrpc":"2.0","method":"no/such"}', None),
    (b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":5}}', None),
    (b'{"jsonrpc":"2.0","method":"session/cancel","params":[]}', None),
    (b'{"jsonrpc":"2.0","method":"session/cancel"}', None),
    (b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[]}}', None),
)

WRONG: tuple[tuple[str, Any, int], ...] = (
    ("no/such", {}, -32601),
    ("session/list", [], -32602),
    ("session/list", {"cursor": 5}, -32602),
    ("session/new", {}, -32602),
    ("session/new", {"cwd": 5, "mcpServers": []}, -32602),
    ("session/new", {"cwd": "relative", "mcpServers": []}, -32602),
    ("session/new", {"cwd": "/no/such/folder", "mcpServers": []}, -32602),
    ("session/load", {"sessionId": "unknown", "cwd": "/", "mcpServers": []}, -32002),
    ("session/load", {"sessionId": "../../etc", "cwd": "/", "mcpServers": []}, -32002),
    ("session/prompt", {}, -32602),
    ("session/prompt", {"sessionId": "unknown", "prompt": []}, -32002),
    ("session/prompt", {"sessionId": "<session>", "prompt": []}, -32602),
    ("session/prompt", {"sessionId": "<session>", "prompt": 5}, -32602),
    ("session/prompt", {"sessionId": "<session>", "prompt": [5]}, -32602),
    ("session/prompt", {"sessionId": "<session>", "prompt": [{"type": "text"}]}, -32602),
    ("session/prompt", {"sessionId": "<session>", "prompt": [{"type": "smell"}]}, -32602),
    (
        "session/prompt",
        {"sessionId": "<session>", "prompt": [{"type": "text", "text": "  "}]},
        -32602,
    ),
    ("session/set_mode", {"sessionId": "<session>", "modeId": "yolo"}, -32602),
    ("session/set_mode", {"sessionId": "unknown", "modeId": "plan"}, -32002),
    (
        "session/set_config_option",
        {"sessionId": "<session>", "configId": "mode", "value": 5},
        -32602,
    ),
)


async def check_nonsense(editor: Editor, line: bytes, code: int | None) -> None:
    before = len(editor.received)
    await editor.write(line + b"\n")
    await editor.request("session/list")
    nameless = [one for one in editor.received[before:] if one.get("id", 0) is None]
    expected = [] if code is None else [code]
    assert [one["error"]["code"] for one in nameless] == expected, line[:80]


async def check_wrong(editor: Editor, session: str, method: str, params: Any, code: int) -> None:
    with pytest.raises(Refused) as refused:
        await editor.request(method, json.loads(json.dumps(params).replace("<session>", session)))
    assert refused.value.code == code, (method, params)
    if code == -32002:
        assert refused.value.error["data"]["sessionId"] == params["sessionId"]


async def test_nonsense_from_the_editor_is_answered_once_and_changes_nothing(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as here, here.agent() as agent:
        editor = agent.editor
        session = await editor.new_session(here.workspace)
        call = await begin_prompt(editor, session)
        request = await here.model.request()
        for number, (line, code) in enumerate(NONSENSE):
            await request.say(f"{number} ")
            await check_nonsense(editor, line, code)
        for method, params, code in WRONG:
            await check_wrong(editor, session, method, params, code)
        await request.complete()
        assert (await editor.result(call))["stopReason"] == "end_turn"
        assert editor.text() == "".join(f"{number} " for number in range(len(NONSENSE)))
        await check_prompt(here, editor, session)
        assert here.log().count("ignored a notification") == here.log().count("\n")


async def test_bytes_may_be_cut_and_joined_anywhere(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent(greet=False) as agent:
        editor = agent.editor
        for character in b'{"jsonrpc":"2.0","id":"a","method":"initialize","params":':
            await editor.write(bytes([character]))
        editor.laws.sent({"id": "a", "method": "initialize", "params": {}})
        for call in ("b", "c"):
            editor.laws.sent({"id": call, "method": "session/list"})
        await editor.write(
            b'{"protocolVersion":1}}\r\n\r\n{"jsonrpc":"2.0","id":"b","method":"session/list"}\n'
            b' {"params":null,"method":"session/list","id":"c","jsonrpc":"2.0","more":1} \n{"jso'
        )
        assert [await editor.result(call) for call in "bc"] == [{"sessions": []}] * 2
        editor.laws.sent({"id": "d", "method": "session/list"})
        # The last line has no end: it counts all the same when the input ends.
        await editor.write(b'nrpc":"2.0","id":"d","method":"session/list"}')


# -- a model's server that fails, and answers that are odd ----------------------------------------


async def runs_nothing(request: Request) -> None:
    """A call that must not run, since its answer does not end as completed."""
    await request.call(f"c{len(request.input)}", "write", file_path="ran", content="")


async def cut_before_anything(request: Request) -> None:
    await request.cut()


async def cut_after_the_head(request: Request) -> None:
    await request.raw(b"")
    await request.cut()


async def cut_in_a_text(request: Request) -> None:
    await request.say("Half an ans")
    await request.cut()


async def cut_after_a_call(request: Request) -> None:
    await runs_nothing(request)
    await request.cut()


async def closed_after_a_call(request: Request) -> None:
    await runs_nothing(request)
    await request.close()


async def done_without_an_end(request: Request) -> None:
    await runs_nothing(request)
    await request.raw(b"data: [DONE]\n\n")
    await request.close()


async def failed_after_a_call(request: Request) -> None:
    await runs_nothing(request)
    await request.complete("failed", error={"code": "server_error", "message": "boom"})


async def error_after_a_call(request: Request) -> None:
    await runs_nothing(request)
    await request.event("error", code="rate_limit_exceeded", message="slow down")
    await request.close()


async def cut_off_with_a_call(request: Request) -> None:
    await runs_nothing(request)
    await request.complete("incomplete", incomplete_details={"reason": "max_output_tokens"})


async def nothing_at_all(request: Request) -> None:
    await request.close()


async def no_stream(request: Request) -> None:
    await request.refuse("200 OK", b"<html>Log in, please</html>", kind="text/html")


async def unauthorized(request: Request) -> None:
    error = {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}
    await request.refuse("401 Unauthorized", json.dumps({"error": error}).encode())


async def too_long(request: Request) -> None:
    error = {"message": "too many tokens", "code": "context_length_exceeded"}
    await request.refuse("400 Bad Request", json.dumps({"error": error}).encode())


async def overloaded(request: Request) -> None:
    await request.refuse("503 Service Unavailable", b"busy", "retry-after: 7", kind="text/plain")


async def moved(request: Request) -> None:
    await request.refuse("301 Moved Permanently", b"", f"location: http://example.invalid/?{KEY}")


FAILURES: tuple[tuple[Callable[[Request], Awaitable[None]], int, Message], ...] = (
    (too_long, -32603, {"kind": "context_too_long", "status": 400}),
    (cut_before_anything, -32603, {"kind": "unreachable"}),
    (cut_after_the_head, -32603, {"kind": "stream_truncated"}),
    (cut_in_a_text, -32603, {"kind": "stream_truncated"}),
    (cut_after_a_call, -32603, {"kind": "stream_truncated"}),
    (closed_after_a_call, -32603, {"kind": "stream_truncated"}),
    (done_without_an_end, -32603, {"kind": "stream_truncated"}),
    (nothing_at_all, -32603, {"kind": "stream_truncated"}),
    (failed_after_a_call, -32603, {"kind": "server_error", "code": "server_error"}),
    (error_after_a_call, -32603, {"kind": "rate_limit", "code": "rate_limit_exceeded"}),
    (no_stream, -32603, {"kind": "bad_stream"}),
    (unauthorized, -32000, {"kind": "auth", "status": 401, "code": "invalid_api_key"}),
    (overloaded, -32603, {"kind": "overloaded", "status": 503, "retryAfter": 7}),
    (moved, -32603, {"kind": "bad_request"}),
)


async def test_a_server_that_fails_is_a_clear_error_and_runs_no_tool(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent() as agent:
        here.model.conversations.forgets = True  # what is too long does not stay
        editor = agent.editor
        session = await editor.new_session(here.workspace)
        for failure, code, data in FAILURES:
            call = await begin_prompt(editor, session, failure.__name__)
            await failure(await here.model.request())
            with pytest.raises(Refused) as refused:
                await editor.result(call)
            error = refused.value.error
            assert (error["code"], {**error["data"], **data}) == (code, error["data"]), error
            assert len(error["message"]) > 30, error
            assert "{" not in error["message"], error
            await check_prompt(here, editor, session)
        assert list(here.workspace.iterdir()) == []
        kept = json.dumps(here.model.requests[-1].input)
        assert "Half an ans" not in kept
        assert "cut_in_a_text" in kept
        assert here.log() == ""


async def test_an_answer_that_was_cut_off_runs_no_tool(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent() as agent:
        session = await agent.editor.new_session(here.workspace)
        call = await begin_prompt(agent.editor, session)
        await cut_off_with_a_call(await here.model.request())
        assert (await agent.editor.result(call))["stopReason"] == "max_tokens"
        await check_prompt(here, agent.editor, session)
        assert "cut off" in json.dumps(here.model.requests[-1].input)
        assert list(here.workspace.iterdir()) == []


# -- a configuration that is wrong -----------------------------------------------------------------


async def refusal(editor: Editor, here: Machine) -> Message:
    with pytest.raises(Refused) as refused:
        await editor.new_session(here.workspace)
    assert refused.value.code == -32603
    assert refused.value.error["data"]["kind"] == "config"
    return refused.value.error


async def test_a_wrong_configuration_is_told_with_its_place_and_read_again(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        right = here.config.read_text(encoding="utf-8")
        here.config.unlink()
        async with here.agent() as agent:
            for text, place in (
                (None, f"{here.config}: "),
                (f"{right}\nnot toml", f"{here.config}:"),
                (right.replace("max_retries", "max_retrys"), f"{here.config}:5: "),
                (right.replace("= 0", "= -1"), f"{here.config}:5: "),
            ):
                if text is not None:
                    here.config.write_text(text, encoding="utf-8")
                assert place in (await refusal(agent.editor, here))["message"]
            here.config.write_text(right, encoding="utf-8")
            session = await agent.editor.new_session(here.workspace)
            await check_prompt(here, agent.editor, session)


async def test_without_any_configuration_a_prompt_says_what_to_do(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        here.config.unlink()
        async with here.agent(configured=False) as agent:
            session = await agent.editor.new_session(here.workspace)
            for _ in range(2):
                with pytest.raises(Refused, match="OPENAI_API_KEY") as refused:
                    await agent.editor.prompt(session, "Hello")
                assert refused.value.code == -32000


# -- who may do what -------------------------------------------------------------------------------


async def set_option(editor: Editor, session: str, option: str, value: str) -> None:
    params = {"sessionId": session, "configId": option, "value": value}
    await editor.request("session/set_config_option", params)


def questions(editor: Editor) -> list[str]:
    """The titles of the calls that were asked about."""
    asked = (one for one in editor.received if one.get("method") == "session/request_permission")
    return [one["params"]["toolCall"]["title"] for one in asked]


async def test_nothing_is_changed_in_plan_mode(tmp_path: Path) -> None:
    async with (
        machine(tmp_path, settings={"default_mode": "plan"}) as here,
        here.agent(elicitation={"form": {}}) as agent,
    ):
        editor = agent.editor
        editor.answers["session/request_permission"] = choose("reject_once")
        session = await editor.new_session(here.workspace)
        (here.workspace / "old").write_text("old\n", encoding="utf-8")

        async def told(tool: str, /, **arguments: Any) -> str:
            return await one_call(here, editor, session, tool, **arguments)

        assert "old" in await told("read", file_path="old")
        edit = {"file_path": "old", "old_string": "old", "new_string": "new"}
        assert "plan mode" in await told("edit", **edit)
        assert "plan mode" in await told("write", file_path="new", content="")
        assert await told("shell", command="cat old", description="Looks.") == "old\n"
        assert questions(editor) == []
        assert "declined" in await told("shell", command="touch new", description="Makes.")
        assert questions(editor) == ["touch new"]
        editor.answers["elicitation/create"] = fill(choice="Approve", custom="not yet")
        assert "not yet" in await told("exit_plan_mode", plan="# Plan")
        assert "plan mode" in await told("write", file_path="new", content="")
        assert [path.name for path in here.workspace.iterdir()] == ["old"]
        assert all("plan mode" in one.body["instructions"] for one in here.model.requests)

        editor.answers["elicitation/create"] = fill(choice="Approve")
        assert "approved" in await told("exit_plan_mode", plan="# Plan")
        assert "created" in (await told("write", file_path="new", content="")).lower()
        assert "plan mode" not in here.model.requests[-1].body["instructions"]
        assert (here.workspace / "old").read_text(encoding="utf-8") == "old\n"


CALLS: tuple[tuple[str, Message], ...] = (
    ("read", {"file_path": "inside"}),
    ("read", {"file_path": "<outside>"}),
    ("write", {"file_path": "inside", "content": "w"}),
    ("write", {"file_path": "<outside>.new", "content": "w"}),
    ("write", {"file_path": ".git/hooks/pre-commit", "content": "w"}),
    ("shell", {"command": "echo ran > ran", "description": "Makes."}),
)
"""One of each kind, in the order of the letters in ASKS."""

ASKS: dict[str, str] = {
    "ask": "-rwwws",
    "workspace-write": "-r-wws",
    "danger-full-access": "------",
}
"""By preset: which of CALLS ask."""


async def test_a_preset_asks_for_what_it_does_not_allow(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent() as agent:
        editor = agent.editor
        editor.answers["session/request_permission"] = choose("reject_once")
        (here.workspace / "inside").write_text("i\n", encoding="utf-8")
        outside = here.folder / "outside"
        for preset, asks in ASKS.items():
            session = await editor.new_session(here.workspace)
            await set_option(editor, session, "permission", preset)
            outside.write_text("o\n", encoding="utf-8")
            asked = ""
            for tool, arguments in CALLS:
                before = len(questions(editor))
                given = json.loads(json.dumps(arguments).replace("<outside>", str(outside)))
                told = await one_call(here, editor, session, tool, **given)
                is_asked = len(questions(editor)) > before
                assert ("declined" in told) is is_asked
                asked += tool[0] if is_asked else "-"
            assert asked == asks, preset
            assert (here.workspace / "ran").exists() is (preset == "danger-full-access")


async def test_a_lasting_permission_holds_for_its_command_and_session_alone(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path, settings={"permission": "ask"}) as here, here.agent() as agent:
        editor = agent.editor
        editor.answers["session/request_permission"] = choose("allow_always")
        one, other = [await editor.new_session(here.workspace) for _ in range(2)]
        asked = 0
        for session, command, asks in (
            (one, "echo a >> log", True),
            (one, "echo a >> log", False),
            (one, "echo b >> log", True),
            (other, "echo a >> log", True),
            (one, "echo b >> log", False),
        ):
            await one_call(here, editor, session, "shell", command=command, description="Logs.")
            asked += asks
            assert len(questions(editor)) == asked, (command, asks)
        assert (here.workspace / "log").read_text(encoding="utf-8") == "a\na\nb\na\nb\n"


async def test_only_a_clear_yes_allows(tmp_path: Path) -> None:
    async with machine(tmp_path, settings={"permission": "ask"}) as here, here.agent() as agent:
        editor = agent.editor
        session = await editor.new_session(here.workspace)
        allow = {"outcome": "selected", "optionId": "allow_once"}
        for answer in (
            {"outcome": {"outcome": "cancelled"}},
            {"outcome": {"outcome": "selected", "optionId": "made-up"}},
            {"outcome": {"outcome": "cancelled", "optionId": "allow_once"}},
            {"outcome": "selected", "optionId": "allow_once"},
            {"outcome": [allow]},
            allow,
            {},
        ):
            editor.answers["session/request_permission"] = lambda _, answer=answer: answer
            told = await one_call(here, editor, session, "write", file_path="no", content="")
            assert "declined" in told, answer
        del editor.answers["session/request_permission"]  # now it answers with an error
        assert "declined" in await one_call(
            here, editor, session, "write", file_path="no", content=""
        )
        assert list(here.workspace.iterdir()) == []


# -- what must not be told -------------------------------------------------------------------------


async def test_no_secret_leaves_the_environment(tmp_path: Path) -> None:
    """That none stands in lines, stderr and state is checked where every agent ends."""
    async with machine(tmp_path) as here:
        here.secrets += ["hidden-token-value", "mcp-secret-value", "mcp-header-value"]
        environment = {**here.environment, "SOME_TOKEN": "hidden-token-value"}
        server = {
            "name": "s",
            "command": "/no/such/server",
            "args": [],
            "env": [{"name": "MCP_KEY", "value": "mcp-secret-value"}],
        }
        remote = {
            "type": "http",
            "name": "r",
            "url": "http://127.0.0.1:9/",
            "headers": [{"name": "Authorization", "value": "mcp-header-value"}],
        }
        async with here.agent(env=environment) as agent:
            editor = agent.editor
            params: Message = {"cwd": str(here.workspace), "mcpServers": [server, remote]}
            session = (await editor.request("session/new", params))["sessionId"]
            told = await one_call(here, editor, session, "shell", command="env", description="E.")
            assert "PATH=" in told
            assert "TOKEN" not in told
            call = await begin_prompt(editor, session)
            await unauthorized(await here.model.request())
            with pytest.raises(Refused):
                await editor.result(call)
            heads = [request.head for request in here.model.requests]
            assert all(
                f"authorization: Bearer {KEY}\r\n" in head.replace("A", "a") for head in heads
            )
            for request in here.model.requests:
                assert not any(one in json.dumps(request.body) for one in here.secrets)


async def test_an_image_for_a_model_without_images_is_refused_before_any_request(
    tmp_path: Path,
) -> None:
    models: dict[str, Message] = {"blind": {}, "seeing": {"images": True}}
    async with machine(tmp_path, models=models) as here, here.agent() as agent:
        editor = agent.editor
        session = await editor.new_session(here.workspace)
        image = {"type": "image", "mimeType": "image/png", "data": PNG}
        params: Message = {"sessionId": session, "prompt": [image]}
        with pytest.raises(Refused, match="image") as refused:
            await editor.request("session/prompt", params)
        assert refused.value.code == -32602
        assert here.model.requests == []
        await set_option(editor, session, "model", '["p","seeing"]')
        call = await editor.begin("session/prompt", params)
        request = await here.model.request()
        (content,) = request.input[-1]["content"]
        assert content["image_url"] == f"data:image/png;base64,{PNG}"
        await request.answer()
        await editor.result(call)
        # The conversation goes on with the model that cannot take what is in it.
        await set_option(editor, session, "model", '["p","blind"]')
        await check_prompt(here, editor, session)
        await cancel(editor, session)
