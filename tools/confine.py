"""The program that puts a sandbox in force around itself and becomes the command.

Started by `python -I -S` with the arguments `KEY=VALUE… -- PROGRAM ARGUMENT…`. It knows the kernel
and decides nothing: tools/sandbox.py says what may be touched. It imports as little as it can,
since every command waits for it; that is why it is not told in JSON.

Rule 1: either everything asked for is in force, or the program does not run. What happened is one
line on the descriptor `status`: "ready", or why not. Nothing is learnt from the output.
Rule 2: three layers, each asked for by its letter.
  N  namespaces: a read-only view of all files but the places named; no other processes; with
     network=off no network but a loopback of its own.
  L  Landlock: files are changed below the places named and nowhere else.
  S  seccomp: no system calls that reach into other processes or around the other two layers.
Rule 3: capabilities go whatever the layers, and no program run later can gain any.
Rule 4: places are mounted in the order given, outer ones first.
  write=P  may be changed          read=P  shown although an outer place hides it
  tmp=P    P is what /tmp shows    hide=P  empty
  ro=P     inside a writable place, not to be changed, moved or removed
  pin=P    inside a writable place, not to be moved or removed
"""

import ctypes
import os
import select
import sys

if sys.platform != "linux":
    sys.exit("there is no sandbox on this system")

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long

# <linux/mount.h>, <sched.h>, <linux/prctl.h>
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC, _MOVE_MOUNT_F_EMPTY_PATH = 1, 0o2000000, 4
_MOUNT_ATTR_RDONLY = 1
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 1 << 17, 1 << 27, 1 << 28, 1 << 29, 1 << 30
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP = 1, 4, 22
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_SIGKILL, _SIGPIPE, _SIGTERM, _SIGXFSZ = 9, 13, 15, 25
_SIG_DFL, _SIG_IGN = ctypes.c_void_p(0), ctypes.c_void_p(1)

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_OWN = ("/dev", "/tmp")  # noqa: S108 (the name that programs know)
"""What every view of the files has for itself."""
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_AFTERGLOW = 100
"""Milliseconds that what the program left running may go on printing."""
_FAILED = 125
"""The exit code where the program did not run."""


class Policy:
    """What the arguments say."""

    def __init__(self, arguments: list[str]) -> None:
        end = arguments.index("--")
        self.argv = arguments[end + 1 :]
        pairs = [_pair(argument) for argument in arguments[:end]]
        settings = dict(pairs)
        self.layers = settings.get("layers", "")
        self.network = settings.get("network") == "on"
        self.cwd = settings.get("cwd", "/")
        self.shed = [int(number) for number in settings.get("shed", "").split(",") if number]
        """Capabilities to drop where nothing else is asked for."""
        self.abi = int(settings.get("abi", "99"))
        """Pretend that Landlock knows no more than this."""
        self.status = int(settings.get("status", "2"))
        self.places = [pair for pair in pairs if pair[0] in _MOUNTS]
        self.tell = -1
        """Where the first process of the namespaces tells how the program ended."""

    @property
    def writable(self) -> list[str]:
        """Where files may be changed."""
        places = [path for kind, path in self.places if kind in ("write", "tmp")]
        return [*places, *(_OWN if "N" in self.layers else ())]


def _pair(argument: str) -> tuple[str, str]:
    key, _, value = argument.partition("=")
    return key, value


def main(arguments: list[str]) -> None:
    """Confine this process as told and become the program."""
    policy = Policy(arguments)
    given, policy.status = policy.status, os.dup(policy.status)  # the program does not get the copy
    os.close(given)
    try:
        if "N" in policy.layers:
            _separate(policy)
        _restrict(policy)
        if "N" in policy.layers:
            _in_child(policy)
        else:
            _become(policy)
    except OSError as error:
        _fail(policy, error)


def _fail(policy: Policy, error: OSError) -> None:
    where = f" ({error.filename})" if error.filename else ""
    os.write(policy.status, f"{error.strerror or error}{where}".encode(errors="replace"))
    os._exit(_FAILED)


def _restrict(policy: Policy) -> None:
    """Everything but the namespaces, on this process and all that comes of it."""
    if not policy.layers:
        for number in policy.shed:
            if _libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1:
                _prctl(_PR_CAPBSET_DROP, number)
        return
    _drop_capabilities()
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if "L" in policy.layers:
        _landlock(policy)
    if "S" in policy.layers:
        _seccomp(policy)


def _become(policy: Policy) -> None:
    os.chdir(policy.cwd)
    # Python ignores these two, and what is ignored stays so in the program.
    _libc.signal(_SIGPIPE, _SIG_DFL)
    _libc.signal(_SIGXFSZ, _SIG_DFL)
    os.write(policy.status, b"ready")
    try:
        os.execv(policy.argv[0], policy.argv)  # noqa: S606 (to become that program is its purpose)
    except OSError as error:
        error.filename = policy.argv[0]
        raise


# -- processes ------------------------------------------------------------------------------------


def _separate(policy: Policy) -> None:
    """Go into namespaces of our own: returns in their first process, the old one stays outside."""
    user, group = os.geteuid(), os.getegid()
    network = 0 if policy.network else _NEWNET
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    _checked(_libc.unshare(_NEWUSER | _NEWNS | _NEWPID | _NEWIPC | network), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    _checked(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mount /")
    ended, tell = os.pipe()
    first = os.fork()
    if first:
        os.close(tell)
        os.close(policy.status)
        _watch(first, ended)
    os.close(ended)
    policy.tell = tell
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    _mount(policy)
    if not policy.network:
        _raise_loopback()


def _watch(first: int, ended: int) -> None:
    """Stay outside until the program has ended, and end in the same way."""
    _libc.signal(_SIGTERM, _SIG_IGN)  # the program has got it too, and decides
    found = os.read(ended, 16)
    status = int(found) if found else os.waitpid(first, 0)[1]
    poll = select.poll()
    poll.register(ended, select.POLLHUP)
    poll.poll(_AFTERGLOW)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # no core of ours
        _libc.signal(number, _SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(os.WEXITSTATUS(status))


def _in_child(policy: Policy) -> None:
    """Run the program as the second process; the first one reaps what others leave behind."""
    program = os.fork()
    if not program:
        os.close(policy.tell)
        _become(policy)
    os.close(policy.status)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # the program is to find nothing here
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            os._exit(0)
        if pid == program:
            os.write(policy.tell, b"%d" % status)


# -- namespaces -----------------------------------------------------------------------------------


def _mount(policy: Policy) -> None:
    """Lay the view of the files."""
    ready = {
        (kind, path): _clone("/dev/null" if _hides_file(kind, path) else path)
        for kind, path in policy.places
        if kind in ("write", "read", "tmp") or _hides_file(kind, path)
    }
    devices = {name: _clone(f"/dev/{name}") for name in _DEVICES if os.path.exists(f"/dev/{name}")}
    _set_read_only(_AT_FDCWD, b"/", _AT_RECURSIVE)
    _mount_devices(devices)
    for kind, path in policy.places:
        _MOUNTS[kind](path, ready.get((kind, path), -1))
    _mount_new("proc", "/proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _hides_file(kind: str, path: str) -> bool:
    return kind == "hide" and not os.path.isdir(path)


def _show(path: str, tree: int) -> None:
    """Put a clone in its place, which is made where an outer place left it out."""
    if not os.path.lexists(path):
        if os.path.isdir(f"/proc/self/fd/{tree}"):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    _move(tree, path)


def _show_read_only(path: str, tree: int) -> None:
    _set_read_only(tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE)
    _show(path, tree)


def _hide(path: str, nothing: int) -> None:
    if nothing >= 0:
        _move(nothing, path)
    else:
        _mount_new("tmpfs", path, _MS_NOSUID | _MS_NODEV, "mode=0755,size=1m")


def _show_as_tmp(_: str, tree: int) -> None:
    _move(tree, "/tmp")  # noqa: S108 (the name that programs know)


def _pin(path: str, _: int) -> None:
    _move(_clone(path), path)


def _make_read_only(path: str, _: int) -> None:
    _show_read_only(path, _clone(path))


_MOUNTS = {
    "write": _show,
    "read": _show_read_only,
    "tmp": _show_as_tmp,
    "hide": _hide,
    "pin": _pin,
    "ro": _make_read_only,
}


def _mount_devices(devices: dict[str, int]) -> None:
    _mount_new("tmpfs", "/dev", _MS_NOSUID, "mode=0755,size=64k")
    for name, tree in devices.items():
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY, 0o600))
        _move(tree, f"/dev/{name}")
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, f"/dev/{name}")
    for name, kind, options in (
        ("shm", "tmpfs", "mode=1777"),
        ("pts", "devpts", "newinstance,ptmxmode=0666,mode=620"),
    ):
        os.mkdir(f"/dev/{name}")
        _mount_new(kind, f"/dev/{name}", _MS_NOSUID | _MS_NOEXEC, options)


def _mount_new(kind: str, path: str, flags: int, options: str = "") -> None:
    done = _libc.mount(kind.encode(), os.fsencode(path), kind.encode(), flags, options.encode())
    _checked(done, f"mount {path}")


def _clone(path: str) -> int:
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE
    return _checked(_syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags), path)


def _move(tree: int, path: str) -> None:
    done = _syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(path), _MOVE_MOUNT_F_EMPTY_PATH)
    _checked(done, path)
    os.close(tree)


def _set_read_only(tree: int, path: bytes, flags: int) -> None:
    attributes = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY, 0, 0, 0)
    done = _syscall(_MOUNT_SETATTR, tree, path, flags, attributes, ctypes.sizeof(attributes))
    _checked(done, "mount_setattr")


def _raise_loopback() -> None:
    """Programs talk to themselves through it: test servers, for one."""
    # netdevice(7): 16 bytes of name, then the flags; 0x8914 sets them, IFF_UP is 1.
    request = ctypes.create_string_buffer(b"lo".ljust(16, b"\0") + b"\1\0", 40)
    descriptor = _checked(_libc.socket(2, 2, 0), "socket")
    _checked(_libc.ioctl(descriptor, ctypes.c_ulong(0x8914), request), "loopback")
    os.close(descriptor)


# -- capabilities ---------------------------------------------------------------------------------


def _drop_capabilities() -> None:
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    number = 0
    # capabilities(7): EINVAL ends the list; who may not drop from the bounding set has none.
    while _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


# -- Landlock -------------------------------------------------------------------------------------

# landlock(7)
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_WRITE_FILE, _MAKE_CHAR, _MAKE_BLOCK = 1 << 1, 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_CHANGES = 0b1_1111_1111_0010
"""Writing, removing and making, as the first version knew them."""
_ADDED = {2: 1 << 13, 3: _TRUNCATE, 5: _IOCTL_DEV}
"""Version -> the right that came with it."""
_OF_A_FILE = _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
_TCP, _SCOPES = 0b11, 0b11
"""To bind and to connect; abstract sockets and signals."""
_TERMINALS = ("/dev/ptmx", "/dev/pts", "/dev/shm")  # noqa: S108 (devices)


def landlock_version() -> int:
    """The version of Landlock that this kernel has, or 0."""
    return max(0, _syscall(_CREATE_RULESET, None, 0, 1))


def _landlock(policy: Policy) -> None:
    version = min(landlock_version(), policy.abi)
    rights = _CHANGES | sum(right for since, right in _ADDED.items() if since <= version)
    network = _TCP if not policy.network and "N" not in policy.layers else 0
    wanted = (rights, network if version >= 4 else 0, _SCOPES)
    words = 1 if version < 4 else 2 if version < 6 else 3
    rules = (ctypes.c_uint64 * words)(*wanted[:words])
    ruleset = _checked(_syscall(_CREATE_RULESET, rules, 8 * words, 0), "landlock")
    granted = rights & ~(_MAKE_CHAR | _MAKE_BLOCK)
    devices = [] if "N" in policy.layers else [*(f"/dev/{name}" for name in _DEVICES), *_TERMINALS]
    for path in (*policy.writable, *filter(os.path.exists, devices)):
        # The right to ioctl on devices is not for devices in the workspace.
        allowed = granted if path.startswith("/dev") else granted & ~_IOCTL_DEV
        _allow(ruleset, path, allowed)
    _checked(_syscall(_RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if not os.path.isdir(path):
        rights &= _OF_A_FILE
    rule = rights.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
    _checked(_syscall(_ADD_RULE, ruleset, 1, rule, 0), path)
    os.close(place)


# -- seccomp --------------------------------------------------------------------------------------

_KILL, _ALLOW, _EPERM, _ENOSYS = 0x80000000, 0x7FFF0000, 0x50001, 0x50026
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Where seccomp_data has them; of an argument the lower half."""

_EVERYWHERE = {
    425: "io_uring_setup", 426: "io_uring_enter", 427: "io_uring_register",
    428: "open_tree", 429: "move_mount", 430: "fsopen", 431: "fsconfig", 432: "fsmount",
    433: "fspick", 438: "pidfd_getfd", 442: "mount_setattr", 467: "open_tree_attr",
}  # fmt: skip
"""Numbers from 424 on are the same on every architecture."""

_NAMES = (
    "ptrace", "process_vm_readv", "process_vm_writev", "mount", "umount2", "pivot_root", "setns",
    "add_key", "request_key", "keyctl", "bpf", "userfaultfd", "perf_event_open",
    "open_by_handle_at", "kexec_load", "init_module", "finit_module", "delete_module",
    "unshare", "clone", "ioctl", "socket",
)  # fmt: skip
_NUMBERS = {
    "x86_64": (0xC000003E, (
        101, 310, 311, 165, 166, 155, 308, 248, 249, 250, 321, 323, 298,
        304, 246, 175, 313, 176, 272, 56, 16, 41,
    )),
    "aarch64": (0xC00000B7, (
        117, 270, 271, 40, 39, 41, 268, 217, 218, 219, 280, 282, 241,
        265, 104, 105, 273, 106, 97, 220, 29, 198,
    )),
}  # fmt: skip
"""Machine -> how the kernel names it, and the numbers of _NAMES."""
_CLONE3, _X32 = 435, 0x40000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_UNIX, _AF_VSOCK = 1, 40

_Rows = list[tuple[int, int, int, int]]
"""Of a filter: operation, steps to skip if so, steps to skip if not, operand."""


def _seccomp(policy: Policy) -> None:
    machine = os.uname().machine
    if machine not in _NUMBERS:
        raise OSError(0, f"no seccomp filter for {machine}")
    _install(_filter(machine, network=policy.network, own_network="N" in policy.layers))


def _filter(machine: str, *, network: bool, own_network: bool) -> _Rows:
    architecture, numbers = _NUMBERS[machine]
    calls = dict(zip(_NAMES, numbers, strict=True))
    rows: _Rows = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        *((_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _EPERM)),
        *((_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ENOSYS)),  # its flags cannot be looked at
    ]
    for name in ("unshare", "clone"):
        rows += _examined(calls[name], _FIRST, [(_ANY_BIT, _NEWUSER)])
    rows += _examined(calls["ioctl"], _SECOND, [(_EQUAL, _TIOCSTI), (_EQUAL, _TIOCLINUX)])
    if not network:
        rows += _families(calls["socket"], own_network=own_network)
    always = [*calls.values()][: _NAMES.index("unshare")]
    for number in (*always, *_EVERYWHERE):
        rows += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _EPERM)]
    return [*rows, (_RETURN, 0, 0, _ALLOW)]


def _examined(call: int, argument: int, forbidden: list[tuple[int, int]]) -> _Rows:
    """Refuse a call whose argument is one of these."""
    tests = [
        row for test, value in forbidden for row in ((test, 0, 1, value), (_RETURN, 0, 0, _EPERM))
    ]
    body = [(_LOAD, 0, 0, argument), *tests, (_RETURN, 0, 0, _ALLOW)]
    return [(_EQUAL, 0, len(body), call), *body]


def _families(call: int, *, own_network: bool) -> _Rows:
    """Sockets without a network. No namespace holds those that reach a virtual machine's host."""
    if own_network:
        return _examined(call, _FIRST, [(_EQUAL, _AF_VSOCK)])
    body = [(_LOAD, 0, 0, _FIRST), (_EQUAL, 1, 0, _AF_UNIX), (_RETURN, 0, 0, _EPERM)]
    body.append((_RETURN, 0, 0, _ALLOW))
    return [(_EQUAL, 0, len(body), call), *body]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("rows", ctypes.c_char_p))


def _install(rows: _Rows) -> None:
    order = sys.byteorder
    packed = b"".join(
        code.to_bytes(2, order) + bytes((then, otherwise)) + operand.to_bytes(4, order)
        for code, then, otherwise, operand in rows
    )
    program = _Program(len(rows), packed)
    _checked(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0), "seccomp")


# -- what works here ------------------------------------------------------------------------------


def probe() -> None:
    """Print for each layer, after trying to break out of it: its letter, then why it fails."""
    import shutil  # noqa: PLC0415 (no command needs it)
    import tempfile  # noqa: PLC0415 (no command needs it)

    folder = tempfile.mkdtemp(prefix="responses-acp-probe-")
    try:
        _try_all(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _try_all(folder: str) -> None:
    """The subfolders are where files may be changed and where not."""
    inside, outside = f"{folder}/inside", f"{folder}/outside"
    for path in (inside, outside):
        os.mkdir(path)
    os.close(os.open(f"{outside}/file", os.O_CREAT | os.O_WRONLY, 0o600))
    print("version", landlock_version())  # noqa: T201 (its answer)
    for layer in _ATTEMPTS:
        read, write = os.pipe()
        if not os.fork():
            os.close(read)
            _attempt(layer, write, inside, outside)
        os.close(write)
        print(layer, _heard(read))  # noqa: T201 (its answer)
        os.wait()


def _heard(pipe: int) -> str:
    text = b"".join(iter(lambda: os.read(pipe, 1024), b""))
    os.close(pipe)
    return "" if text == b"ready" else text.decode(errors="replace") or "it ended too early"


def _attempt(layer: str, status: int, inside: str, outside: str) -> None:
    arguments = [f"layers={layer}", f"status={status}", "network=off", f"write={inside}", "--"]
    policy = Policy(arguments)
    try:
        if layer == "N":
            _separate(policy)
        _restrict(policy)
        broken = _ATTEMPTS[layer](inside, outside)
    except OSError as error:
        _fail(policy, error)
    else:
        os.write(status, broken.encode() or b"ready")
    os._exit(0)


def _tries_files(inside: str, outside: str) -> str:
    """Why files are not held; nothing, if they are."""
    _write(f"{inside}/new", "")
    for path in (f"{outside}/new", f"{outside}/file"):
        try:
            _write(path, "x")
        except OSError:
            continue
        return "a file outside could be changed"
    return ""


def _tries_socket(*_: str) -> str:
    return "a socket could be made" if _libc.socket(2, 2, 0) >= 0 else ""


_ATTEMPTS = {"N": _tries_files, "L": _tries_files, "S": _tries_socket}


# -- the kernel -----------------------------------------------------------------------------------


def _prctl(option: int, value: int) -> None:
    _checked(_libc.prctl(option, value, 0, 0, 0), "prctl")


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def run(arguments: list[str]) -> None:
    """Do what the arguments say."""
    if arguments == ["probe"]:
        probe()
    else:
        main(arguments)


if __name__ == "__main__":
    run(sys.argv[1:])
