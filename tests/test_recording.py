"""The file of a recording: who may read it, what is in it, and above all what is not."""

import errno
import json
import logging
import os
import stat
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from bridge.core.recorded import Lines
from bridge.recording import Recording, begin
from bridge.replay.read import read
from tests.fake_editor import choose
from tests.fake_responses import FakeResponses, Reply, called, said, stream, thought
from tests.stage import stage

pytestmark = pytest.mark.anyio

Line = dict[str, Any]

OWN = "quite-plain-words-0123"
"""A key that looks like nothing: only its being loaded tells."""
HEADER, SERVER_ENV, PRINTED = "header-words-4567", "server-words-8901", "printed-words-2345"
SHAPED = "sk-abcdefghijklmnop12345678"
SECRETS = (OWN, HEADER, SERVER_ENV, PRINTED, SHAPED)


def spoken(text: str) -> Any:
    return said(f"It is {text}, is it?")


async def test_no_secret_gets_into_the_file_wherever_it_stands(tmp_path: Path) -> None:
    everything = " ".join(SECRETS)
    arguments = json.dumps({"file_path": f"{OWN}.txt"})
    refusal = json.dumps({"error": {"message": f"Wrong key {OWN}"}}).encode()
    model = FakeResponses(
        stream(thought(everything), spoken(everything), called("c1", "read", arguments)),
        stream(called("c2", "shell", json.dumps({"command": f"echo {OWN}", "description": OWN}))),
        stream(spoken(OWN)),
        Reply([refusal], 400, {"content-type": "application/json", "x-request-id": HEADER}),
    )
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / f"{OWN}.txt").write_text(everything, encoding="utf-8")
    (tmp_path / "ws" / "AGENTS.md").write_text(everything, encoding="utf-8")
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Work.", encoding="utf-8")
    file = tmp_path / "recording.jsonl"
    recording = begin(str(file))
    provider = {"api_key_env": "KEY", "headers": {"x-words": HEADER}, "max_retries": 0}
    with anyio.fail_after(20):
        async with stage(
            tmp_path,
            model,
            provider=provider,
            settings={"system_prompt_file": str(prompt)},
            top={"permission": "ask", "mcp": {"s": {"command": "/none", "env": {"A": SERVER_ENV}}}},
            can={"_meta": {"terminal_output": True}},
            recording=recording,
            environment={"KEY": OWN, "PATH": "/usr/bin:/bin"},
        ) as on:
            recording.hide((PRINTED,))
            on.editor.answers["session/request_permission"] = choose("allow_once")
            await on.prompt(f"Look for {everything}.")
            await on.prompt(f"And {OWN}?")
            pairs = [{"name": "A", "value": "fresh-words-6789"}]
            server = {"name": "t", "command": "/none", "args": [], "env": pairs}
            params = {"cwd": str(on.workspace), "mcpServers": [server]}
            await on.editor.request("session/new", params)
    assert read(str(file))[0]["config"].providers["p"].headers == {"x-words": HIDDEN}
    text = file.read_text(encoding="ascii")
    assert [secret for secret in (*SECRETS, "fresh-words-6789") if secret in text] == []
    # Nor in pieces that follow each other.
    lines = [json.loads(row) for row in text.splitlines()]
    texts = "".join(line.get("event", {}).get("delta", "") for line in lines)
    texts += "".join(chunk(line) for line in lines)
    assert [secret for secret in SECRETS if secret in texts] == []
    assert {line["who"] for line in lines} == {
        *("start", "editor", "agent", "ask", "model", "tool", "end")
    }
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)


def chunk(line: Line) -> str:
    update: Line = line.get("message", {}).get("params", {}).get("update", {})
    content: Any = update.get("content")
    return str(cast("Line", content).get("text", "")) if isinstance(content, dict) else ""


def test_the_file_is_its_owners_alone_and_never_written_over(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    begin(str(file)).end()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    with pytest.raises(FileExistsError):
        begin(str(file))
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        begin(str(tmp_path / "link"))
    assert file.read_bytes() == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110 (a device)
def test_a_full_disk_ends_the_recording_with_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours = logging.getLogger("responses-acp")
    with caplog.at_level(logging.INFO, ours.name):
        ours.addHandler(caplog.handler)
        recording = Recording(os.open("/dev/full", os.O_WRONLY))
        for _ in range(3):
            recording.write("editor", text="x")
        recording.end()
        ours.removeHandler(caplog.handler)
    told = dict.fromkeys(record.getMessage() for record in caplog.records)
    assert len(told) == 1
    assert os.strerror(errno.ENOSPC) in next(iter(told))


# -- lines


def fed(*lines: Line, end: bool = True) -> list[Line]:
    machine = Lines()
    machine.hide((OWN,))
    out = [row for line in lines for row in machine.feed(line)]
    if end:
        out += machine.end()
    return [json.loads(row) for row in out]


def delta(text: str, ask: int = 1, index: int = 0) -> Line:
    kind = "response.output_text.delta"
    return {
        "who": "model",
        "ask": ask,
        "event": {"type": kind, "delta": text, "output_index": index},
    }


def update(session: str, **members: Any) -> Line:
    params = {"sessionId": session, "update": members}
    return {"who": "agent", "message": {"method": "session/update", "params": params}}


def shown(text: str, session: str = "s") -> Line:
    return update(session, sessionUpdate="agent_message_chunk", content={"text": text})


def printed(text: str) -> Line:
    meta = {"terminal_output": {"data": text}}
    return update("s", sessionUpdate="tool_call_update", toolCallId="c", _meta=meta)


HIDDEN = "[secret removed]"
DONE: Line = {"who": "model", "ask": 1, "event": {"type": "response.output_text.done"}}
ANSWER: Line = {"who": "agent", "message": {"id": 1, "result": {}}}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([delta("a quite-pl"), delta("ain-words-0123 b"), DONE],
         [delta(f"a {HIDDEN} b"), delta(""), DONE]),
        ([delta("quite-pl"), delta("no"), DONE], [delta("quite-pl"), delta("no"), DONE]),
        ([delta("quite-plain-"), delta("x", 1, 1), delta("words-0123"), DONE],
         [delta(HIDDEN), delta("x", 1, 1), delta(""), DONE]),
        ([delta("quite-plain-"), shown("quite-plain-"), delta("words-0123"), shown("words-0123")],
         [delta(HIDDEN), shown(HIDDEN), delta(""), shown("")]),
        ([shown("quite-plain-"), shown("x", "t"), shown("words-0123"), ANSWER],
         [shown(HIDDEN), shown("x", "t"), shown(""), ANSWER]),
        ([printed("quite-plain-"), printed("words-0123"), update("s", status="completed")],
         [printed(HIDDEN), printed(""), update("s", status="completed")]),
        ([delta("sk-abcdefghij"), delta("klmnop12345678"), DONE],
         [delta(HIDDEN), delta(""), DONE]),
        ([{"who": "editor", "text": f"x{OWN}"}], [{"who": "editor", "text": f"x{HIDDEN}"}]),
        ([{"who": "ask", "body": {OWN: json.dumps({"a": OWN})}}],
         [{"who": "ask", "body": {HIDDEN: json.dumps({"a": HIDDEN})}}]),
    ],
)  # fmt: skip
def test_a_secret_is_found_across_pieces(lines: list[Line], expected: list[Line]) -> None:
    assert fed(*lines) == expected


def test_lines_wait_only_for_texts_that_stream() -> None:
    note: Line = {"who": "editor", "text": "x"}
    assert fed(note, end=False) == [note]
    assert fed(delta("a"), note, end=False) == []
    assert fed(delta("a"), note, delta("b", 2), DONE, end=False) == [delta("a"), note]


def test_a_text_that_never_ends_comes_out_at_the_end() -> None:
    assert fed(delta("quite-plain-words-"), delta("0123")) == [delta(HIDDEN), delta("")]


def test_an_update_without_a_text_ends_the_texts_before_it() -> None:
    other = update("s", sessionUpdate="plan", entries=[])
    assert fed(shown("a"), other, end=False) == [shown("a"), other]
