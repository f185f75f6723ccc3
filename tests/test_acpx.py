"""acpx, a command-line client, lists a stored session, loads it and goes on with it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.npm import installed, node
from tests.sdk_stage import stage

Run = Callable[..., str]


@pytest.fixture(scope="module")
def acpx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed("acpx@0.19.1", tmp_path_factory.mktemp("acpx")) / "acpx" / "dist" / "cli.js"


def runner(folder: Path, acpx: Path, config: str) -> Run:
    """Runs acpx on the workspace; gives what it printed."""
    agent = f"{sys.executable} -I -m bridge --config {config}"
    flags = ["--cwd", str(folder / "work"), "--approve-all", "--format", "json", "--agent", agent]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home")}

    def run(*words: str) -> str:
        done = subprocess.run(
            [node(), str(acpx), *flags, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done
        return done.stdout.decode()

    return run


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
