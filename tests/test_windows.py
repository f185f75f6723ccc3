import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge import windows

HOME = Path(__file__).parent.parent


def answers(*lines: str) -> list[dict[str, Any]]:
    """What the loop answers to these lines and the end of input."""
    stdin, to_agent = os.pipe()
    from_agent, stdout = os.pipe()
    os.write(to_agent, "\n".join(lines).encode())
    os.close(to_agent)
    assert windows.serve(stdin, stdout) == 0
    os.close(stdout)
    with os.fdopen(from_agent, "rb") as said:
        received = [json.loads(line) for line in said]
    os.close(stdin)
    return received


def request(call: int, method: str, params: Any = None) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": call, "method": method, "params": params})


HELLO = request(1, "initialize", {"protocolVersion": 1})


def test_the_handshake_and_a_session_succeed() -> None:
    hello, session = answers(HELLO, request(2, "session/new", {"cwd": "C:\\"}))
    assert hello["result"]["protocolVersion"] == 1
    assert session["result"]["sessionId"]


@pytest.mark.parametrize("method", ["session/prompt", "session/load", "no/such"])
def test_everything_else_says_where_to_run_it(method: str) -> None:
    _, refused = answers(HELLO, request(2, method))
    error = refused["error"]
    assert error["code"] == -32603
    assert "WSL" in error["message"]
    assert error["data"] == {
        "kind": "config",
        "details": error["message"],
        "error": error["message"],
    }


def test_a_bad_handshake_and_a_bad_line_are_answered() -> None:
    bad_version = request(1, "initialize", {"protocolVersion": "1"})
    said = answers(bad_version, "nope", '{"jsonrpc":"2.0","method":"session/cancel"}')
    assert sorted(one["error"]["code"] for one in said) == [-32700, -32602]


def started_without_posix(arguments: list[str], typed: bytes) -> subprocess.CompletedProcess[bytes]:
    """The program, with these arguments, where the modules are missing that Windows lacks."""
    start = (
        "import sys\n"
        "missing = ('fcntl', 'termios', 'pwd', 'grp', 'resource', 'pty', 'tty')\n"
        "sys.modules.update(dict.fromkeys(missing))\n"
        f"sys.path.insert(0, {str(HOME)!r})\n"
        f"sys.argv[1:] = {arguments!r}\n"
        "from bridge.__main__ import main\n"
        "sys.exit(main())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", start], input=typed, capture_output=True, check=False, timeout=30
    )


def test_the_start_chooses_it_where_a_posix_module_is_missing() -> None:
    typed = f"{HELLO}\n{request(2, 'session/prompt')}\n".encode()
    run = started_without_posix([], typed)
    said = [json.loads(line) for line in run.stdout.splitlines()]
    assert [one["id"] for one in said] == [1, 2]
    assert said[1]["error"]["message"] == windows.SENTENCE
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [["--help"], ["setup", "zed"], ["sessions", "list"]])
def test_every_command_says_where_to_run_it(arguments: list[str]) -> None:
    run = started_without_posix(arguments, b"")
    assert (run.returncode, run.stdout) == (1, b"")
    assert run.stderr.decode() == f"{windows.SENTENCE}\n"
