"""The demo: the script, its server, the small client, and the whole play as a process."""

import http.client
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from bridge.cli import main
from bridge.core.wire import JsonObject
from bridge.demo import play
from bridge.demo.client import AgentFailed, Client
from bridge.demo.model import scripted_model
from bridge.demo.screen import Screen, changed_lines
from bridge.demo.script import MENDED, NOTES, PROMPT, Call, Part, Say, Think, answer
from bridge.demo.stream import events
from tests.fake_editor import agent_process

HOME = Path(__file__).parent.parent
DEMO = [sys.executable, "-I", str(HOME / "bridge" / "__main__.py"), "demo"]

# -- the script ----------------------------------------------------------------------------------


def request(*made: tuple[str, str], prompt: str = PROMPT, planning: bool = True) -> JsonObject:
    """A request with these calls and their outputs behind the prompt."""
    items: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": prompt}]}]
    for number, (name, output) in enumerate(made):
        items += [
            {"type": "function_call", "call_id": str(number), "name": name, "arguments": "{}"},
            {"type": "function_call_output", "call_id": str(number), "output": output},
        ]
    return {"input": items, "instructions": "plan mode" if planning else ""}


def says(parts: tuple[Part, ...]) -> str:
    """The name of the tool that is called, or the last words."""
    match parts[-1]:
        case Call(name=name):
            return name
        case Think(text=text) | Say(text=text):
            return text


SHELL = ("shell", "notes")
KEEP = ("exit_plan_mode", "Error: The user chose to keep planning; their feedback: hurry")
PLAN = ("exit_plan_mode", "Plan approved")
UNREAD = ("edit", "Error: read it first")
READ = ("read", "1: notes")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (request(), "shell"),
        (request(SHELL), "exit_plan_mode"),
        (request(SHELL, KEEP), "exit_plan_mode"),
        (request(SHELL, KEEP, KEEP, KEEP), "All right: I leave `notes.txt` as it is."),
        (request(SHELL, PLAN, planning=False), "edit"),
        (request(SHELL, planning=False), "edit"),
        (request(SHELL, PLAN, UNREAD, planning=False), "read"),
        (request(SHELL, PLAN, UNREAD, READ, planning=False), "edit"),
        (request(SHELL, PLAN, UNREAD, READ, ("edit", "ok")), "Done: line 2"),
        (request(SHELL, PLAN, UNREAD, READ, UNREAD), "`edit` answered “Error: read it first”."),
        (request(("shell", "Error: refused")), "`shell` answered “Error: refused”."),
        (request(*[SHELL] * 8), "I have called enough tools"),
        (request(prompt="hello"), "shell"),
        (request(("shell", "a\nb"), prompt="hello"), "That is what is here"),
        (request(("shell", "Error: no"), prompt="hello"), "That did not work, which is fine"),
        ({}, "shell"),
        ({"input": "hello"}, "shell"),
    ],
)
def test_the_script_answers_by_what_the_request_holds(body: JsonObject, expected: str) -> None:
    assert says(answer(body)).startswith(expected)


def test_the_script_begins_anew_with_each_prompt() -> None:
    earlier: Any = request(SHELL, PLAN, UNREAD, READ, ("edit", "ok"))
    later: Any = request()
    assert says(answer({"input": earlier["input"] + later["input"]})) == "shell"


def test_the_revised_plan_repeats_the_feedback() -> None:
    (*_, call) = answer(request(SHELL, KEEP))
    assert isinstance(call, Call)
    assert str(call.arguments["plan"]).endswith("can only repeat: hurry")


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "type", "content", "call_id", "name", "output", "text"]),
            inner | st.sampled_from(["user", "function_call", "function_call_output", "shell"]),
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(items=JSON, instructions=JSON)
def test_the_script_answers_whatever_it_is_sent(items: Any, instructions: Any) -> None:
    assert answer({"input": items, "instructions": instructions})


# -- the stream ----------------------------------------------------------------------------------

PARTS: tuple[Part, ...] = (Think("a  b\n\nc "), Say("x\n y“z”"), Call("shell", {"command": "ls é"}))


def test_the_events_are_those_of_the_api() -> None:
    event: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    for number, one in enumerate(events(PARTS, "m", 3)):
        assert event.validate_python(one).sequence_number == number


def test_the_pieces_are_the_whole() -> None:
    streamed = dict[str, str]()
    for one in events(PARTS, "m", 3):
        if "delta" in one:
            kind = str(one["type"])
            streamed[kind] = streamed.get(kind, "") + str(one["delta"])
    assert streamed == {
        "response.reasoning_summary_text.delta": "a  b\n\nc ",
        "response.output_text.delta": "x\n y“z”",
        "response.function_call_arguments.delta": '{"command": "ls é"}',
    }


def test_ids_differ_from_answer_to_answer() -> None:
    calls = [str(event["item"]) for number in (1, 2) for event in events(PARTS, "m", number)
             if event["type"] == "response.output_item.done"]  # fmt: skip
    assert len(set(calls)) == 2 * len(PARTS)


# -- the server ----------------------------------------------------------------------------------


def post(url: str, path: str, body: bytes, **headers: str) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    connection.request("POST", path, body, headers)
    answered = connection.getresponse()
    content = answered.read()
    connection.close()
    return answered.status, answered.getheader("content-type") or "", content


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with scripted_model() as url:
        yield url


def test_the_server_streams_to_the_end(url: str) -> None:
    status, kind, content = post(url, "/v1/responses", json.dumps(request()).encode())
    assert (status, kind) == (200, "text/event-stream; charset=utf-8")
    assert re.search(rb'event: response.completed\ndata: \{[^\n]*"shell"[^\n]*\}\n\n$', content)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/models", b"{}", 404),
        ("/v1/responses", b"[]", 400),
        ("/v1/responses", b"{", 400),
        ("/v1/responses?x=1", b"\xff", 400),
    ],
)
def test_the_server_refuses_what_is_no_request(
    path: str, body: bytes, status: int, url: str
) -> None:
    answered = post(url, path, body)
    assert answered[0] == status
    assert json.loads(answered[2])["error"]["message"]


def test_the_server_refuses_a_length_that_is_none(url: str) -> None:
    for length in ("x", "-1", str(1 << 40)):
        with socket.create_connection((str(urlsplit(url).hostname), urlsplit(url).port or 0)) as to:
            to.sendall(f"POST /v1/responses HTTP/1.1\r\ncontent-length: {length}\r\n\r\n".encode())
            assert b" 400 " in to.makefile("rb").readline()


def test_the_server_ends_while_it_still_talks() -> None:
    with scripted_model(pace=60) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
        connection.request("POST", "/v1/responses", b"{}")
        answered = connection.getresponse()
        assert answered.readline() == b"event: response.created\n"
    assert b"response.completed" not in answered.read()
    connection.close()


# -- the screen ----------------------------------------------------------------------------------


def chunk(kind: str, text: str) -> dict[str, Any]:
    return {"sessionUpdate": f"agent_{kind}_chunk", "content": {"type": "text", "text": text}}


def call(status: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "1",
        "status": status,
        "content": list(content),
        **more,
    }


def block(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


ANNOUNCED = call("pending", sessionUpdate="tool_call", title="cat x", kind="execute")
DIFF = {"type": "diff", "path": "/w/a.txt", "oldText": "a\nb\n", "newText": "a\nc\n"}


def shown(*updates: dict[str, Any], colour: bool = False) -> str:
    pieces: list[str] = []
    screen = Screen(pieces.append, colour=colour, folder="/w")
    for update in updates:
        screen.update(update)
    screen.end()
    return "".join(pieces)


@pytest.mark.parametrize(
    ("updates", "expected"),
    [
        ([chunk("message", "a "), chunk("message", "b")], "a b\n"),
        ([chunk("thought", "a"), chunk("message", "b")], "thinking: a\n\nb\n"),
        ([chunk("message", "a\x1b[31m\u202eb\x07")], "a�[31m�b�\n"),
        ([ANNOUNCED, call("completed", block("```console\nout\n```"))],
         "● cat x\n    out\n  ✓ completed: cat x\n"),
        ([ANNOUNCED, call("in_progress", block("x")), call("failed", block("/w/a: no"))],
         "● cat x\n    a: no\n  ✗ failed: cat x\n"),
        ([ANNOUNCED, call("completed", DIFF)],
         "● cat x\n    a.txt\n    @@ -1,2 +1,2 @@\n     a\n    -b\n    +c\n  ✓ completed: cat x\n"),
        ([ANNOUNCED, call("completed", {**DIFF, "oldText": None}, {"type": "terminal"})],
         "● cat x\n    a.txt\n    @@ -0,0 +1,2 @@\n    +a\n    +c\n  ✓ completed: cat x\n"),
        ([{**ANNOUNCED, "kind": "other", "content": [block("# Plan")]}], "● cat x\n    # Plan\n"),
        ([ANNOUNCED, call("completed", block("x\n" * 42))],
         "● cat x\n" + "    x\n" * 40 + "    … 2 more lines\n  ✓ completed: cat x\n"),
        ([{"sessionUpdate": "current_mode_update", "currentModeId": "plan"}], "  [mode: plan]\n"),
        ([{"sessionUpdate": "usage_update"}, {}], ""),
    ],
)  # fmt: skip
def test_updates_are_shown_for_a_person(updates: list[dict[str, Any]], expected: str) -> None:
    assert shown(*updates) == expected


def test_colours_tell_thoughts_and_changes_apart() -> None:
    assert shown(chunk("thought", "a"), chunk("message", "b"), colour=True) == (
        "\x1b[2ma\x1b[0m\n\nb\n"
    )
    coloured = shown(ANNOUNCED, call("completed", DIFF), colour=True)
    assert "\x1b[31m    -b\x1b[0m\n" in coloured
    assert "\x1b[32m    +c\x1b[0m\n" in coloured


def test_a_line_that_looks_like_a_heading_is_still_a_change() -> None:
    assert list(changed_lines("-- a\n", "++ b\n")) == ["@@ -1 +1 @@", "--- a", "+++ b"]


# -- the client ----------------------------------------------------------------------------------

FAKE = """
import json, sys
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def take(): return json.loads(sys.stdin.readline())
send(id=take()["id"], result={"protocolVersion": 1})
send(id=take()["id"], result={"sessionId": "s"})
send(id=take()["id"], result={})
prompt = take()["id"]
"""


@contextmanager
def client(script: str, *answers: str, begin: str = FAKE) -> Generator[tuple[Client, list[str]]]:
    """The client with an agent that runs this script once it has a prompt; and what is shown."""
    pieces: list[str] = []
    screen = Screen(pieces.append, colour=False, folder="/w")
    left = list(answers)
    command = [sys.executable, "-c", begin + script]
    with Client(command, os.environ, screen, lambda _: left.pop(0), patience=5) as opened:
        yield opened, pieces


ASK = """
send(id="x", method="{}", params={})
send(method="session/update", params={{"update": {{"sessionUpdate": "agent_message_chunk",
     "content": {{"type": "text", "text": json.dumps(take())}}}}}})
send(id=prompt, result={{"stopReason": "end_turn"}})
"""
FORM: dict[str, Any] = {
    "message": "Well?\n\nplan",
    "requestedSchema": {"properties": {"choice": {}, "custom": {}}},
}
PERMISSION: dict[str, Any] = {
    "toolCall": {"title": "rm"},
    "options": [
        {"optionId": "a", "kind": "allow_once"},
        {"optionId": "r", "kind": "reject_once"},
    ],
}


@pytest.mark.parametrize(
    ("method", "params", "said", "expected"),
    [
        ("elicitation/create", FORM, "yes", {"action": "accept", "content": {"choice": "Approve"}}),
        ("elicitation/create", FORM, "no",
         {"action": "accept", "content": {"choice": "Keep planning"}}),
        ("elicitation/create", FORM, "be quick",
         {"action": "accept", "content": {"custom": "be quick"}}),
        ("elicitation/create", {}, "", {"action": "decline"}),
        ("session/request_permission", PERMISSION, "yes",
         {"outcome": {"outcome": "selected", "optionId": "a"}}),
        ("session/request_permission", PERMISSION, "no",
         {"outcome": {"outcome": "selected", "optionId": "r"}}),
        ("session/request_permission", {}, "yes", {"outcome": {"outcome": "cancelled"}}),
    ],
)  # fmt: skip
def test_what_the_agent_asks_is_put_to_the_person(
    method: str, params: dict[str, Any], said: str, expected: dict[str, Any]
) -> None:
    with client(ASK.format(method, repr(params)), said) as (opened, pieces):
        opened.open("/w", "plan")
        assert opened.prompt("hello") == "end_turn"
    answered = json.loads("".join(pieces))
    assert (answered["id"], answered["result"]) == ("x", expected)


def test_what_the_client_cannot_do_is_refused() -> None:
    with client(ASK.format("fs/read_text_file", "{}")) as (opened, pieces):
        opened.open("/w", "plan")
        opened.prompt("hello")
    assert json.loads("".join(pieces))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("begin", "script", "expected"),
    [
        ("", "", "ended before the conversation did"),
        ("import sys; sys.stdin.readline()", "", "ended before the conversation did"),
        ("print('oops', flush=True)", "", "not JSON"),
        (FAKE.replace('Version": 1', 'Version": 2'), "", "another version"),
        (FAKE, "send(id=prompt, error={'code': -32603, 'message': 'no model'})", "no model"),
    ],
)
def test_an_agent_that_fails_is_told_of(begin: str, script: str, expected: str) -> None:
    def converse() -> None:
        with client(script, begin=begin) as (opened, _):
            opened.open("/w", "plan")
            opened.prompt("hello")

    with pytest.raises(AgentFailed, match=expected):
        converse()


def test_an_agent_that_is_silent_is_given_up_and_ended() -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    screen = Screen(lambda _: None, colour=False, folder="/w")
    with (
        pytest.raises(AgentFailed, match="silent"),
        Client(command, os.environ, screen, lambda _: "", patience=0.01) as opened,
    ):
        opened.open("/w", "plan")


# -- the whole play ------------------------------------------------------------------------------

ENVIRONMENT = {"PATH": os.environ["PATH"], "TERM": "xterm"}


def test_the_demo_plays_to_its_end_in_a_pipe(tmp_path: Path) -> None:
    run = subprocess.run(
        DEMO,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**ENVIRONMENT, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        cwd=tmp_path,
        timeout=30,
    )
    text = run.stdout.decode()
    assert (run.returncode, run.stderr) == (0, b"")
    assert "\x1b" not in text
    order = [
        'helo wrold"',
        "[mode: plan]",
        "thinking:",
        "● cat notes.txt",
        "✓ completed: cat notes.txt",
        "# Mend the typo in notes.txt",
        "Approve this plan and leave plan mode?",
        "[mode: default]",
        "✗ failed: Edit notes.txt",
        "✓ completed: Read notes.txt",
        "-- the start page",
        "+- the start page",
        "✓ completed: Edit notes.txt",
        "Done:",
        'hello world"',
        "config.toml",
        "setup zed --write",
    ]
    place = 0
    for part in order:
        place = text.index(part, place) + len(part)
    assert list(tmp_path.iterdir()) == [], "nothing is left, and nothing of the user's was touched"


def test_the_command_plays_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--yes"]) == 0
    assert "yes (nobody is asked)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("reason", "notes", "agreed", "expected"),
    [
        ("refusal", MENDED, True, "the turn ended with refusal"),
        ("end_turn", NOTES, True, "does not hold what was agreed on"),
        ("end_turn", b"", False, "does not hold what was agreed on"),
    ],
)
def test_a_play_that_went_wrong_is_told_of(
    reason: str, notes: bytes, agreed: bool, expected: str
) -> None:
    with pytest.raises(AgentFailed, match=expected):
        play.check(reason, notes, agreed=agreed)


class Terminal:
    """The demo on a terminal, with a person who types."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            DEMO,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**ENVIRONMENT, "TMPDIR": str(folder), "HOME": str(folder), **environment},
            start_new_session=True,
        )
        os.close(slave)
        self.text = ""
        self.place = 0

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.master)

    def until(self, wanted: str) -> None:
        """Read on until this has been shown, behind what was waited for before."""
        while wanted not in self.text[self.place :]:
            assert self._read(), self.text
        self.place = self.text.index(wanted, self.place) + len(wanted)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode() + b"\n")

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return self.process.wait(10)

    def _read(self) -> bool:
        assert select.select([self.master], [], [], 20)[0], "the demo hangs"
        try:
            data = os.read(self.master, 65536)
        except OSError:  # Linux, pty(7): EIO once the other end is closed
            data = b""
        self.text += data.decode("utf-8", "replace")
        return bool(data)


QUESTION = "say what to change:"


@pytest.mark.slow
def test_a_person_decides_on_the_plan(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.until(QUESTION)
        terminal.type("n")
        terminal.until(QUESTION)
        terminal.type("and be quick")
        terminal.until("can only repeat: and be quick")
        terminal.until(QUESTION)
        terminal.type("y")
        assert terminal.end() == 0
        assert "\x1b[2m" in terminal.text
        assert "Done: " in re.sub(r"\x1b\[[0-9;]*m", "", terminal.text)


@pytest.mark.slow
def test_a_person_may_refuse_for_good(tmp_path: Path) -> None:
    with Terminal(tmp_path, NO_COLOR="1") as terminal:
        for _ in range(3):
            terminal.until(QUESTION)
            terminal.type("no way" if _ else "")
        assert terminal.end() == 0
        assert "I leave" in terminal.text
        assert "hello world" not in terminal.text.partition("The file now")[2]
        assert "\x1b[" not in terminal.text


@pytest.mark.slow
def test_an_interrupt_ends_the_demo_without_a_trace(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.until(QUESTION)
        os.kill(terminal.process.pid, signal.SIGINT)
        assert terminal.end() == 1
        assert terminal.text.endswith("responses-acp demo: stopped\r\n")
        assert "Traceback" not in terminal.text
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_demo_fails_with_its_agent(tmp_path: Path) -> None:
    children = Path("/proc/self/task")
    if not children.exists():
        pytest.skip("the agent's process id is looked up in /proc")
    with Terminal(tmp_path) as terminal:
        terminal.until(QUESTION)
        demo = terminal.process.pid
        for child in Path(f"/proc/{demo}/task/{demo}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        terminal.type("y")
        assert terminal.end() == 1
        assert "the agent ended before the conversation did" in terminal.text


# -- the agent for an editor ---------------------------------------------------------------------


def left_in(folder: Path) -> list[Path]:
    return list(folder.glob("responses-acp-*"))


@pytest.mark.anyio
async def test_an_editor_can_try_the_agent_with_the_scripted_model(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    with anyio.fail_after(30):
        async with agent_process([*DEMO, "--agent"], env=environment, cwd=tmp_path) as agent:
            await agent.editor.initialize()
            session = await agent.editor.new_session(tmp_path / "work")
            started = await agent.editor.begin(
                "session/prompt",
                {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]},
            )
            await agent.editor.update("agent_thought_chunk")
            await agent.editor.notify("session/cancel", {"sessionId": session})
            assert await agent.editor.result(started) == {"stopReason": "cancelled"}
            await agent.editor.request(
                "session/set_config_option",
                {"sessionId": session, "configId": "permission", "value": "danger-full-access"},
            )
            assert await agent.editor.prompt(session, "hello") == "end_turn"
            assert "That is what is here" in agent.editor.text()
            assert await agent.end() == 0
            assert agent.stderr == b""
    assert left_in(tmp_path) == []


@pytest.mark.anyio
async def test_the_agent_of_the_demo_ends_on_a_signal(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    with anyio.fail_after(30):
        async with agent_process([*DEMO, "--agent"], env=environment, cwd=tmp_path) as agent:
            await agent.editor.initialize()
            os.kill(agent.pid, signal.SIGTERM)
            await agent.editor.end()
            assert await agent.end() == 0
    assert left_in(tmp_path) == []
