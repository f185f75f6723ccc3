"""A new content takes its place on disk: all of it, or nothing.

Rule 1: a file is replaced only while it holds the expected bytes, and what was displaced is looked
at once more: bytes that someone wrote in between are put back.
Rule 2: where another inode could not stand for the file (hard links, extended attributes, an owner
we cannot give, a folder we cannot write to, a mount), the file itself is written, and on failure
written back.
Rule 3: a file that may not be written is not replaced either.
Rule 4: a new file never replaces anything.
Rule 5: all of it happens in the folder that the path names, whatever is put in the folder's place
meanwhile.
Rule 6: whatever fails, no temporary file is left behind; only the end of the process leaves one.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from tools.base import StaleFile
from tools.regular import anchored, opened, scan, stream, version, whole
from tools.seen import Stamp, digest

_PATIENCE = 1.0
"""Seconds that another process of ours may take for its change."""

_BESIDE = ".responses-acp-"
"""How the names of our temporary files begin."""

Move: TypeAlias = Callable[[str, str], None]
"""Does something with the names of two files."""

_NO_SWAP = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
"""Two files cannot change places here."""

_NO_LINK = frozenset({errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP})
"""Files have one name here."""

_NO_REPLACE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV})
"""Nothing can take the file's place, but the file itself may be writable."""

_ORDINARY = frozenset({"security.selinux"})
"""Extended attributes that a new file gets by itself."""

_attributes: Callable[[str], list[str]] = getattr(os, "listxattr", lambda _path: list[str]())


def replace(path: str, data: bytes, expected: Stamp, swap: Move) -> Stamp:
    """Put data in the place of the expected bytes; StaleFile if there are others by now."""
    with anchored(path) as name, _turn(name):
        with opened(name, os.O_RDWR) as (descriptor, status):
            _demand(stream(descriptor, status, _ignore), expected)
        if status.st_nlink <= 1 and _ORDINARY.issuperset(_attributes(name)):
            try:
                return _swap_in(name, data, status, expected, swap)
            except OSError as error:
                if error.errno not in _NO_REPLACE:
                    raise
        return _write_in_place(name, data, expected)


def create(path: str, data: bytes, link: Move) -> Stamp:
    """Make a new file and its folders; FileExistsError if something is there."""
    with anchored(path, make=True) as name, _temporary(name, 0o666) as (descriptor, beside):
        _fill(descriptor, data)
        os.fsync(descriptor)
        try:
            link(str(beside), name)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            return _create_directly(name, data)
        beside.unlink()
        return _kept(name, descriptor, data)


def remove(path: str, expected: Stamp) -> None:
    """Delete the file if it holds the expected bytes; StaleFile if there are others by now."""
    with anchored(path) as name, _turn(name):
        _demand(scan(name, _ignore), expected)
        Path(name).unlink()


def leftovers(path: str) -> list[Path]:
    """What stands beside this path because a process ended while it wrote there; OSError."""
    return list(Path(path).parent.glob(f"{_BESIDE}{'[0-9a-f]' * 16}"))


def _swap_in(path: str, data: bytes, status: os.stat_result, expected: Stamp, swap: Move) -> Stamp:
    with _temporary(path, 0o600) as (descriptor, name):
        _fill(descriptor, data)
        _resemble(descriptor, status)
        os.fsync(descriptor)
        try:
            swap(str(name), path)
        except OSError as error:
            if error.errno not in _NO_SWAP:
                raise
            _demand(scan(path, _ignore), expected)
            name.replace(path)
        else:
            _verify(str(name), path, os.fstat(descriptor), expected, swap)
        return _kept(path, descriptor, data)


def _verify(name: str, path: str, ours: os.stat_result, expected: Stamp, swap: Move) -> None:
    """What was displaced must be what was expected, else it goes back to its place."""
    try:
        return _demand(scan(name, _ignore), expected)
    except OSError as error:
        with suppress(FileNotFoundError):
            swap(name, path)
            if not os.path.samestat(os.lstat(name), ours):
                swap(name, path)
        raise StaleFile("it was replaced in this moment") from error


def _write_in_place(path: str, data: bytes, expected: Stamp) -> Stamp:
    with opened(path, os.O_RDWR) as (descriptor, status):
        old = whole(descriptor, status)
        _demand(old.stamp, expected)
        try:
            _overwrite(descriptor, data, len(old.data))
        except OSError:
            _overwrite(descriptor, old.data, len(old.data))
            raise
        return _kept(path, descriptor, data)


def _overwrite(descriptor: int, data: bytes, size: int) -> None:
    """Write over so many bytes; what grows the file goes first, while nothing old is lost yet."""
    _fill(descriptor, data[size:], size)
    _fill(descriptor, data[:size], 0)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)


def _create_directly(path: str, data: bytes) -> Stamp:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        _fill(descriptor, data)
        os.fsync(descriptor)
        return _kept(path, descriptor, data)
    except OSError:
        Path(path).unlink()
        raise
    finally:
        os.close(descriptor)


@contextmanager
def _turn(path: str) -> Generator[None, None, None]:
    """While no other process of ours changes files of this folder, if that can be had soon.

    Two who put back what the other displaced could otherwise take turns in losing it. Anyone may
    hold such a lock, so nobody is waited for long.
    """
    try:
        folder = os.open(Path(path).parent, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        end = time.monotonic() + _PATIENCE
        while not _locked(folder) and time.monotonic() < end:
            time.sleep(0.002)
        yield
    finally:
        os.close(folder)


def _locked(folder: int) -> bool:
    """Whether there is no use in trying again: it is ours, or locks are nothing known here."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


@contextmanager
def _temporary(path: str, mode: int) -> Generator[tuple[int, Path], None, None]:
    """A new file beside the path, open for writing; its name is free again afterwards."""
    name = Path(path).with_name(f"{_BESIDE}{os.urandom(8).hex()}")
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)
        name.unlink(missing_ok=True)


def _resemble(descriptor: int, status: os.stat_result) -> None:
    """Owner and mode of the file that is replaced; EPERM if the owner cannot be given."""
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _kept(path: str, descriptor: int, data: bytes) -> Stamp:
    """The state of a file that is in its place; its folder is made durable, where it can be."""
    with suppress(OSError):
        folder = os.open(Path(path).parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return Stamp(digest(data), version(os.fstat(descriptor)))


def _fill(descriptor: int, data: bytes, place: int = 0) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(descriptor, memoryview(data)[done:], place + done)


def _demand(stamp: Stamp | None, expected: Stamp) -> None:
    if stamp is None or stamp.digest != expected.digest:
        raise StaleFile("it holds other bytes")


def _ignore(block: bytes) -> None:
    """The digest alone is of interest."""
