"""The processes of one command, wherever they went: found, killed and reaped.

It reads /proc; where there is none, only the process group is reached.

Rule 1: nothing is killed but the group of the command, what descends from its shell, children of
ours that are of its session, and what bears its mark.
Rule 2: nothing is reaped but what we killed or adopted: the children that others of this
process started are theirs to wait for. A daemon that led a session of its own and ended by
itself looks like one of those; it stays a zombie as long as we live.
"""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

MARK = "RESPONSES_ACP_COMMAND"
"""The variable in a command's environment that tells its processes from all others."""


def signal_group(leader: int, number: int) -> None:
    """Send a signal to every process of the group."""
    # Nobody is there; macOS says "not permitted" where only zombies are left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def kill_tree(root: int) -> set[int]:
    """Kill a group and all that descends from its leader; returns the descendants."""
    # Listed first: with their parent dead they are nobody's descendants.
    tree = set(_descendants(root))
    signal_group(root, signal.SIGKILL)
    for pid in tree:
        _kill(pid)
    return tree


def sweep(leader: int, mark: str, dying: set[int]) -> bool:
    """One pass over our children; True while anything of the command may be left.

    dying holds what was killed and not yet seen dead; keep it from pass to pass. The leader itself
    must not have been reaped.
    """
    dying -= {pid for pid in dying if _is_gone(pid)}
    own = os.getsid(0)
    found = False
    for child in _children(os.getpid()):
        state, session = _status(child)
        if child == leader or child in dying or state == "":
            continue
        if state == "Z":
            # What we start stays in our session or leads its own: anything else was adopted.
            if session not in {child, own}:
                _is_gone(child)
        elif session == leader or _bears(child, mark):
            found = True
            dying |= {child, *_descendants(child)}
            for pid in dying:
                _kill(pid)
    return found or bool(dying)


def kill_marked(marks: Iterable[str]) -> bool:
    """Kill what bears one of the marks, whoever its parent is; False: there is nothing more."""
    wanted = {f"{MARK}={mark}".encode() for mark in marks}
    processes = Path("/proc").glob("[0-9]*") if wanted else ()
    bearing = [one for one in processes if not wanted.isdisjoint(_variables(one))]
    for one in bearing:
        _kill(int(one.name))
    return bearing != []


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _is_gone(pid: int) -> bool:
    """Reap the process if it is a dead child of ours; True if nothing is left of it."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        # Not yet ours: its own parent is dying too, or has reaped it.
        return _status(pid)[0] == ""


def _descendants(root: int) -> Iterator[int]:
    pending = list(_children(root))
    while pending:
        pid = pending.pop()
        yield pid
        pending.extend(_children(pid))


def _children(pid: int) -> Iterator[int]:
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        yield from map(int, _read(listing).split())


def _status(pid: int) -> tuple[str, int]:
    """State letter and session of a process; an empty letter if it does not exist."""
    # proc_pid_stat(5): the name is in parentheses and may hold any character.
    after_name = _read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()
    return (after_name[0].decode(), int(after_name[3])) if after_name else ("", 0)


def _bears(pid: int, mark: str) -> bool:
    return f"{MARK}={mark}".encode() in _variables(Path(f"/proc/{pid}"))


def _variables(process: Path) -> list[bytes]:
    return _read(process / "environ").split(b"\0")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
