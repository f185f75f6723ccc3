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


def start_without_posix(
    *arguments: str, given: str = "", name: str = os.name
) -> "subprocess.CompletedProcess[bytes]":
    """Run the program without the modules that native Windows lacks, on a system of this name."""
    start = (
        "import sys\n"
        "missing = ('fcntl', 'termios', 'pwd', 'grp', 'resource', 'pty', 'tty')\n"
        "sys.modules.update(dict.fromkeys(missing))\n"
        f"sys.path.insert(0, {str(HOME)!r})\n"
        f"sys.argv[1:] = {arguments!r}\n"
        "from bridge.__main__ import main\n"
        "if sys.argv[1:]:\n"
        "    import os, bridge.cli\n"
        f"    os.name = {name!r}\n"
        "sys.exit(main())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", start],
        input=given.encode(),
        capture_output=True,
        check=False,
        timeout=30,
    )


def test_the_start_chooses_it_where_a_posix_module_is_missing() -> None:
    run = start_without_posix(given=f"{HELLO}\n{request(2, 'session/prompt')}\n")
    said = [json.loads(line) for line in run.stdout.splitlines()]
    assert [one["id"] for one in said] == [1, 2]
    assert said[1]["error"]["message"] == windows.SENTENCE
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.parametrize(
    "command", [["check"], ["setup", "zed"], ["sessions", "list"], ["demo"], ["login"]]
)
def test_the_other_commands_say_it_too(command: list[str]) -> None:
    run = start_without_posix(*command, name="nt")
    assert (run.returncode, run.stdout) == (1, b"")
    assert run.stderr.decode().strip() == windows.SENTENCE


def test_the_version_is_told_there() -> None:
    run = start_without_posix("--version", name="nt")
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.startswith(b"responses-acp ")
