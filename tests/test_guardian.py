"""What becomes of commands when nothing of ours runs any more."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_process import LONG, sleepers, start, until
from tools.guardian import Guardian, Left, end, left, tidy
from tools.offspring import MARK
from tools.protected import Watched, told, watched_of

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

LEAVES = f"setsid sleep {LONG} & (setsid sleep {LONG} &) ; trap '' TERM; sleep {LONG}"
"""A command with a child that has left its group, and one that has left its tree too."""


@pytest.fixture
def guardian(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guardian]:
    monkeypatch.setattr("tools.guardian._PATIENCE", 60.0)  # however busy the machine is
    made = Guardian()
    yield made
    made.close()


def begin(mark: str) -> "subprocess.Popen[bytes]":
    return start("env", f"{MARK}={mark}", "bash", "-c", LEAVES)


def test_what_was_begun_and_has_not_ended_is_left() -> None:
    lines = ["+ 1 a\n", "+ 2 b\n", "- 1 a\n", "- 7 z\n", "+ 3 c\n", "+ 1 d\n"]
    assert left(lines).running == {1: "d", 2: "b", 3: "c"}
    assert left([]) == Left()


def test_places_are_left_until_they_were_looked_at() -> None:
    lines = ['= 1 ["/a b"]\n', "= 1 []\n", "= 2 x\n", "+ 2 b\n", "/ 2\n", "/ 7\n"]
    assert left(lines) == Left({2: "b"}, {"1": ['["/a b"]\n', "[]\n"]})


async def test_at_the_end_what_was_planted_is_put_aside(guardian: Guardian, tmp_path: Path) -> None:
    def planted(name: str) -> list[str]:
        (tmp_path / name).touch()
        return told([Watched(f"{tmp_path}/{name}", None)])

    with guardian.tidying(planted("seen")):
        pass
    with guardian.tidying(planted("a\udcffb")), guardian.tidying(planted("n" * 200)):
        with guardian.tidying(["x" * 5000, *planted("c")]):
            guardian.close()
        await until(lambda: len(list(tmp_path.glob("*.blocked"))) == 3)
    assert (tmp_path / "seen").exists()


async def test_one_that_was_killed_is_followed_by_one_that_knows_as_much(
    guardian: Guardian, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).touch()
    places = [told([Watched(f"{tmp_path}/{name}", None)]) for name in ("a", "b")]
    with guardian.tidying(places[0]):
        await until(lambda: guardians() != [])
        (found,) = guardians()
        os.kill(found, signal.SIGKILL)
        await until(lambda: b" Z " in Path(f"/proc/{found}/stat").read_bytes())
        with guardian.tidying(places[1]):
            guardian.close()
            await until(
                lambda: {path.name for path in tmp_path.iterdir()} == {"a.blocked", "b.blocked"}
            )


def guardians() -> list[int]:
    """Those among our children."""
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text(encoding="ascii")
    lines = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in listed.split()}
    return [pid for pid, line in lines.items() if b"tools.guardian" in line]


def test_what_is_left_of_places_is_tidied(tmp_path: Path) -> None:
    places = [Watched(f"{tmp_path}/a", None), Watched(f"{tmp_path}/b", None, "x", ("y/z",))]
    lines = [f"{line}\n" for line in told(places)]
    assert watched_of(lines) == places
    (tmp_path / "a").touch()
    tidy({})
    tidy({"1": lines})
    assert [path.name for path in tmp_path.iterdir()] == ["a.blocked"]


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
