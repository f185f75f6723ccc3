"""The process is killed at any moment, the disk is full or missing: what is left must be true.

RESPONSES_ACP_CRASHES says how many moments are tried, RESPONSES_ACP_CRASH_TABLE where the table of
what was tried, what was on disk and what was lost is written.
"""

import os
import random
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.config import load as load_config
from bridge.core.records import (
    Announced,
    Changing,
    Prompted,
    Record,
    Responded,
    Returned,
    decode,
    encode,
)
from bridge.core.updates import replay
from bridge.session import Session
from bridge.store import Store
from tests.agent_process import PROGRAM, Machine, begin_prompt, machine
from tests.fake_editor import Agent, Editor, Refused
from tests.laws import Message
from tests.pairing import violations
from tools.seen import digest

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs bash"),
]

MOMENTS = int(os.environ.get("RESPONSES_ACP_CRASHES", "16"))
VERSIONS = ("one\n", "two\n", "three\n")
STEPS: tuple[tuple[str, Message], ...] = (
    ("read", {"file_path": "a.txt"}),
    ("edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
    ("edit", {"file_path": "a.txt", "old_string": "two", "new_string": "three"}),
    ("write", {"file_path": "new.txt", "content": "new\n"}),
    ("shell", {"command": "echo ran >> log.txt", "description": "Notes that it ran."}),
)


# -- the conversation -----------------------------------------------------------------------------


async def play_model(here: Machine) -> None:
    """Call one tool after the other, and end."""
    for number, (tool, arguments) in enumerate(STEPS):
        request = await here.model.request()
        await request.think(f"Step {number}")
        await request.ask_for(f"c{number}", tool, **arguments)
    await (await here.model.request()).answer()


async def worked(here: Machine, agent: Agent, kill_after: float | None) -> tuple[str, float]:
    """The session of one such turn, killed after so many seconds; and how long it took."""
    begun = anyio.current_time()
    session = await agent.editor.new_session(here.workspace)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(play_model, here)
        if kill_after is None:
            await agent.editor.result(await begin_prompt(agent.editor, session, "Work"))
        else:
            tasks.start_soon(begin_prompt, agent.editor, session, "Work")
            await anyio.sleep(kill_after)  # the moment is what is tried
            os.kill(agent.pid, signal.SIGKILL)
            tasks.cancel_scope.cancel()
    return session, anyio.current_time() - begun


# -- what is left ---------------------------------------------------------------------------------


@dataclass
class Found:
    """What a killed process left."""

    records: list[Record]
    files: dict[str, str]

    def check(self) -> None:
        """Every file is whole, no change was made that was not announced, none that ended lost."""
        assert self.files["a.txt"] in VERSIONS
        assert self.files.get("new.txt") in (None, "new\n")
        changes = [one for one in self.records if isinstance(one, Changing)]
        ended = {one.card_id for one in self.records if isinstance(one, Returned) and one.ok}
        announced = {change.after for change in changes}
        for name, first in (("a.txt", VERSIONS[0]), ("new.txt", None)):
            now = self.files.get(name)
            made = [one for one in changes if Path(one.path).name == name]
            assert now == first or digest(str(now).encode()) in announced
            done = [one.after for one in made if one.card_id in ended]
            left = [one.after for one in made if one.card_id not in ended]
            if done:
                assert digest(str(now).encode()) in (done[-1], *left)

    @property
    def lost(self) -> str:
        """What the person did and will not find again."""
        if not any(isinstance(one, Prompted) for one in self.records):
            return "the prompt"
        ended = {one.card_id for one in self.records if isinstance(one, Returned)}
        answers = (one for one in self.records if isinstance(one, Responded))
        calls = (one for answer in answers for one in answer.seen if isinstance(one, Announced))
        cut = [call.card_id for call in calls if call.card_id not in ended]
        return f"the result of {cut[0]}" if cut else "nothing but the answer that streamed"


def found(here: Machine, session: str) -> Found:
    """The session's file as it is, torn end and all, and the workspace."""
    records: list[Record] = []
    for path in here.folder.rglob(f"{session}.jsonl"):
        lines = path.read_bytes().split(b"\n")
        records += [record for line in lines if (record := decode(line)) is not None]
    files = {
        path.name: path.read_text("utf-8")
        for path in here.workspace.iterdir()
        if not path.name.startswith(".responses-acp-")  # of a commit that was cut off
    }
    return Found(records, files)


async def check_goes_on(here: Machine, editor: Editor, session: str) -> None:
    """The session loads, every card has an end, and the next request is a valid one."""
    params: Message = {"sessionId": session, "cwd": str(here.workspace), "mcpServers": []}
    await editor.request("session/load", params)
    call = await begin_prompt(editor, session, "What now?")
    await (await here.model.request()).answer()
    assert (await editor.result(call))["stopReason"] == "end_turn"


async def crash(parent: Path, name: str, kill_after: float | None) -> tuple[Found, float]:
    """One life and what is found after it; the life after it is checked."""
    folder = parent / name
    await anyio.Path(folder).mkdir()
    async with machine(folder) as here:
        (here.workspace / "a.txt").write_text(VERSIONS[0], encoding="utf-8")
        code = 0 if kill_after is None else -signal.SIGKILL
        async with here.agent(code=code, answers_all=kill_after is None) as agent:
            session, seconds = await worked(here, agent, kill_after)
        left = found(here, session)
        left.check()
        here.model.forget()
        async with here.agent() as agent:
            if left.records:
                await check_goes_on(here, agent.editor, session)
            else:
                with pytest.raises(Refused) as refused:
                    await check_goes_on(here, agent.editor, session)
                assert refused.value.code == -32002
    return left, seconds


@pytest.mark.slow
async def test_a_process_killed_at_any_moment_leaves_the_truth(tmp_path: Path) -> None:
    whole, seconds = await crash(tmp_path, "whole", None)
    assert whole.lost == "nothing but the answer that streamed"
    chance = random.Random(7)
    rows = ["killed after | records on disk | a.txt | new.txt | log.txt | lost"]
    for number in range(MOMENTS):
        moment = chance.uniform(0, seconds)
        left, _ = await crash(tmp_path, str(number), moment)
        shown = [left.files.get(name, "-").strip() for name in ("a.txt", "new.txt", "log.txt")]
        cells = [f"{moment * 1000:.0f} ms", str(len(left.records)), *shown, left.lost]
        rows.append(" | ".join(cells))
    table = os.environ.get("RESPONSES_ACP_CRASH_TABLE", str(tmp_path / "table"))
    await anyio.Path(table).write_text("\n".join([*rows, ""]), encoding="utf-8")


# -- a file that was cut anywhere -----------------------------------------------------------------


async def test_a_session_cut_anywhere_loads_and_its_next_request_is_valid(tmp_path: Path) -> None:
    """Every end of a line, and some places within each."""
    whole, _ = await crash(tmp_path, "whole", None)
    lines = [encode(record) for record in whole.records]
    config = tmp_path / "config.toml"
    config.write_text('[providers.p]\nbase_url = "http://127.0.0.1:9"\n[models.m]\nprovider="p"\n')
    store = Store(tmp_path)
    (session,) = [getattr(record, "session", "") for record in whole.records[:1]]
    for number in range(2, len(lines)):
        for part in (0, 1, len(lines[number]) // 2, len(lines[number]) - 1):
            data = b"".join(lines[:number]) + lines[number][:part]
            (tmp_path / f"{session}.jsonl").write_bytes(data)
            stored = store.load(session)
            again = Session(load_config(str(config), {}), stored.opened, stored.journal)
            cards = _statuses(again.restored(stored.records()))
            assert set(cards.values()) <= {"completed", "failed"}, cards
            again.record(Prompted(9, (), ({"type": "input_text", "text": "Go on"},), "t"))
            items = again.history.input(again.dialect)
            body = {"model": "m", "input": items, "stream": True, "store": False}
            assert violations(body) == []
            again.close()


def _statuses(records: Any) -> dict[str, str]:
    """The last status of each card."""
    last: dict[str, str] = {}
    for update in replay(records, cwd="/w", terminal=False):
        if "toolCallId" in update:
            last[update["toolCallId"]] = update["status"]
    return last


# -- other faults ---------------------------------------------------------------------------------


async def test_a_disk_that_is_full_ends_the_turn_and_the_file_stays_loadable(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as here:
        (here.workspace / "big").write_text("x" * 60 + "\n", encoding="utf-8")
        full = ("bash", "-c", 'ulimit -f 40; exec "$@"', "bash", *PROGRAM)
        async with here.agent(program=full) as agent:
            session = await agent.editor.new_session(here.workspace)
            call = await begin_prompt(agent.editor, session, "Say much")
            request = await here.model.request()
            await request.say("much " * 20_000)
            await request.ask_for("c", "write", file_path="ran", content="")
            with pytest.raises(Refused, match=r"cannot be written \(File too large"):
                await agent.editor.result(call)
            assert not (here.workspace / "ran").exists()
        async with here.agent() as agent:
            await check_goes_on(here, agent.editor, session)
            assert agent.editor.text("user_message_chunk") == "Say much"


async def test_without_a_place_for_sessions_it_works_and_says_so_once(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        state = here.folder / "home" / "state" / "responses-acp"
        state.mkdir(parents=True)
        (state / "sessions").write_text("in the way", encoding="utf-8")
        async with here.agent(session={"notices": {}}) as agent:
            editor = agent.editor
            session = await editor.new_session(here.workspace)
            (here.workspace / "a.txt").write_text("one\n", encoding="utf-8")
            for _ in range(2):
                call = await begin_prompt(editor, session, "Change it")
                await (await here.model.request()).ask_for("r", "read", file_path="a.txt")
                edit = {"file_path": "a.txt", "old_string": "one", "new_string": "one more"}
                await (await here.model.request()).ask_for("e", "edit", **edit)
                await (await here.model.request()).answer()
                assert (await editor.result(call))["stopReason"] == "end_turn"
            await editor.prompt(session, "/undo files")
            assert "no copy of it was kept" in editor.text()
            (notice,) = editor.updates("notice")
            assert "this conversation is not kept" in notice["title"]
            assert (await editor.request("session/list"))["sessions"] == []
        assert here.log().count("\n") == here.log().count("a session is not stored") == 1


async def test_two_sessions_do_not_overwrite_each_other(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent() as agent:
        (here.workspace / "a.txt").write_text("one\n", encoding="utf-8")
        sessions = [await agent.editor.new_session(here.workspace) for _ in range(2)]
        edits: list[Any] = []
        for number, session in enumerate(sessions):
            call = await begin_prompt(agent.editor, session)
            await (await here.model.request()).ask_for(f"r{number}", "read", file_path="a.txt")
            edits.append((call, await here.model.request()))
        for number, (call, request) in enumerate(edits):
            edit = {"file_path": "a.txt", "old_string": "one", "new_string": f"of {number}"}
            await request.ask_for(f"e{number}", "edit", **edit)
            await (await here.model.request()).answer()
            await agent.editor.result(call)
        assert (here.workspace / "a.txt").read_text(encoding="utf-8") == "of 0\n"
        await agent.editor.update("tool_call_update", toolCallId="e1", status="failed")
