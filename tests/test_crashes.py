"""The process is killed at any moment, the disk is full or missing: what is left must be true.

RESPONSES_ACP_CRASHES says how many moments are tried, RESPONSES_ACP_CRASH_TABLE where the table of
each fault that was tried, what was on disk and what was lost is written.
"""

import os
import random
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.config import load as load_config
from bridge.core.records import Prompted, encode
from bridge.core.updates import replay
from bridge.session import Session
from bridge.store import Store
from tests.agent_process import PROGRAM, Machine, begin_prompt, machine
from tests.crash import STEPS, Kill, Left, left, lost, worked
from tests.fake_editor import Editor, Refused
from tests.pairing import violations

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs bash"),
]

MOMENTS = int(os.environ.get("RESPONSES_ACP_CRASHES", "200"))
LANES = 2
"""Machines on which moments are tried side by side."""
RUNNING = 0.04
"""Seconds within which a call runs."""
_LONG = 900.0
"""Seconds for all moments; they take a tenth of it."""

Rows = list[tuple[str, str, str]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Generator[Rows]:
    """What was tried, what was on disk, what was lost; written when all of it was."""
    rows: Rows = []
    yield rows
    default = tmp_path_factory.mktemp("crashes") / "table"
    file = Path(os.environ.get("RESPONSES_ACP_CRASH_TABLE", default))
    lines = (" | ".join(row) for row in [("fault", "on disk", "lost"), *rows])
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")


# -- killed at any moment --------------------------------------------------------------------------


class Lane:
    """Life after life on one machine; each begins with what the one before it left."""

    def __init__(self, here: Machine, table: Rows) -> None:
        self._here = here
        self._table = table
        self._lives = 0
        self._before: tuple[str, Left] | None = None

    async def whole(self) -> float:
        """A life that is not cut off; gives the seconds of its conversation."""
        async with self._here.agent() as agent:
            await worked(self._here, agent.editor, self._here.workspace / "warm-up")
            session, seconds = await worked(self._here, agent.editor, self._folder())
            whole = left(self._here, agent.editor, session, self._folder())
            assert whole.cut_off == "the answer"
            assert whole.files == {"a.txt": "three\n", "new.txt": "new\n", "log.txt": "ran\n"}
        self._lives += 1
        return seconds

    async def cut(self, moment: float, step: int | None) -> None:
        """A life that looks at what the last one left, works, and is killed at this moment."""
        life = self._here.agent(code=-signal.SIGKILL, answers_all=False, greet=False)
        async with life as agent:
            agent.editor.laws.schema = False  # whole() holds the same messages to it
            await agent.editor.initialize()
            await self._look(agent.editor)
            kill = Kill(agent.pid, moment, step)
            session, _ = await worked(self._here, agent.editor, self._folder(), kill)
        found = left(self._here, agent.editor, session, self._folder())
        found.check()
        since = "the prompt" if step is None else f"call {step}"
        self._before = (f"{moment * 1000:.1f} ms after {since}", found)
        self._here.model.forget()
        self._lives += 1

    async def end(self) -> None:
        """A life that looks at what the last one left."""
        async with self._here.agent() as agent:
            await self._look(agent.editor)

    async def _look(self, editor: Editor) -> None:
        if self._before is None:
            return
        moment, found = self._before
        if found.records:
            gone = await lost(self._here, editor, found)
        else:
            assert found.seen.cards == found.seen.texts == {}
            gone = []
            with pytest.raises(Refused) as refused:
                await lost(self._here, editor, found)
            assert refused.value.code == -32002
        assert gone == []
        files = (f"{name} {text.strip()}" for name, text in sorted(found.files.items()))
        fault = f"killed {moment}, in {found.cut_off}"
        disk = f"{len(found.records)} records; {', '.join(files)}"
        self._table.append((fault, disk, ", ".join(gone) or "nothing"))

    def _folder(self) -> Path:
        return self._here.workspace / str(self._lives)


@pytest.mark.slow
async def test_a_process_killed_at_any_moment_leaves_the_truth(tmp_path: Path, table: Rows) -> None:
    async def live(number: int) -> None:
        chance = random.Random(number)
        folder = tmp_path / str(number)
        await anyio.Path(folder).mkdir()
        async with machine(folder, deadline=_LONG) as here:
            lane = Lane(here, table)
            seconds = await lane.whole()
            for one in range(number, MOMENTS, LANES):
                # Half of them anywhere, half of them where a call runs, which takes no time.
                step = None if one // LANES % 2 else chance.randrange(len(STEPS))
                await lane.cut(chance.uniform(0, seconds if step is None else RUNNING), step)
            await lane.end()

    async with anyio.create_task_group() as lanes:
        for number in range(LANES):
            lanes.start_soon(live, number)
    assert len(table) >= MOMENTS


# -- a file that was cut anywhere -----------------------------------------------------------------


async def test_a_session_cut_anywhere_loads_and_its_next_request_is_valid(
    tmp_path: Path, table: Rows
) -> None:
    """Every end of a line, and some places within each."""
    async with machine(tmp_path) as here, here.agent() as agent:
        session, _ = await worked(here, agent.editor, here.workspace / "w")
        whole = left(here, agent.editor, session, here.workspace / "w")
    lines = [encode(record) for record in whole.records]
    config = tmp_path / "config.toml"
    config.write_text('[providers.p]\nbase_url = "http://127.0.0.1:9"\n[models.m]\nprovider="p"\n')
    store = Store(tmp_path)
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
            if again.seen.paths():
                assert any("1: one" in str(item.get("output")) for item in items)
            again.close()
    table.append(("the file is cut at any place", "all lines before it", "nothing"))


def _statuses(records: Any) -> dict[str, str]:
    """The last status of each card."""
    last: dict[str, str] = {}
    for update in replay(records, cwd="/w", terminal=False):
        if "toolCallId" in update:
            last[update["toolCallId"]] = update["status"]
    return last


# -- other faults ---------------------------------------------------------------------------------


async def test_a_disk_that_is_full_ends_the_turn_and_the_file_stays_loadable(
    tmp_path: Path, table: Rows
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
            before = left(here, agent.editor, session, here.workspace)
            assert await lost(here, agent.editor, before) == []
            assert agent.editor.text("user_message_chunk") == "Say much"
        table.append(("the disk is full in a turn", "the prompt", "nothing"))


async def test_a_state_folder_that_cannot_be_written_at_all_is_no_end(
    tmp_path: Path, table: Rows
) -> None:
    async with machine(tmp_path) as here:
        state = here.folder / "home" / "state" / "responses-acp"
        (state / "responses-acp.log").mkdir(parents=True)  # as little a log as one of another user
        (state / "sessions").write_text("in the way", encoding="utf-8")
        async with here.agent(session={"notices": {}}) as agent:
            session = await agent.editor.new_session(here.workspace)
            call = await begin_prompt(agent.editor, session)
            await (await here.model.request()).answer()
            assert (await agent.editor.result(call))["stopReason"] == "end_turn"
            (notice,) = agent.editor.updates("notice")
            assert "this conversation is not kept" in notice["title"]
    table.append(("neither sessions nor log can be written", "nothing, as was said", "nothing"))


async def test_without_a_place_for_sessions_it_works_and_says_so_once(
    tmp_path: Path, table: Rows
) -> None:
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
        table.append(("no folder can be written", "nothing, as was said", "nothing"))


async def test_a_result_that_does_not_fit_on_the_disk_ends_as_a_load_shows_it(
    tmp_path: Path, table: Rows
) -> None:
    async with machine(tmp_path) as here:
        lines = "".join(f"line {number} of many\n" for number in range(1900))
        (here.workspace / "big").write_text(lines, encoding="utf-8")
        full = ("bash", "-c", 'ulimit -f 16; exec "$@"', "bash", *PROGRAM)
        async with here.agent(program=full) as agent:
            session = await agent.editor.new_session(here.workspace)
            call = await begin_prompt(agent.editor, session, "Read it")
            await (await here.model.request()).ask_for("c", "read", file_path="big")
            with pytest.raises(Refused, match=r"cannot be written \(File too large"):
                await agent.editor.result(call)
        async with here.agent() as again:
            before = left(here, agent.editor, session, here.workspace)
            assert before.seen.cards == {"c": "failed"}
            assert await lost(here, again.editor, before) == []
    table.append(("the disk is full at a result", "the call", "the result, as was said"))


async def test_a_home_that_does_not_exist_is_not_made(tmp_path: Path, table: Rows) -> None:
    async with machine(tmp_path) as here:
        home = tmp_path / "no" / "home"
        homeless = {**here.environment, "HOME": str(home)}
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            del homeless[name]
        async with here.agent(env=homeless, session={"notices": {}}) as agent:
            (here.workspace / "a.txt").write_text("one\n", encoding="utf-8")
            session = await agent.editor.new_session(here.workspace)
            for _ in range(2):
                call = await begin_prompt(agent.editor, session, "Change it")
                await (await here.model.request()).ask_for("r", "read", file_path="a.txt")
                edit = {"file_path": "a.txt", "old_string": "one", "new_string": "one more"}
                await (await here.model.request()).ask_for("e", "edit", **edit)
                await (await here.model.request()).answer()
                assert (await agent.editor.result(call))["stopReason"] == "end_turn"
            (notice,) = agent.editor.updates("notice")
            assert "your home directory does not exist" in notice["title"]
            assert (await agent.editor.request("session/list"))["sessions"] == []
        assert not home.parent.exists()
    table.append(("the home directory does not exist", "nothing, as was said", "nothing"))


async def test_two_sessions_do_not_overwrite_each_other(tmp_path: Path, table: Rows) -> None:
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
        table.append(("two sessions edit one file", "the first edit", "nothing"))
