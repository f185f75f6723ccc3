"""Programs that are talked to over their standard streams: lines, noise, ends."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.agent_process import is_alive
from tools import service as services
from tools.prctl import adopt_orphans
from tools.process import Launch
from tools.service import Service, program, service

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX processes"),
]


@pytest.fixture(autouse=True)
def parent() -> None:
    adopt_orphans()


@asynccontextmanager
async def running(script: str, cwd: Path) -> AsyncGenerator[Service]:
    """A Python program, for as long as the context is open."""
    launch = Launch((sys.executable, "-c", script), {"PATH": os.environ["PATH"]}, str(cwd))
    with anyio.fail_after(20):
        async with service(launch) as one:
            yield one


async def lines(script: str, cwd: Path, *said: bytes) -> list[bytes]:
    """All that a program says when it is told this."""
    async with running(script, cwd) as one:
        for line in said:
            await one.send(line)
        return [line async for line in one.lines()]


async def test_lines_go_both_ways_whatever_their_length(tmp_path: Path) -> None:
    script = "import sys\nfor _ in range(2): print(sys.stdin.readline()[::-1].strip(), flush=True)"
    long = b"ab" * 400_000
    assert await lines(script, tmp_path, b"xyz", long) == [b"zyx", long[::-1]]


async def test_a_line_without_an_end_is_none_and_one_too_long_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "LONGEST_LINE", 1000)
    script = "print('short'); print('x' * 300_000); print('after'); print('end', end='')"
    assert await lines(script, tmp_path) == [b"short", b"after"]


async def test_megabytes_of_noise_hold_nothing_up_and_the_last_of_it_is_kept(
    tmp_path: Path,
) -> None:
    script = (
        "import sys; sys.stderr.write('noise\\n' * 500_000 + 'it \\x1b[31mbroke\\n\\n');"
        "print('said', flush=True)"
    )
    async with running(script, tmp_path) as one:
        assert [line async for line in one.lines()] == [b"said"]
        assert await one.last_words() == "it [31mbroke"


async def test_a_program_that_says_nothing_has_no_last_words(tmp_path: Path) -> None:
    async with running("", tmp_path) as one:
        assert [line async for line in one.lines()] == []
        assert await one.last_words() == ""


async def test_nobody_waits_long_for_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "_FAREWELL", 0.01)
    async with running("input()", tmp_path) as one:
        assert await one.last_words() == ""


async def test_a_program_that_does_not_read_is_told_so(tmp_path: Path) -> None:
    async with running("import os; os.close(0); print(1, flush=True); input()", tmp_path) as one:
        assert [line async for line in one.lines()] == [b"1"]
        with pytest.raises(BrokenPipeError):
            await one.send(b"hello")


STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
CHILD = (
    "import os, subprocess, sys\n"
    "child = subprocess.Popen(['sleep', '1000'], stdout=subprocess.DEVNULL)\n"
    "print(os.getpid(), child.pid, flush=True)\n"
)


@pytest.mark.parametrize(
    "script",
    [
        CHILD + "sys.stdin.read()",
        CHILD + "import time; time.sleep(1000)",
        STUBBORN + CHILD + "import time; time.sleep(1000)",
    ],
    ids=["leaves by itself", "leaves when asked", "is killed"],
)
async def test_nothing_is_left_of_a_program(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "_FAREWELL", 0.3)
    async with running(script, tmp_path) as one:
        first = await anext(one.lines())
        family = [int(number) for number in first.split()]
        assert all(map(is_alive, family))
    # Elsewhere the child of a child is killed as well, and reaped by whoever adopts it.
    assert not any(map(is_alive, family if sys.platform == "linux" else family[:1]))


async def test_a_cancelled_use_ends_the_program_as_well(tmp_path: Path) -> None:
    pids: list[int] = []
    with anyio.CancelScope() as scope:
        async with running("input()", tmp_path) as one:
            pids.append(one.leader.pid)
            scope.cancel()
            await anyio.sleep_forever()
    assert not is_alive(pids[0])


async def test_a_program_that_is_not_there_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with service(Launch(("/no/such/program",), {}, str(tmp_path))):
            raise AssertionError


def test_a_name_is_looked_for_in_path_but_never_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.touch(mode=0o755)
    monkeypatch.chdir(tool.parent)
    assert program("tool", {"PATH": f".:{tool.parent}"}) == str(tool)
    assert program("./tool", {"PATH": "."}) == "./tool"
    with pytest.raises(FileNotFoundError, match="there is no program tool"):
        program("tool", {"PATH": ".:"})
