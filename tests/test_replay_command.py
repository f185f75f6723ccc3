"""A recorded session, played again: the same where nothing changed, and what differs where it did.

The session holds all that is hard to play: a tool call with a permission, one that is declined,
a command, a cancel in the middle of an answer and one in the middle of a command.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.recording import begin
from bridge.replay import player, run
from bridge.replay.read import read
from tests.fake_editor import Editor, choose
from tests.fake_responses import FakeResponses, Reply, called, said, stream, thought
from tests.laws import Message
from tests.stage import Stage, stage

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
        request = await begun(on.editor, on.session, "Again.")
        await on.editor.update("agent_message_chunk", messageId="m6.0")
        await cancelled(on, request)
        request = await begun(on.editor, on.session, "Run.")
        await on.editor.update("tool_call_update", toolCallId="c5", status="in_progress")
        await cancelled(on, request)
        await on.prompt()


async def begun(editor: Editor, session: str, text: str) -> int:
    prompt = [{"type": "text", "text": text}]
    return await editor.begin("session/prompt", {"sessionId": session, "prompt": prompt})


async def cancelled(on: Stage, request: int) -> None:
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
    code = run.run(str(file))
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


@pytest.mark.anyio
async def test_a_session_that_was_loaded_again_within_the_recording_is_the_same(
    tmp_path: Path,
) -> None:
    file = tmp_path / "recording.jsonl"
    (tmp_path / "ws").mkdir()
    answers = FakeResponses(stream(said("Hello.")), stream(said("And again.")))
    with anyio.fail_after(20):
        async with stage(tmp_path, answers, recording=begin(str(file))) as on:
            await on.prompt("Hi.")
            await on.editor.request("session/close", {"sessionId": on.session})
            place: Message = {"cwd": str(on.workspace), "mcpServers": []}
            await on.editor.request("session/load", {"sessionId": on.session, **place})
            await on.prompt("Once more.")
        assert await player.replay(read(str(file))) is None


# -- what differs is shown


def is_said(line: Line) -> bool:
    update = line.get("message", {}).get("params", {}).get("update", {})
    return line["who"] == "agent" and update.get("sessionUpdate") == "agent_message_chunk"


def is_permission(line: Line) -> bool:
    return line["who"] == "agent" and line["message"].get("method") == "session/request_permission"


def is_result(line: Line) -> bool:
    return line["who"] == "tool" and line.get("call") == 1 and "result" in line


def is_refused(line: Line) -> bool:
    return line["who"] == "editor" and "reject_once" in json.dumps(line)


def change(text: str, other: str) -> Callable[[Line], Line]:
    return lambda line: json.loads(json.dumps(line).replace(text, other))


def ask(number: int) -> Callable[[Line], bool]:
    return lambda line: line["who"] == "ask" and line["ask"] == number


@pytest.mark.parametrize(
    ("which", "changed", "shown"),
    [
        (is_said, change("I lo", "I to"), ("agent", "params.update.content.text", "I to", "I lo")),
        (is_permission, change("Edit a.txt", "Edit b.txt"), ("agent", "title", "b.txt", "a.txt")),
        (is_permission, change("toolCallId", "callId"), ("agent", "callId", "c2", "nothing")),
        (ask(2), change("Change a.txt.", "Change it."), ("ask", "input", "it.", "a.txt.")),
        (ask(1), change('"model": "m"', '"model": "n"'), ("ask", "model", '"n"', '"m"')),
        # What was found by a tool comes from the recording, and reaches the model.
        (is_result, change("one", "won"), ("agent", "rawOutput", "one", "won")),
        # An answer that the person gave otherwise leads to something else.
        (is_refused, change("reject_once", "allow_once"), ("agent", "status", "failed", "in_pro")),
    ],
)
def test_the_first_difference_is_shown(
    recorded: list[Line],
    which: Callable[[Line], bool],
    changed: Callable[[Line], Line],
    shown: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    number = next(number for number, line in enumerate(recorded) if which(line))
    lines = [*recorded[:number], changed(recorded[number]), *recorded[number + 1 :]]
    assert lines != recorded
    code, told = played(written(tmp_path, lines), capsys)
    who, place, wanted, got = shown
    head, before, now = told.splitlines()
    assert code == 1
    assert (f"({who})" in head, place in head, wanted in before, got in now) == (True,) * 4, told


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not come is not waited for long."""
    monkeypatch.setattr(player.replay, "__defaults__", (0.5, 0.1))


@pytest.mark.usefixtures("hasty")
def test_what_is_not_said_any_more_is_a_difference(
    recorded: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = recorded[-2]
    extra = {**last, "message": {**last["message"], "id": 77}}
    code, told = played(written(tmp_path, [*recorded[:-1], extra, recorded[-1]]), capsys)
    assert (code, f"line {len(recorded)} (agent)" in told) == (1, True)
    assert "now:      nothing" in told


def test_what_is_said_besides_is_a_difference(
    recorded: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = max(number for number, line in enumerate(recorded) if is_said(line))
    code, told = played(written(tmp_path, [*recorded[:last], *recorded[last + 1 :]]), capsys)
    assert (code, "recorded: nothing" in told, "goes." in told) == (1, True, True), told


# -- the file


def test_a_torn_last_line_is_left_out(
    recorded: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, recorded)
    file.write_bytes(file.read_bytes()[:-30])
    assert played(file, capsys)[0] == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is empty"),
        ('{"who":"sta', "line 1: torn"),
        ("x\n", "line 1: "),
        ("[]\n", "line 1: "),
        ('{"who":"editor","message":{}}\n', "line 1: no beginning of a recording"),
        ('{"who":"start"}\n', "line 1: start without format"),
        ('{"who":"start","format":2}\n', "it is of format 2, this version plays 1"),
        ('{"who":"start","format":1}\n{"who":"cat"}\n', 'line 2: it is nobody\'s ("who" is cat)'),
        ('{"who":"start","format":1}\n{"who":"ask","ask":1}\n', "line 2: ask without body"),
        ('{"who":"start","format":1,"config":{}}\n', "line 1: config: "),
        ('{"who":"start","format":1}\n{"who":"tool","result":{}}\n', "line 2: result: "),
        ('{"who":"start","format":1}\n{"who":"model","ask":1,"event":3}\n', "line 2: event: "),
    ],
)
def test_a_file_that_cannot_be_played_says_why(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_text(text, encoding="utf-8")
    code, said_ = played(file, capsys)
    assert code == 2
    assert said_.startswith(f"responses-acp: {file}: {told}")


def test_a_file_that_is_not_there_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert played(tmp_path / "none", capsys) == (
        2,
        f"responses-acp: {tmp_path / 'none'}: No such file or directory\n",
    )


def test_nothing_of_the_workspace_is_touched(
    recorded: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ground = tmp_path / "ground"
    ground.mkdir()
    marked = json.dumps(recorded).replace("printf x; printf y >&2", f"touch {ground}/made")
    code, _ = played(written(tmp_path, json.loads(marked)), capsys)
    assert (code, list(ground.iterdir())) == (0, [])


def test_the_folder_of_the_session_need_not_exist_here(
    recorded: list[Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cwd = next(
        line["message"]["params"]["cwd"]
        for line in recorded
        if line.get("message", {}).get("method") == "session/new"
    )
    moved = json.loads(json.dumps(recorded).replace(cwd, "/nowhere/at/all"))
    assert played(written(tmp_path, moved), capsys)[0] == 0
