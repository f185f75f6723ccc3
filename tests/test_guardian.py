"""What becomes of commands when nothing of ours runs any more."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_process import LONG, sleepers, start, until
from tools.guardian import Guardian, end, left
from tools.offspring import MARK

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

LEAVES = f"setsid sleep {LONG} & (setsid sleep {LONG} &) ; trap '' TERM; sleep {LONG}"
"""A command with a child that has left its group, and one that has left its tree too."""


@pytest.fixture
def guardian() -> Iterator[Guardian]:
    made = Guardian()
    yield made
    made.close()


def begin(mark: str) -> "subprocess.Popen[bytes]":
    return start("env", f"{MARK}={mark}", "bash", "-c", LEAVES)


def test_what_was_begun_and_has_not_ended_is_left() -> None:
    lines = ["+ 1 a\n", "+ 2 b\n", "- 1 a\n", "- 7 z\n", "+ 3 c\n", "+ 1 d\n"]
    assert left(lines) == {1: "d", 2: "b", 3: "c"}
    assert left([]) == {}


async def test_at_the_end_of_the_pipe_what_runs_is_killed(guardian: Guardian) -> None:
    first, other = begin("one"), begin("other")
    guardian.watch(first.pid, "one")
    guardian.watch(other.pid, "other")
    await until(lambda: len(sleepers()) == 6)
    guardian.forget(other.pid, "other")
    guardian.close()
    await until(lambda: len(sleepers()) == 3)
    first.wait()
    end({other.pid: "other"}, passes=1)
    await until(lambda: sleepers() == [])
    other.wait()
    end({})


async def test_commands_run_all_the_same_where_it_is_gone(guardian: Guardian) -> None:
    guardian.watch(2**22, "none")
    guardian.close()
    guardian.forget(2**22, "none")
    guardian.watch(2**22, "none")


async def test_a_process_that_cannot_be_started_is_done_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", os.fspath(tmp_path / "gone"))
    nobody = Guardian()
    nobody.watch(2**22, "none")
    nobody.close()
