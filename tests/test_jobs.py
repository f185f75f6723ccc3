"""Commands that go on in the background, with real processes."""

import json
import math
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fake_responses import FakeResponses, called, said, stream
from tests.laws import Message
from tests.stage import stage
from tests.test_process import LONG, sleepers, until
from tests.workspace import context
from tools.base import Command, Console, Ended, Hold, Prepared, Result, Shell
from tools.environment import child_environment
from tools.jobs import MOST_RUNNING, NARROWED, LocalJobs
from tools.process import LocalShell
from tools.shell import SHELL
from tools.shell_job import SHELL_JOB

pytestmark = pytest.mark.anyio

TOOLS = {"shell": SHELL, "shell_job": SHELL_JOB}


@dataclass
class Desk:
    """A session with jobs; calls as the model makes them."""

    root: str
    jobs: LocalJobs | None
    shell: Shell | None = None

    async def call(self, tool: str, **arguments: Any) -> Result:
        bound = TOOLS[tool].bind(arguments, self.root)
        assert not isinstance(bound, Result), bound.text
        environment = child_environment(os.environ, (), (), self.root)
        shell = self.shell or LocalShell(environment, self.root)
        given = replace(context(self.root), shell=shell, jobs=self.jobs)
        with anyio.fail_after(20):
            prepared = await bound.prepare(given)
            return await prepared.run() if isinstance(prepared, Prepared) else prepared

    async def start(self, command: str, **more: Any) -> str:
        command = command.replace("LONG", LONG)
        more = {"description": "d", "run_in_background": True, **more}
        return (await self.call("shell", command=command, **more)).text

    async def poll(self, job: str = "job1", action: str = "poll") -> str:
        return (await self.call("shell_job", id=job, action=action)).text


@asynccontextmanager
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    """The session; at the end it is closed, and nothing is left."""
    jobs = LocalJobs()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(jobs.keep)
        yield Desk(str(tmp_path), jobs)
        with anyio.fail_after(20):
            await jobs.end()
    assert sleepers() == []


async def test_a_job_goes_on_and_its_output_is_told_once(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with desk(tmp_path) as here:
        told = await here.start(
            f"echo one; while [ ! -e {go} ]; do sleep 0.01; done; echo two >&2; sleep LONG"
        )
        assert told.startswith("Started job1; follow it with shell_job.\n")
        for word in ("one", "two"):
            while word not in told:
                told += await here.poll()
            go.touch()
        assert (told.count("one"), told.count("two")) == (1, 1)
        assert told.endswith("two\n[job1 is running]")
        await until(lambda: len(sleepers()) == 1)
        assert await here.poll(action="kill") == "(no new output)\n[killed by signal: SIGKILL]"
        assert sleepers() == []
        assert await here.poll() == "(no new output)\n[killed by signal: SIGKILL]"
        assert (await here.start("sleep LONG")).startswith("Started job2")


@dataclass
class Instant:
    """Every command has printed a word and ended before anybody looks."""

    ended: Ended
    timeouts: list[float] = field(default_factory=list[float])

    async def hold(self) -> Hold:
        return Hold()

    async def run(self, command: Command, output: Any) -> Ended:
        self.timeouts.append(command.seconds)
        output("word\n")
        return self.ended


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        (Ended("", "", 3), "[exit code: 3]"),
        (Ended("", "", 0), "[exit code: 0]"),
        (
            Ended("", "", None, "SIGTERM", timed_out=True),
            "[timed out]\n[killed by signal: SIGTERM]",
        ),
        (Ended("", "", 0, whole=("/tmp/x",)), "[whole output: /tmp/x]\n[exit code: 0]"),
    ],
)
async def test_a_job_that_ends_at_once_says_so_in_the_answer(
    tmp_path: Path, ended: Ended, told: str
) -> None:
    async with desk(tmp_path) as here:
        here.shell = shell = Instant(ended)
        head = "follow it with shell_job.\nword\n"
        assert await here.start("x") == f"Started job1; {head}{told}"
        assert await here.start("x", timeoutMs=500) == f"Started job2; {head}{told}"
        assert shell.timeouts == [math.inf, 0.5]
        assert here.jobs is not None
        assert here.jobs.running == []


async def test_a_poll_waits_for_news_or_the_end(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with desk(tmp_path) as here, anyio.create_task_group() as tasks:
        await here.start(f"while [ ! -e {go} ]; do sleep 0.01; done; exit 7")
        told: list[str] = []

        async def poll() -> None:
            told.append(await here.poll())

        tasks.start_soon(poll)
        await anyio.lowlevel.checkpoint()
        go.touch()
        await until(lambda: bool(told))
        assert told == ["(no new output)\n[exit code: 7]"]


async def test_output_that_nobody_asks_for_is_kept_as_far_as_it_fits(tmp_path: Path) -> None:
    go = tmp_path / "go"
    count = "for i in 1 2 3; do printf '%d%%\\r' $i; done; seq 30000"
    async with desk(tmp_path) as here:
        await here.start(f"while [ ! -e {go} ]; do sleep 0.01; done; {count}")
        go.touch()
        jobs = here.jobs
        assert jobs is not None
        await until(lambda: jobs.running == [])
        text = await here.poll()
        assert text.startswith("1\n2\n")
        assert "bytes dropped" in text
        assert "[whole output: " in text
        assert len(text) < 70_000


async def test_the_end_of_a_session_ends_its_jobs(tmp_path: Path) -> None:
    jobs = LocalJobs()
    here = Desk(str(tmp_path), jobs)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(jobs.keep)
        await here.start("setsid sleep LONG & sleep LONG")
        await until(lambda: len(sleepers()) == 2)
        jobs.close()
    assert sleepers() == []
    refused = "Error: the session is being closed"
    assert await here.start("true") == refused


async def test_a_cancelled_keeper_leaves_nothing_either(tmp_path: Path) -> None:
    jobs = LocalJobs()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(jobs.keep)
        await Desk(str(tmp_path), jobs).start("sleep LONG")
        tasks.cancel_scope.cancel()
    assert sleepers() == []


async def test_a_job_that_may_change_more_than_is_allowed_by_now_is_ended(tmp_path: Path) -> None:
    async def forever(output: Callable[[str], None]) -> Ended:
        output("word\n")
        await anyio.sleep_forever()
        raise AssertionError

    async with desk(tmp_path) as here:
        assert here.jobs is not None
        kept = await here.jobs.start(forever, "workspace-write")
        wider = await here.jobs.start(forever, "danger-full-access")
        here.jobs.narrow("workspace-write")
        with anyio.fail_after(5):
            await wider.over.wait()
        assert here.jobs.running == [kept.id]
        told = await here.poll(wider.id)
        assert told == f"word\n[{wider.id}: {NARROWED}]\n[killed by signal: SIGKILL]"
        here.jobs.narrow("read-only")
        with anyio.fail_after(5):
            await kept.over.wait()
        assert here.jobs.running == []


async def test_a_job_that_is_ended_names_the_file_with_its_whole_output(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        told = await here.start("head -c 300000 /dev/zero | tr '\\0' x; echo; echo end; sleep LONG")
        while "\nend\n" not in told:
            told = await here.poll()
        told = await here.poll(action="kill")
        (path,) = re.findall(r"^\[whole output: (.*)\]$", told, re.MULTILINE)
        assert await anyio.Path(path).read_text("utf-8") == "x" * 300_000 + "\nend\n"


async def test_there_is_an_end_to_the_number_of_jobs(tmp_path: Path) -> None:
    async def forever(_: Callable[[str], None]) -> Ended:
        await anyio.sleep_forever()
        raise AssertionError

    async with desk(tmp_path) as here:
        assert here.jobs is not None
        for _ in range(MOST_RUNNING):
            await here.jobs.start(forever, "read-only")
        assert await here.start("true") == (
            f"Error: {MOST_RUNNING} jobs are running; kill one first"
        )
        await here.poll("job1", "kill")
        assert (await here.start("true")).startswith(f"Started job{MOST_RUNNING + 1}")


async def test_a_job_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    async def fail(_: Callable[[str], None]) -> Ended:
        raise FileNotFoundError("bash is not installed")

    async with desk(tmp_path) as here:
        assert here.jobs is not None
        await here.jobs.start(fail, "read-only")
        told = await here.call("shell_job", id="job1", action="poll")
        text = "(no new output)\nError: the command could not be started: bash is not installed"
        assert (told.ok, told.text, told.shown) == (False, text, (Console(text),))


async def test_what_is_no_job_is_refused(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        refused = 'Error: there is no job "job9"; jobs end with the session and with the agent'
        assert await here.poll("job9") == refused
    nothing = Desk(str(tmp_path), None)
    assert await nothing.poll("job9") == refused
    assert await nothing.start("true") == "Error: nothing can run in the background here"


def test_cards_name_the_job() -> None:
    for action, title in (("poll", "Follow job1"), ("kill", "Kill job1")):
        bound = SHELL_JOB.bind({"id": "job1", "action": action}, "/")
        assert not isinstance(bound, Result)
        assert bound.card.title == title


@pytest.mark.parametrize("end", ["session/close", "end of input"])
async def test_a_job_outlives_its_prompt_and_not_its_session(tmp_path: Path, end: str) -> None:
    background = {
        "command": f"echo up; sleep {LONG}", "description": "d", "run_in_background": True,
    }  # fmt: skip
    model = FakeResponses(
        stream(called("c1", "shell", json.dumps(background))),
        stream(said("Started.")),
        stream(called("c2", "shell_job", '{"id":"job1","action":"kill"}')),
        stream(called("c3", "shell", json.dumps(background))),
        stream(said("Started again.")),
    )
    with anyio.fail_after(20):
        async with stage(tmp_path, model) as play:
            await play.prompt()
            await until(lambda: len(sleepers()) == 1)
            await play.prompt()
            outputs = [item["output"] for item in model.asked[-1].body["input"] if "output" in item]
            for number, place in ((1, 0), (2, 2)):
                assert outputs[place].startswith(f"Started job{number}; follow it with shell_job.")
                assert outputs[place].endswith(f"[job{number} is running]")
            assert outputs[1].endswith("[killed by signal: SIGKILL]")
            await until(lambda: len(sleepers()) == 1)
            if end == "session/close":
                await play.editor.request("session/close", {"sessionId": play.session})
                assert sleepers() == []
    assert sleepers() == []


TYPED, SAVED = "saved\nand typed since\n", "saved\n"


@pytest.mark.parametrize(
    ("command", "beside", "edited"),
    [
        (f"sleep {LONG}", True, "in the editor"),
        (f"echo {SAVED.strip()} > a", False, "on disk"),
    ],
    ids=["in the background", "waited for"],
)
async def test_what_is_saved_beside_a_job_is_the_persons_doing(
    tmp_path: Path, command: str, beside: bool, edited: str
) -> None:
    """Unsaved text is taken for overtaken only where the model waited for the command."""
    run = {"command": command, "description": "d", "run_in_background": beside}
    change = {"file_path": "a", "old_string": "saved", "new_string": "changed"}
    model = FakeResponses(
        stream(called("c1", "shell", json.dumps(run))),
        stream(said("It runs.")),
        stream(called("c2", "read", '{"file_path":"a"}')),
        stream(called("c3", "edit", json.dumps(change))),
        stream(said("Done.")),
    )
    can = {"fs": {"readTextFile": True, "writeTextFile": True}}
    held = [TYPED]

    def take(params: Message) -> Message:
        held[0] = params["content"]
        return {}

    with anyio.fail_after(20):
        async with stage(tmp_path, model, can=can) as play:
            play.editor.answers["fs/read_text_file"] = lambda _: {"content": held[0]}
            play.editor.answers["fs/write_text_file"] = take
            file = play.workspace / "a"
            await play.prompt()
            if edited == "in the editor":
                file.write_text(SAVED, encoding="utf-8")
            await play.prompt()
            texts = {"in the editor": held[0], "on disk": file.read_text(encoding="utf-8")}
            assert [where for where, text in texts.items() if "changed" in text] == [edited]
