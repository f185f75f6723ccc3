"""The official TypeScript SDK drives a whole turn with a permission request."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.npm import installed, tool
from tests.sdk_stage import COMMAND, stage

SDK = "@agentclientprotocol/sdk@2.4.0"
CLIENT = Path(__file__).parent / "sdk" / "client.mjs"


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(SDK, tmp_path_factory.mktemp("sdk"))


@pytest.mark.slow
def test_a_turn_with_a_permission_request(sdk: Path, tmp_path: Path) -> None:
    with stage(tmp_path) as config:
        work = tmp_path / "work"
        agent = [sys.executable, "-I", "-m", "bridge", "--config", config]
        command = [*(tool("node") or []), str(CLIENT), str(sdk), str(work), *agent]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
        done = subprocess.run(
            command, capture_output=True, env=environment, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")
    told = json.loads(done.stdout)
    assert (told["version"], told["stopReason"], told["asked"]) == (1, "end_turn", [COMMAND])
    assert told["shown"]["tool_call"] == 1
    assert told["shown"]["agent_message_chunk"] >= 1
    assert (work / "made.txt").read_text() == "allowed\n"
