"""acpx, a command-line client, lists a stored session, loads it and goes on with it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.npm import installed, node
from tests.recorder import play
from tests.sdk_stage import HOME, stage

Run = Callable[..., str]


@pytest.fixture(scope="module")
def acpx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed("acpx@0.19.1", tmp_path_factory.mktemp("acpx")) / "acpx" / "dist" / "cli.js"


def runner(folder: Path, acpx: Path, config: str) -> Run:
    """Runs acpx on the workspace; gives what it printed."""

    def run(*words: str) -> str:
        process = begun(folder, acpx, config, *words)
        said, complaint = process.communicate(timeout=120)
        assert process.returncode == 0, (said, complaint)
        return said.decode()

    return run


def begun(folder: Path, acpx: Path, config: str, *words: str) -> subprocess.Popen[bytes]:
    """An acpx that has begun to do this on the workspace; what its agent says is recorded."""
    recorder = f"{sys.executable} -m tests.recorder {folder / 'record'}"
    agent = f"{recorder} {sys.executable} -I -m bridge --config {config}"
    flags = ["--cwd", str(folder / "work"), "--approve-all", "--format", "json", "--agent", agent]
    home = {"HOME": str(folder / "home"), "PYTHONPATH": str(HOME)}
    return subprocess.Popen(
        [node(), str(acpx), *flags, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], **home},
    )


@pytest.mark.slow
def test_a_session_is_listed_and_loaded_and_goes_on(acpx: Path, tmp_path: Path) -> None:
    with stage(tmp_path) as config:
        run = runner(tmp_path, acpx, config)
        run("sessions", "new")
        run("prompt", "Run it")
        assert (tmp_path / "work" / "made.txt").read_text() == "allowed\n"
        run("sessions", "close")  # ends the agent, which acpx keeps for the next prompt otherwise
        (listed,) = json.loads(run("sessions", "list"))["sessions"]
        assert (listed["title"], listed["cwd"]) == ("Run it", str(tmp_path / "work"))
        session = listed["sessionId"]
        run("sessions", "new", "--resume-session", session)
        frames: list[Any] = [json.loads(line) for line in run("prompt", "Again").splitlines()]
        asked = {frame["id"]: frame for frame in frames if "method" in frame and "id" in frame}
        answers = {frame["id"]: frame["result"] for frame in frames if "result" in frame}
        opened = [
            call for call, frame in asked.items() if frame["method"].partition("/")[0] == "session"
        ]
        assert [asked[call]["params"]["sessionId"] for call in opened] == [session] * 2
        assert [answers[call].get("stopReason") for call in opened] == [None, "end_turn"]
        assert asked[opened[0]]["method"] in ("session/load", "session/resume")
        run("sessions", "close")
        (after,) = json.loads(run("sessions", "list"))["sessions"]
        assert after["sessionId"] == session


@pytest.mark.slow
def test_an_edit_a_permission_a_cancel_and_another_prompt(acpx: Path, tmp_path: Path) -> None:
    with stage(tmp_path) as config:
        run = runner(tmp_path, acpx, config)
        run("sessions", "new")
        run("prompt", "Write it")
        assert (tmp_path / "work" / "new.txt").read_text() == "new\n"
        waiting = begun(tmp_path, acpx, config, "prompt", "Wait")
        shown(tmp_path / "work" / "started.txt", waiting)
        run("cancel")
        said, _ = waiting.communicate(timeout=60)
        frames: list[Any] = [json.loads(line) for line in said.splitlines()]
        results: list[Any] = [one["result"] for one in frames if one.get("result")]
        assert [one["stopReason"] for one in results if "stopReason" in one] == ["cancelled"]
        assert '"stopReason":"end_turn"' in run("prompt", "Again")
        run("sessions", "close")
    sent = play(tmp_path / "record")
    allowed = [
        one["result"]["outcome"]["outcome"] for one in sent if "outcome" in one.get("result", {})
    ]
    assert allowed == ["selected"] * 2, "the file and the command"
    methods = [one.get("method") for one in sent]
    assert methods.count("session/prompt") == 3
    assert methods.count("session/cancel") == 1


def shown(file: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until there is this file, which is made while the process runs."""
    while not file.exists():
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
        assert process.poll() is None, process.communicate()
