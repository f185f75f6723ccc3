"""The process: where it may be started, what it loads when, and how it ends.

Where the program behind the first answer does not matter, a small one stands in for it, which
tells what it was given.
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).parent.parent
PATH_ONLY = {"PATH": os.environ["PATH"]}


def line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


PARAMS = {"protocolVersion": 1, "clientCapabilities": {"terminal": True}}
HELLO = line({"id": 1, "method": "initialize", "params": PARAMS})
LIST = line({"id": 2, "method": "session/list"})


def run(
    argv: list[str],
    given: bytes | int = HELLO,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] = PATH_ONLY,
) -> subprocess.CompletedProcess[bytes]:
    """Run a process to its end; `given`: what it reads, or a descriptor to read from."""
    piped = isinstance(given, bytes)
    return subprocess.run(
        argv,
        input=given if piped else None,
        stdin=None if piped else given,
        capture_output=True,
        cwd=cwd,
        env=env,
        timeout=30,
        check=False,
    )


def said(ended: subprocess.CompletedProcess[bytes]) -> list[Any]:
    """What went out, from a process that ended well."""
    assert (ended.returncode, ended.stderr) == (0, b"")
    return [json.loads(one) for one in ended.stdout.splitlines()]


# -- with a program that tells what it was given -------------------------------------------------

ECHO = """
import sys
LOADED = sorted(sys.modules)
import json, os

def serve(config, stdin, stdout, received, hello):
    while data := os.read(stdin, 65536):
        received += data
    told = dict(config=config, received=received.decode(), hello=hello, loaded=LOADED,
                inherited=[os.get_inheritable(fd) for fd in (stdin, stdout)])
    os.write(stdout, json.dumps(told).encode() + b"\\n")
    return 0
"""


def program(folder: Path, app: str) -> list[str]:
    """The command that starts our first answer with another program behind it."""
    for name in ("__init__.py", "__main__.py", "core/__init__.py", "core/hello.py"):
        (folder / "bridge" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOME / "bridge" / name, folder / "bridge" / name)
    (folder / "bridge" / "lean.py").write_text(app, encoding="utf-8")
    start = f"import sys; sys.path.insert(0, {str(folder)!r}); from bridge.__main__ import main"
    return [sys.executable, "-I", "-c", f"{start}; sys.exit(main())"]


@pytest.fixture
def echo(tmp_path: Path) -> list[str]:
    return program(tmp_path / "home", ECHO)


def test_the_handshake_is_answered_before_the_program_is_loaded(echo: list[str]) -> None:
    hello, told = said(run(echo, HELLO + LIST))
    assert hello["id"] == 1
    assert hello["result"]["protocolVersion"] == 1
    assert told["hello"] == PARAMS
    assert told["received"] == LIST.decode()


def test_next_to_nothing_is_loaded_when_it_is_answered(echo: list[str]) -> None:
    bare = run([sys.executable, "-I", "-c", "import sys; print(*sys.modules)"])
    _, told = said(run(echo))
    ours = {"bridge", "bridge.__main__", "bridge.lean", "bridge.core", "bridge.core.hello"}
    more = set(told["loaded"]) - set(bare.stdout.decode().split()) - ours
    assert more <= {"_json", "fcntl"}


BAD_VERSION = line({"id": 1, "method": "initialize", "params": {"protocolVersion": "1"}})


@pytest.mark.parametrize(
    "given",
    [
        LIST + HELLO,
        b"\n" + HELLO,
        b"nope\n",
        b"{nope\n",
        HELLO.replace(b"}}", b"},}"),
        HELLO.replace(b"initialize", b"initialize\t"),
        HELLO.replace(b"initialize", b"initialize\\x"),
        HELLO.rstrip(b"\n"),
        BAD_VERSION,
        line({"id": "\u00e9", "method": "initialize", "params": PARAMS}),
        b"x" * 200_000 + b"\n" + HELLO,
    ],
)
def test_whatever_else_comes_first_is_left_to_the_program(echo: list[str], given: bytes) -> None:
    (told,) = said(run(echo, given))
    assert (told["hello"], told["received"]) == (None, given.decode())


def test_nothing_at_all_ends_without_loading_the_program(tmp_path: Path) -> None:
    assert said(run(program(tmp_path, "raise SystemError"), b"")) == []


def test_the_config_file_is_handed_on(echo: list[str]) -> None:
    assert said(run([*echo, "--config", "x.toml"]))[1]["config"] == "x.toml"
    assert said(run(echo))[1]["config"] is None


@pytest.mark.parametrize("blocking", [True, False])
def test_one_socket_may_be_both_ends(echo: list[str], blocking: bool) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(blocking)
        end = theirs.fileno()
        with subprocess.Popen(echo, stdin=end, stdout=end, env=PATH_ONLY) as process:
            ours.settimeout(30)
            with ours.makefile("rb") as lines:
                ours.sendall(HELLO)
                assert json.loads(lines.readline())["id"] == 1
                ours.sendall(LIST)
                ours.shutdown(socket.SHUT_WR)
                assert json.loads(lines.readline())["received"] == LIST.decode()
            assert process.wait(30) == 0


def consumed(fd: int) -> None:
    """Wait until everything in a pipe was read."""
    deadline = time.monotonic() + 30
    while fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0") != b"\0\0\0\0":
        assert time.monotonic() < deadline, "the process does not read"


def test_input_that_does_not_wait_is_waited_for(echo: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with subprocess.Popen(echo, stdin=read_end, stdout=subprocess.PIPE, env=PATH_ONLY) as process:
        for part in (HELLO[:20], HELLO[20:40], HELLO[40:] + LIST):
            os.write(write_end, part)
            consumed(write_end)
        os.close(write_end)
        out, _ = process.communicate(timeout=30)
    os.close(read_end)
    assert [json.loads(one).get("received") for one in out.splitlines()] == [None, LIST.decode()]


def test_input_may_be_a_file(echo: list[str], tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(HELLO + LIST)
    with (tmp_path / "in").open("rb") as file:
        assert said(run(echo, file.fileno()))[1]["received"] == LIST.decode()


def test_nobody_else_reads_or_writes_the_protocol(tmp_path: Path) -> None:
    app = """
import os, subprocess, sys
def serve(config, stdin, stdout, received, hello):
    print("printed", flush=True)
    os.write(1, b"written\\n")
    child = "import os, sys; print('read', len(sys.stdin.read()))"
    subprocess.run([sys.executable, "-c", child], check=True)
    for fd in (stdin, stdout):
        child = f"import os; os.fstat({fd})"
        ended = subprocess.run([sys.executable, "-c", child], close_fds=False, capture_output=True)
        print(b"Bad file descriptor" in ended.stderr)
    return 0
"""
    # More than is read at once, so that there is something left for others to take.
    ended = run(program(tmp_path, app), HELLO + LIST * 5000)
    assert len(ended.stdout.splitlines()) == 1
    assert ended.stderr == b"printed\nwritten\nread 0\nTrue\nTrue\n"


def test_stderr_may_be_closed(echo: list[str]) -> None:
    ended = run(["sh", "-c", 'exec "$@" 2>&-', "sh", *echo])
    assert len(said(ended)) == 2


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_without_the_editor_s_files_the_start_says_so(echo: list[str], closed: str) -> None:
    ended = run(["sh", "-c", f'exec "$@" {closed}', "sh", *echo])
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"responses-acp: fatal: standard input and output lead to")


# -- the end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("app", "shown"),
    [
        ("import no_such_module", b"ModuleNotFoundError: No module named 'no_such_module' ("),
        ("def serve(*a): raise PermissionError(13, 'denied', '/x')", b"PermissionError: [Errno"),
        ("def serve(*a): raise ValueError('a secret')", b"ValueError ("),
        (
            "def serve(*a):\n"
            "    try: {}['a secret']\n"
            "    except KeyError as e: raise ExceptionGroup('g', [ExceptionGroup('h', [e])])",
            b"KeyError (",
        ),
    ],
)
def test_a_fault_that_ends_the_program_is_one_line(tmp_path: Path, app: str, shown: bytes) -> None:
    ended = run(program(tmp_path, app))
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["id"] == 1
    assert ended.stderr.startswith(b"responses-acp: fatal: " + shown)
    assert ended.stderr.count(b"\n") == 1
    assert b"secret" not in ended.stderr


@pytest.mark.parametrize(
    ("app", "code"),
    [
        ("def serve(*a): return 0", 0),
        ("def serve(*a): return 3", 3),
        ("def serve(*a): raise BrokenPipeError", 0),
        ("def serve(*a): raise KeyboardInterrupt", 0),
        # A thread that never ends holds nobody up.
        (
            "import threading\n"
            "def serve(*a): threading.Thread(target=threading.Event().wait).start(); return 0",
            0,
        ),
    ],
)
def test_the_end_is_quick_and_silent(tmp_path: Path, app: str, code: int) -> None:
    ended = run(program(tmp_path, app))
    assert (ended.returncode, ended.stderr) == (code, b"")


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_first_line_is_like_the_end_of_input(
    echo: list[str], kind: signal.Signals
) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(echo, stdin=pipe, stdout=pipe, stderr=pipe, env=PATH_ONLY) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"half')
        process.stdin.flush()
        consumed(process.stdin.fileno())
        process.send_signal(kind)
        out, complaints = process.communicate(timeout=30)
        assert (process.returncode, out, complaints) == (0, b"", b"")


@pytest.mark.parametrize("kind", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_while_the_program_loads_is_like_the_end_of_input(
    tmp_path: Path, kind: str
) -> None:
    """Compiled libraries make errors of their own out of an exception that comes in between."""
    app = f"""
import os, signal
try:
    os.kill(os.getpid(), signal.{kind})
    import json
except BaseException as error:
    raise ImportError("cannot import what is needed") from error
def serve(*a):
    return 3
"""
    ended = run(program(tmp_path, app))
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert json.loads(ended.stdout)["id"] == 1


def test_an_editor_that_is_gone_is_like_the_end_of_input(echo: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    ended = subprocess.run(
        echo, input=HELLO, stdout=write_end, stderr=subprocess.PIPE, timeout=30, check=False
    )
    os.close(write_end)
    assert (ended.returncode, ended.stderr) == (0, b"")


# -- the whole program, where editors start it -----------------------------------------------------

SCRIPT = "import sys\nfrom bridge.__main__ import main\nsys.exit(main())\n"


@pytest.fixture(params=["-m", "-I -m", "script"])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The commands by which editors start us."""
    if request.param == "script":
        script = tmp_path / "bin" / "responses-acp"
        script.parent.mkdir()
        script.write_text(SCRIPT, encoding="utf-8")
        return [sys.executable, str(script)]
    return [sys.executable, *request.param.split(), "bridge"]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """A workspace whose files bear the names of ours and of the standard library's."""
    folder = tmp_path / "workspace"
    (folder / "tools").mkdir(parents=True)
    for name in ("tools/__init__.py", "tools.py", "json.py", "typing.py", "pydantic.py"):
        (folder / name).write_text("raise SystemExit('theirs')\n", encoding="utf-8")
    yield folder
    assert not list(folder.rglob("__pycache__"))


def conversation(cwd: Path) -> bytes:
    params: Any = {"cwd": str(cwd), "mcpServers": []}
    return HELLO + line({"id": 2, "method": "session/new", "params": params})


@pytest.mark.parametrize("python_path", [None, ".", "tools:.", "absolute"])
def test_a_hostile_workspace_does_not_matter(
    agent: list[str], workspace: Path, tmp_path: Path, python_path: str | None
) -> None:
    env = {**PATH_ONLY, "HOME": str(tmp_path)}
    if python_path is not None:
        env["PYTHONPATH"] = str(workspace) if python_path == "absolute" else python_path
    hello, *more = said(run(agent, conversation(workspace), cwd=workspace, env=env))
    assert hello["result"]["protocolVersion"] == 1
    assert [one["result"]["sessionId"] for one in more if one.get("id") == 2]


def test_a_working_directory_that_was_deleted_does_not_matter(
    agent: list[str], tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    shell = ["sh", "-c", 'rmdir ../gone && exec "$@"', "sh", *agent]
    env = {**PATH_ONLY, "PYTHONPATH": str(gone)}  # with a relative one Python itself does not start
    hello, *more = said(run(shell, conversation(tmp_path), cwd=gone, env=env))
    assert hello["result"]["protocolVersion"] == 1
    assert [one["result"]["sessionId"] for one in more if one.get("id") == 2]


def test_nothing_but_a_path_is_needed(agent: list[str], tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(conversation(tmp_path))
    with (tmp_path / "in").open("rb") as file:
        hello, *more = said(run(agent, file.fileno(), cwd=tmp_path))
    assert hello["id"] == 1
    assert [one["result"]["sessionId"] for one in more if one.get("id") == 2]


def test_a_handshake_in_an_unusual_form_is_answered_by_the_program() -> None:
    unusual = line({"id": "\u00e9", "method": "initialize", "params": PARAMS})
    ended = run([sys.executable, "-m", "bridge"], BAD_VERSION + b"\r\n" + unusual, cwd=HOME)
    refused, hello = said(ended)
    assert refused["error"]["code"] == -32602
    assert (hello["id"], hello["result"]["protocolVersion"]) == ("\u00e9", 1)
