import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from tools import offspring, process
from tools.base import Command, Ended
from tools.environment import child_environment
from tools.prctl import adopt_orphans, hide_memory
from tools.process import LocalShell

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="needs bash"),
]

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: /proc")


@pytest.fixture(autouse=True)
def parent() -> None:
    """We are the parent of what commands leave, and of nothing that earlier tests left."""
    adopt_orphans()
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


@pytest.fixture
def shell(tmp_path: Path) -> LocalShell:
    return LocalShell(child_environment(os.environ, (), (), str(tmp_path)), str(tmp_path))


LONG = f"1000.{os.getpid()}"
"""Seconds that nobody else on this machine sleeps for just now. In commands it stands as LONG."""


def ignore(_text: str) -> None:
    return


async def run(
    shell: LocalShell,
    command: str,
    *,
    timeout: float = 20,  # noqa: ASYNC109 (as the port has it)
    output: Callable[[str], None] = ignore,
) -> Ended:
    with anyio.fail_after(30):
        command = command.replace("LONG", LONG)
        return await shell.run(Command(command, shell.scratch, timeout), output)


def start(*argv: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(argv, start_new_session=True)


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not is_so():  # noqa: ASYNC110 (nothing tells of processes)
            await anyio.sleep(0.01)


def sleepers() -> list[str]:
    """Processes, zombies left out, that sleep for so long."""
    return [args for args, _, state in processes() if args == f"sleep {LONG}" and state != "Z"]


def zombies() -> list[str]:
    return [args for args, parent, state in processes() if parent == os.getpid() and state == "Z"]


def processes() -> list[tuple[str, int, str]]:
    """Command line, parent and state letter of every process."""
    listing = subprocess.run(
        ["ps", "-eo", "stat=,ppid=,args="], capture_output=True, text=True, check=True
    )
    fields = (line.split(maxsplit=2) for line in listing.stdout.splitlines())
    return [(args, int(parent), state[0]) for state, parent, args in fields]


async def test_a_command_that_ends_tells_its_output_and_code(shell: LocalShell) -> None:
    async def check(command: str, ended: Ended) -> None:
        assert await run(shell, command) == ended

    await check("echo hi", Ended("hi\n", "", 0))
    await check("echo out; echo err >&2; exit 3", Ended("out\n", "err\n", 3))
    await check("kill -SEGV $$", Ended("", "", None, signal="SIGSEGV"))
    await check("kill -40 $$", Ended("", "", None, signal="SIG40"))
    await check("printf 'a\\xffb'", Ended("a\ufffdb", "", 0))
    await check("pwd", Ended(f"{shell.scratch}\n", "", 0))
    await check("cat", Ended("", "", 0))
    await check('false; echo $?\necho "$0" >&2', Ended("1\n", f"{process.bash()}\n", 0))


async def test_a_folder_that_is_gone_is_an_os_error(shell: LocalShell) -> None:
    with pytest.raises(FileNotFoundError), anyio.fail_after(5):
        await shell.run(Command("true", "/nowhere/at/all", 5), ignore)


async def test_a_command_of_any_length_runs(shell: LocalShell) -> None:
    long = "x" * 200_000
    ended = await run(
        shell, f"# {long}\necho ${{#BASH_SOURCE}}; for f in /proc/$$/fd/[3-9]; do :; done"
    )
    assert ended.code == 0
    ended = await run(shell, f"v={long}; echo ${{#v}}; exit 4")
    assert (ended.stdout, ended.code) == ("200000\n", 4)
    assert (await run(shell, "ls")).stdout == ""


@needs_proc
async def test_a_command_has_no_open_files_but_the_three_and_no_terminal(shell: LocalShell) -> None:
    for padding in ("", "#" + "x" * 200_000 + "\n"):
        ended = await run(shell, f"{padding}ls /proc/self/fd; true")
        # 3 is the listing itself.
        assert ended.stdout == "0\n1\n2\n3\n"
    assert (await run(shell, "readlink /proc/self/fd/0")).stdout == "/dev/null\n"
    ended = await run(shell, "echo x > /dev/tty")
    assert ended.code == 1


async def test_output_comes_piece_by_piece_while_the_command_runs(
    shell: LocalShell, tmp_path: Path
) -> None:
    pieces: list[str] = []

    def output(text: str) -> None:
        pieces.append(text)
        (tmp_path / f"got{len(pieces)}").touch()

    wait = "until [ -e got{} ]; do sleep 0.01; done; "
    command = "printf '\\e[1mone'; " + wait.format(1) + "echo two >&2; " + wait.format(2) + "echo"
    ended = await run(shell, command, output=output)
    assert pieces == ["one", "two\n", "\n"]
    assert (ended.stdout, ended.stderr) == ("one\n", "two\n")


async def test_a_flood_of_output_is_cut(shell: LocalShell) -> None:
    ended = await run(shell, "head -c 30000000 /dev/zero | tr '\\0' x; echo; echo end")
    assert ended.truncated
    assert len(ended.stdout) < 70_000
    assert re.search(r"x\n\[\.\.\. 29\d{6} bytes dropped \.\.\.\]\nx", ended.stdout)
    assert ended.stdout.endswith("x\nend\n")


async def test_output_through_another_process_is_waited_for(shell: LocalShell) -> None:
    ended = await run(shell, "exec > >(tee log) 2>&1; echo hi")
    assert (ended.stdout, ended.code) == ("hi\n", 0)
    assert (await run(shell, "cat log")).stdout == "hi\n"


async def test_a_command_that_never_falls_silent_ends_all_the_same(
    shell: LocalShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LAST_WORDS", 0.2)
    ended = await run(shell, "yes & sleep 0.1")
    assert ended.truncated
    assert ended.code == 0


async def test_a_time_out_is_told_apart_from_a_signal(
    shell: LocalShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_GRACE", 0.2)

    async def check(command: str, ended: Ended) -> None:
        assert await run(shell, command, timeout=0.3) == ended

    await check("echo a; exec sleep LONG", Ended("a\n", "", None, "SIGTERM", timed_out=True))
    await check("trap '' TERM; sleep LONG", Ended("", "", None, "SIGKILL", timed_out=True))
    await check("trap 'exit 0' TERM; sleep LONG & wait", Ended("", "", 0, timed_out=True))
    assert sleepers() == []


@needs_proc
@pytest.mark.parametrize(
    "left",
    [
        "sleep LONG &",
        "sleep LONG > /dev/null 2>&1 & disown",
        "(sleep LONG &)",
        "trap '' TERM HUP; nohup sleep LONG &",
        "setsid sleep LONG &",
        "(setsid bash -c '(sleep LONG &) ; sleep LONG' &)",
        "setsid -f bash -c 'env -i sleep LONG & wait'",
        "set -m; (env -i sleep LONG &)",
        "setsid -f bash -c 'setsid -f sleep LONG; sleep LONG'",
    ],
)
async def test_nothing_a_command_started_is_left(shell: LocalShell, left: str) -> None:
    assert (await run(shell, f"{left}\necho done")).stdout == "done\n"
    assert sleepers() == []
    assert zombies() == []


@needs_proc
@pytest.mark.parametrize(
    "command",
    [
        "exec sleep LONG",
        "trap '' TERM; sleep LONG; sleep LONG",
        "setsid bash -c 'sleep LONG & sleep LONG' & sleep LONG",
        "env -i setsid sleep LONG; true",
    ],
)
async def test_a_cancelled_command_is_gone_at_once(shell: LocalShell, command: str) -> None:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, shell, command)
            await until(lambda: sleepers() != [])
            tasks.cancel_scope.cancel()
    assert sleepers() == []
    assert zombies() == []


@needs_proc
async def test_other_processes_and_other_commands_are_left_alone(shell: LocalShell) -> None:
    other = start("sleep", LONG)
    dead = start("false")
    await until(lambda: len(zombies()) == 1)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, shell, "setsid sleep LONG; true")
            await until(lambda: len(sleepers()) == 2)
            await run(shell, "setsid sleep LONG &")
            assert len(sleepers()) == 2
            tasks.cancel_scope.cancel()
        assert len(sleepers()) == 1
        assert dead.wait() == 1
    finally:
        other.kill()
        other.wait()


@needs_proc
async def test_orphans_that_died_by_themselves_are_reaped(shell: LocalShell) -> None:
    daemon = "setsid bash -c '(: & exec true) & wait' > /dev/null 2>&1"
    await run(shell, f"{daemon}; (: &); (sleep 0.01 &); sleep 0.05")
    assert zombies() == []


async def test_what_a_listener_raises_ends_the_command(shell: LocalShell) -> None:
    def output(_text: str) -> None:
        raise LookupError

    with pytest.raises(ExceptionGroup), anyio.fail_after(10):
        await shell.run(Command(f"echo a; sleep {LONG}", "/", 9), output)
    assert sleepers() == []


async def test_a_system_without_process_handles_waits_in_a_thread() -> None:
    child = start("true")
    with anyio.fail_after(10):
        await process.exit_in_thread(child)
    assert child.returncode == 0
    # A process that has been reaped has no handle either.
    await process.exit_of(child)


async def test_a_vanished_process_is_no_error() -> None:
    child = start("true")
    child.wait()
    offspring.signal_group(child.pid, signal.SIGTERM)
    assert offspring.kill_tree(child.pid) == set()
    assert not offspring.sweep(child.pid, "", {child.pid})


def test_bash_is_found_by_an_absolute_path_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bash").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".")
    assert Path(process.bash()).is_absolute()
    monkeypatch.setattr(process, "_BASH_FOLDERS", ())
    with pytest.raises(FileNotFoundError):
        process.bash()


@needs_proc
def test_our_memory_is_hidden_on_request() -> None:
    libc = ctypes.CDLL(None)
    get, put = 3, 4
    try:
        assert hide_memory()
        assert libc.prctl(get) == 0
    finally:
        libc.prctl(put, 1)


_SECRETIVE = """
import os, sys, anyio
from tools.base import Command
from tools.prctl import adopt_orphans, hide_memory
from tools.process import LocalShell
from tools.environment import child_environment
assert adopt_orphans() and hide_memory()
async def main():
    shell = LocalShell(child_environment(os.environ, (), (), "/tmp"), "/tmp")
    for command in sys.argv[1:]:
        ended = await shell.run(Command(command, "/", 5), lambda text: None)
        print(ended.stdout, end="")
anyio.run(main)
"""


@needs_proc
@pytest.mark.skipif(
    sys.platform == "linux" and os.getuid() != 0, reason="needs root to become nobody"
)
def test_a_command_of_a_normal_user_hears_and_sees_nothing_of_us_and_leaves_nothing() -> None:
    ran = subprocess.run(
        [
            *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
            *(sys.executable, "-c", _SECRETIVE),
            "cat /proc/$PPID/environ | grep -c KEY; (echo x > /proc/$PPID/fd/1) 2>&1 | wc -l",
            f"cat; setsid sleep {LONG} & echo done",
        ],
        input="what the editor says\n",
        env={**os.environ, "MY_KEY": "sesame", "PYTHONPATH": str(Path(__file__).parent.parent)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("0\n1\ndone\n", "")
    assert sleepers() == []


def check_environment(name: str, value: str, *, stays: bool, secrets: tuple[str, ...] = ()) -> None:
    given = {name: value, "PATH": "/bin", "LANG": "C"}
    kept = child_environment(given, secrets, ("OUR_SOURCE",), "/scratch")
    assert (kept.get(name) == value) is stays, name
    assert kept["LANG"] == "C"


def test_keys_and_what_changes_a_shell_stay_behind() -> None:
    for name in ("HOME", "SSH_AUTH_SOCK", "GIT_AUTHOR_NAME", "VIRTUAL_ENV", "MY_ENV", "http_proxy"):
        check_environment(name, "x", stays=True)
    for name in (
        *("OUR_SOURCE", "OPENAI_API_KEY", "my_token", "DB_PASSWORD", "PASSPHRASE", "XAUTHORITY"),
        *("AWS_SECRET_ACCESS", "GOOGLE_APPLICATION_CREDENTIALS", "A_COOKIE"),
        *("BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "BASH_FUNC_ls%%", "SHELLOPTS", "CDPATH"),
    ):
        check_environment(name, "x", stays=False)


def test_a_value_that_holds_a_loaded_key_stays_behind() -> None:
    check_environment("COPY", "Bearer sk-123456", stays=False, secrets=("", "sk-123456"))
    check_environment("COPY", "none", stays=False, secrets=("none",))
    check_environment("COPY", "nonetheless", stays=True, secrets=("none",))
    check_environment("COPY", "anything", stays=True, secrets=("",))


def test_the_environment_says_that_nobody_sits_at_a_terminal() -> None:
    made = child_environment({"TERM": "xterm", "PAGER": "less"}, (), (), "/scratch")
    assert made == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "false",
        "TMPDIR": "/scratch",
    }


async def test_output_beyond_what_is_told_is_whole_in_a_file(shell: LocalShell) -> None:
    ended = await run(shell, "seq 20000; seq 5 >&2")
    assert ended.truncated
    (path,) = ended.whole
    assert path.startswith(f"{shell.scratch}/stdout-")
    whole = await anyio.Path(path).read_text(encoding="utf-8")
    assert whole == "".join(f"{number}\n" for number in range(1, 20_001))
    assert (
        (await run(shell, "seq 5; seq 20000 >&2")).whole[0].startswith(f"{shell.scratch}/stderr-")
    )
    assert (await run(shell, "seq 5")).whole == ()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("git log --oneline | wc -l; git -p log --format=%s", 0),
        ("echo b > b; git add b; git commit", 1),
        ("git clone -q https://x@127.0.0.1:9/x", 128),
        ("read answer", 1),
        ("read answer < /dev/tty", 1),
    ],
)
async def test_what_would_wait_for_a_person_does_not(
    shell: LocalShell, command: str, code: int
) -> None:
    git = "git -c user.name=a -c user.email=b"
    prepared = f"git init -q; for i in 1 2; do {git} commit -qm $i --allow-empty; done"
    assert (await run(shell, prepared)).code == 0
    config = "git config user.name a; git config user.email b; "
    ended = await run(shell, config + command)
    assert (ended.code, ended.timed_out) == (code, False)
