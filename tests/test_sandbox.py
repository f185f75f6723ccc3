"""The sandbox tried from inside: every way out that we know, under every set of layers.

The attempts run without a sandbox too, where each must succeed: an attempt that cannot succeed
proves nothing. They run as root and as nobody, since each hides what the other would show.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest

from tools.base import Ended
from tools.layers import Layers, layers_of
from tools.probe import Probe
from tools.sandbox import Fence, start, survey

# ruff: noqa: E501 (one attempt a line)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

HELPER = Path(__file__).parent.parent / "tools" / "confine.py"
NOBODY = 65534
KEY = "sk-test-0c2a9f"
User = Literal["root", "nobody"]
IS_ROOT = sys.platform == "linux" and os.geteuid() == 0
USERS: tuple[User, ...] = ("root", "nobody") if IS_ROOT else ("nobody",)
"""Without being root, whoever runs the tests stands for nobody."""
SYSTEM_PYTHON = "/usr/bin/python3"
"""One that nobody may run too: ours may lie in a home that is closed to others."""

C = "import ctypes as c,os,socket as s,sys;l=c.CDLL(None,use_errno=True);"
ATTEMPTS = {
    "write a file outside": "echo x > $OUT/file",
    "make a file outside": "touch $OUT/new && rm $OUT/new",
    "empty a file outside": "truncate -s 0 $OUT/file",
    "remove a file outside": "rm $OUT/spare",
    "move a file out": "touch m && mv m $OUT/m",
    "write through a symbolic link": "ln -sf $OUT/file link && echo x > link",
    "write through a hard link": "ln $OUT/file hard && echo x > hard",
    "change the mode of a file outside": "chmod 644 $OUT/file",
    "read a key in the home": "grep -q key $OUT/home/.ssh/id",
    "read our own settings": "grep -q key $OUT/state/sessions",
    "read the agent's environment": f"tr '\\0' '\\n' < /proc/$VICTIM/environ | grep -q {KEY}",
    "open the agent's memory": "exec 3< /proc/$VICTIM/mem",
    "forge a line to the editor": "echo forged > /proc/$VICTIM/fd/1",
    "signal the agent": "kill -CONT $VICTIM",
    "trace the agent": f"$PYTHON -c '{C}sys.exit(l.ptrace(16,{{}},0,0)!=0)'".replace(
        "{}", 'int(os.environ["VICTIM"])'
    ),
    "trace a child": f"$PYTHON -c '{C}sys.exit(l.ptrace(0,0,0,0)!=0)'",
    "move the repository": "mv .git g2 && mv g2 .git",
    "remove a part of the repository": "rm .git/description",
    "write into the repository": "touch .git/new && rm .git/new",
    "replace the history": "rmdir .git/objects/info && mkdir .git/objects/info",
    "plant a hook": "touch .git/hooks/pre-commit",
    "change git's settings": "git config core.fsmonitor ./evil",
    "change an editor's tasks": "echo x > .vscode/tasks.json",
    "move an editor's settings": "mv .vscode v2 && mv v2 .vscode",
    "unmount": "umount .git/hooks || umount /tmp",
    "make a block device": "mknod block b 254 0",
    "make a character device": "mknod character c 1 9",
    "reach a program by a socket in /tmp": f"$PYTHON -c '{C}s.socket(s.AF_UNIX).connect(\"'$LISTENER'\")'",
    "reach a program by a socket elsewhere": f"$PYTHON -c '{C}s.socket(s.AF_UNIX).connect(\"'$SOCKET'\")'",
    "reach a program by an abstract socket": f"$PYTHON -c '{C}s.socket(s.AF_UNIX).connect(\"\\0'$ABSTRACT'\")'",
    "reach a server on this machine": "exec 3<> /dev/tcp/127.0.0.1/$PORT",
    "send a datagram": f"$PYTHON -c '{C}d=s.socket(s.AF_INET,s.SOCK_DGRAM);d.sendto(b\"x\",(\"127.0.0.1\",'$UDP'));d.close()'",
    "reach the host of a virtual machine": f"$PYTHON -c '{C}s.socket(s.AF_VSOCK)'",
    "make a namespace": "unshare -Ur true",
    "set up io_uring": f"$PYTHON -c '{C}l.syscall(425,1,0);sys.exit(c.get_errno()==1)'",
    "call by the numbers of x32": f"$PYTHON -c '{C}l.syscall(0x40000027);sys.exit(c.get_errno()==1)'",
}
"""Name -> a command that succeeds where the attempt does."""

OF_THE_AGENT = {
    "read the agent's environment", "open the agent's memory", "forge a line to the editor",
    "trace the agent",
}  # fmt: skip
OF_ROOT = {*OF_THE_AGENT, "make a block device", "make a character device"}
"""What only root can do without a sandbox."""
UNSURE = {"reach the host of a virtual machine", "set up io_uring", "make a namespace"}
"""What some kernels do not do for anybody."""

FREE = "free"
OPEN = {
    FREE: set(ATTEMPTS) - {"unmount"},
    "": set(ATTEMPTS) - {"unmount"} - OF_THE_AGENT,
    "N": {
        "trace a child", "reach the host of a virtual machine", "set up io_uring",
        "call by the numbers of x32", "make a namespace", "reach a program by a socket elsewhere",
    },
    "LS": {
        "change the mode of a file outside", "read a key in the home", "read our own settings",
        "move the repository", "remove a part of the repository", "write into the repository",
        "replace the history", "plant a hook", "change git's settings",
        "change an editor's tasks", "move an editor's settings",
        "reach a program by a socket in /tmp", "reach a program by a socket elsewhere",
    },
    "NLS": {"reach a program by a socket elsewhere"},
}  # fmt: skip
"""Layers -> the attempts that succeed. Without layers root gives up what shows it the agent."""

TOLD_OUTSIDE = {"forge a line to the editor", "send a datagram"}
"""What can only be seen from outside."""

LINE = "agent's own line"
VICTIM = f"""
import ctypes, sys
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
print("{LINE}", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Ground:
    """A workspace, what lies around it, and an agent with a key."""

    user: User
    folder: Path
    variables: dict[str, str]
    victim: "subprocess.Popen[bytes]"
    server: socket.socket
    """Takes datagrams."""

    @property
    def workspace(self) -> str:
        return str(self.folder / "ws")

    @property
    def fence(self) -> Fence:
        scratch, outside = str(self.folder / "scratch"), self.folder / "out"
        return Fence(
            "workspace-write",
            (self.workspace, scratch),
            scratch,
            git="commands",
            home=str(outside / "home"),
            hidden=(str(outside / "state"),),
        )

    def layers(self) -> Layers:
        told = ended(self.command(*self.helper, "probe"))
        return layers_of(told.stdout, told.stderr)

    def command(self, *arguments: str, passed: tuple[int, ...] = ()) -> "subprocess.Popen[bytes]":
        """Start a program as the user."""
        return subprocess.Popen(
            [*becoming(self.user), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.variables,
            cwd=self.workspace,
            pass_fds=passed,
        )

    @property
    def helper(self) -> tuple[str, ...]:
        """How the user starts the helper."""
        return (SYSTEM_PYTHON, "-I", "-S", str(self.folder / "confine.py"))

    def run(self, layers: Layers, script: str, fence: Fence | None = None) -> Ended:
        """Run a bash script inside the fence, as the user."""
        bash = ("/bin/bash", "--noprofile", "--norc", "-c", script)
        if layers.working == FREE:
            return ended(self.command(*bash))
        fence = fence or self.fence
        found = survey(fence, self.workspace)
        hear, say = os.pipe()
        planned = start(layers, fence, found, self.workspace, say)
        arguments = planned[planned.index(f"status={say}") :]
        with os.fdopen(hear) as status:
            process = self.command(*self.helper, *arguments, *bash, passed=(say,))
            os.close(say)
            result = ended(process)
            assert status.read() == "ready"
        return result

    def arrived(self) -> set[str]:
        """The attempts that are seen from outside."""
        assert self.victim.stdout is not None
        os.set_blocking(self.victim.stdout.fileno(), False)
        self.server.setblocking(False)
        seen = {"forge a line to the editor"} if self.victim.stdout.read() else set[str]()
        with suppress(BlockingIOError):
            self.server.recv(10)
            seen.add("send a datagram")
        return seen

    def own(self, folder: Path) -> None:
        if self.user == "nobody" and IS_ROOT:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def becoming(user: User) -> list[str]:
    ids = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return ["setpriv", *ids] if user == "nobody" and IS_ROOT else []


def ended(process: "subprocess.Popen[bytes]") -> Ended:
    stdout, stderr = process.communicate(timeout=60)
    return Ended(stdout.decode(), stderr.decode(), process.returncode)


@contextmanager
def ground(user: User) -> Generator[Ground]:
    if not Path(SYSTEM_PYTHON).exists() or not shutil.which("setpriv"):
        missing("a system python and setpriv are needed")
    # Neither pytest's own folder, which others may not enter, nor /tmp, which commands do not see.
    with tempfile.TemporaryDirectory(prefix="escape-", dir="/var/tmp") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        lay(folder)
        with servers(folder) as (variables, server), victim_of(user) as victim:
            variables["VICTIM"] = str(victim.pid)
            made = Ground(user, folder, variables, victim, server)
            made.own(folder)
            yield made


def lay(folder: Path) -> None:
    shutil.copy(HELPER, folder)
    for path in ("ws/.vscode", "scratch", "out/home/.ssh", "out/state"):
        (folder / path).mkdir(parents=True)
    for path in ("out/file", "out/spare", "out/home/.ssh/id", "out/state/sessions"):
        (folder / path).write_text("key\n")
    subprocess.run(["git", "init", "-q", folder / "ws"], check=True)


@contextmanager
def servers(folder: Path) -> Generator[tuple[dict[str, str], socket.socket]]:
    """Programs that listen outside, and the variables that tell where."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        tempfile.TemporaryDirectory(prefix="escape-", dir="/tmp") as listening,
        ExitStack() as stack,
    ):
        Path(listening).chmod(0o755)
        udp.bind(("127.0.0.1", 0))
        addresses = (f"{folder}/out/socket", f"{listening}/socket", f"\0{folder}")
        for address in addresses:
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(address)
            server.listen()
        for address in addresses[:2]:
            Path(address).chmod(0o777)
        variables = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHON": SYSTEM_PYTHON,
            "OUT": str(folder / "out"),
            "SOCKET": addresses[0],
            "LISTENER": addresses[1],
            "ABSTRACT": str(folder),
            "PORT": str(tcp.getsockname()[1]),
            "UDP": str(udp.getsockname()[1]),
        }
        yield variables, udp


@contextmanager
def victim_of(user: User) -> Generator["subprocess.Popen[bytes]"]:
    """An agent: it has a key in its environment and a pipe to its editor."""
    with subprocess.Popen(
        [*becoming(user), SYSTEM_PYTHON, "-I", "-S", "-c", VICTIM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"API_KEY": KEY, "PATH": "/usr/bin:/bin"},
    ) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline().decode().strip() == LINE
        try:
            yield victim
        finally:
            victim.kill()


def missing(what: str) -> None:
    """Skip, unless this is where it must not be missing."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def full() -> Layers:
    """The layers of this machine; the test is skipped where they do not hold everything."""
    layers = layers_of(*Probe().answer())
    if layers.hold.strength != "full":
        missing(f"no full sandbox here: {layers.failures}")
    return layers


def only(layers: Layers, wanted: str) -> Layers:
    """These layers alone; the test is skipped where one of them does not work."""
    if lacking := set(wanted) - set(layers.working):
        missing(f"layers {sorted(lacking)} do not work here: {layers.failures}")
    return replace(layers, working=wanted)


@pytest.mark.parametrize("wanted", OPEN)
@pytest.mark.parametrize("user", USERS)
def test_what_gets_out_under_which_layers(user: User, wanted: str) -> None:
    if wanted == "" and user != "root":
        pytest.skip("only root has to give something up")
    with ground(user) as here:
        layers = here.layers()
        layers = replace(layers, working=FREE) if wanted == FREE else only(layers, wanted)
        lines = [f'( {code} ) >&2 && echo "{name}"' for name, code in ATTEMPTS.items()]
        result = here.run(layers, "\n".join([*lines, "exit 0"]))
        assert result.code == 0, result.stderr
        succeeded = (set(result.stdout.splitlines()) - TOLD_OUTSIDE) | here.arrived()
        expected = OPEN[wanted] if user == "root" else OPEN[wanted] - OF_ROOT
        assert succeeded - expected == set(), result.stderr
        assert expected - succeeded <= UNSURE, result.stderr


@pytest.mark.parametrize(("version", "is_open"), [(1, True), (2, True), (3, False), (7, False)])
def test_an_old_landlock_lets_files_be_emptied_and_says_so(version: int, is_open: bool) -> None:
    with ground(USERS[-1]) as here:
        layers = only(here.layers(), "LS")
        if layers.version < version:
            missing(f"Landlock here is older than version {version}")
        layers = replace(layers, version=version)
        result = here.run(layers, "$PYTHON -c 'import os; os.truncate(\"'$OUT'/file\", 0)'")
        assert (result.code == 0) is is_open, result.stderr
        assert layers.hold.strength == "partial"
        assert ("files outside can be emptied" in layers.hold.gaps) is is_open


REFUSING = """
import os, sys
sys.path.insert(0, sys.argv[1])
import confine as c
refused = [(444, c._ENOSYS), (c._NUMBERS[os.uname().machine][1][c._NAMES.index("unshare")], c._EPERM)]
rows = [row for number, answer in refused for row in ((0x15, 0, 1, number), (6, 0, 0, answer))]
c._prctl(38, 1)
c._install([(0x20, 0, 0, 0), *rows, (6, 0, 0, 0x7FFF0000)])
os.execv(sys.executable, [sys.executable, "-I", "-S", f"{sys.argv[1]}/confine.py", "probe"])
"""
"""The probe on a kernel that knows no Landlock and allows no namespaces, like many containers."""


def test_a_host_without_sandbox_is_found_out() -> None:
    with ground(USERS[-1]) as here:
        python = here.helper[:3]
        told = ended(here.command(*python, "-c", REFUSING, str(here.folder)))
        layers = layers_of(told.stdout, told.stderr)
    assert layers.probed
    assert "N" not in layers.working
    assert "L" not in layers.working
    assert layers.hold.strength == "none"
    assert [gap[0] for gap in layers.hold.gaps] == ["N", "L"]


@pytest.mark.parametrize("user", USERS)
def test_with_a_network_servers_are_reached_and_the_rest_is_held(user: User) -> None:
    with ground(user) as here:
        layers = only(here.layers(), "NLS")
        fence = replace(here.fence, network=True)
        script = "(exec 3<> /dev/tcp/127.0.0.1/$PORT) && echo in; echo x > $OUT/file; kill -9 $VICTIM; unshare -Ur true; true"
        result = here.run(layers, script, fence)
        assert (result.code, result.stdout) == (0, "in\n")
        assert here.victim.poll() is None
        assert (here.folder / "out" / "file").read_text() == "key\n"


OF_GIT = {"write into the repository", "replace the history", "remove a part of the repository"}


@pytest.mark.parametrize("user", USERS)
def test_what_works_on_the_repository_changes_its_history_and_nothing_else_of_it(
    user: User,
) -> None:
    with ground(user) as here:
        layers = only(here.layers(), "NLS")
        lines = [f'( {code} ) >&2 && echo "{name}"' for name, code in ATTEMPTS.items()]
        fence = replace(here.fence, git="always")
        result = here.run(layers, "\n".join([*lines, "exit 0"]), fence)
        told = set(result.stdout.splitlines()) - UNSURE - TOLD_OUTSIDE
        assert told == OPEN["NLS"] | OF_GIT, result.stderr


@pytest.mark.parametrize("user", USERS)
def test_everyday_programs_work_inside(user: User) -> None:
    with ground(user) as here:
        layers = only(here.layers(), "NLS")
        fence = replace(here.fence, git="always")
        for script in (
            "$PYTHON -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1])); m.Lock()'",
            "$PYTHON -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'",
            "script -qec tty /dev/null | grep pts",
            "echo a > /tmp/a && cat /tmp/a && cat $PWD/../scratch/a",
            "echo a > /dev/null; head -c 4 /dev/urandom | wc -c; echo a > /dev/shm/a",
            "$PYTHON -c 'import socket as s; a=s.create_server((\"127.0.0.1\",0)); s.create_connection(a.getsockname())'",
            "cat <(echo a); (sleep 0.01 & wait); timeout 5 true; ps -e | grep -c bash",
            "git status --porcelain && git -c user.name=a -c user.email=b commit -q --allow-empty -m c && git log",
        ):
            result = here.run(layers, script, fence)
            assert result.code == 0, (script, result)


@pytest.mark.parametrize("user", USERS)
def test_in_plan_mode_nothing_but_tmp_can_be_written(user: User) -> None:
    with ground(user) as here:
        layers = only(here.layers(), "NLS")
        fence = replace(here.fence, reach="read-only")
        result = here.run(
            layers, "ls -A; touch x || touch .git/x; echo a > /tmp/a && cat /tmp/a", fence
        )
        assert result.stdout == ".git\n.vscode\na\n"
        assert result.stderr.count("Read-only file system") == 2
