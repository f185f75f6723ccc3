"""The official TypeScript SDK drives a whole turn, then lists the session, loads it and goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.npm import installed, node
from tests.sdk_stage import COMMAND, TURNS, check_demo, demo, stage, surroundings

CLIENTS = Path(__file__).parent / "sdk"


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    modules = installed("@agentclientprotocol/sdk@2.4.0", tmp_path_factory.mktemp("sdk"))
    return modules / "@agentclientprotocol" / "sdk"


def told(sdk: Path, folder: Path, config: str, session: str) -> Any:
    """What the client tells of one turn in a new session, or in a stored one."""
    agent = [sys.executable, "-I", "-m", "bridge", "--config", config]
    command = [node(), str(CLIENTS / "client.mjs"), str(sdk), str(folder / "work"), session, *agent]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home")}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_turn_with_a_permission_request_and_another_after_a_load(
    sdk: Path, tmp_path: Path
) -> None:
    with stage(tmp_path) as config:
        first = told(sdk, tmp_path, config, "new")
        session = first["sessionId"]
        second = told(sdk, tmp_path, config, session)
    assert (first["version"], first["stopReason"], first["asked"]) == (1, "end_turn", [COMMAND])
    assert first["sessions"] == []
    assert first["shown"]["tool_call"] == 1
    assert first["shown"]["agent_message_chunk"] >= 1
    assert (tmp_path / "work" / "made.txt").read_text() == "allowed\n"
    (listed,) = second["sessions"]
    assert (listed["sessionId"], listed["title"]) == (session, "Run it")
    assert second["loaded"]["user_message_chunk"] == second["loaded"]["tool_call"] == 1
    assert (second["stopReason"], second["asked"]) == ("end_turn", [])
    assert "tool_call" not in second["shown"]


@pytest.mark.slow
def test_an_edit_a_permission_a_cancel_and_another_prompt(sdk: Path, tmp_path: Path) -> None:
    agent, script = demo(tmp_path), str(CLIENTS / "turns.mjs")
    command = [node(), script, str(sdk), str(tmp_path / "work"), "ls", json.dumps(TURNS), *agent]
    environment = {"PATH": os.environ["PATH"], **surroundings(tmp_path)}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == {
        "asked": ["cat notes.txt", "Edit notes.txt", "ls", "ls"],
        "reasons": ["end_turn", "cancelled", "end_turn"],
    }
    check_demo(tmp_path, TURNS)
