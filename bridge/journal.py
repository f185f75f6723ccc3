"""The file of one session: append-only lines, locked by whoever has the session open.

Rule 1: one record is one write, so that a crash can only leave a last line that is torn.
Rule 2: whoever has a session open holds a lock on its file; the kernel frees it with the process.
Rule 3: no secret that was named to it is in any line.
Rule 4: reading takes one line at a time; a line that is damaged costs itself alone.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from bridge import log
from bridge.copies import Copies
from bridge.core.records import Record, Titled, decode, encode
from bridge.core.secrets import conceal
from bridge.errors import BridgeError
from bridge.label import Label, label_path, new_label_path, read_label, write_label

_BLOCK = 64 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PUT_ASIDE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Journal:
    """The records of one session, open for more; owned by that session."""

    def __init__(self, path: Path | None, label: Label, held: Iterable[Record] = ()) -> None:
        self._path = path
        self._label = label
        self._held = list(held)
        self._descriptor: int | None = None
        self._secrets: tuple[str, ...] = ()
        self._given_up = False
        self._complaint: str | None = None

    @property
    def path(self) -> Path | None:
        """The file of the session; None where it is kept nowhere."""
        return self._path

    def hide(self, secrets: tuple[str, ...]) -> None:
        """Write none of these down from now on."""
        self._secrets = secrets

    def append(self, record: Record) -> None:
        """Write one record down; before start() it is only kept. BridgeError: it is not written."""
        if isinstance(record, Titled):
            self._mark(replace(self._label, title=record.title))
        if self._descriptor is not None:
            with _told("written"):
                _write(self._descriptor, self._line(record))
        elif not self._given_up:
            self._held.append(record)

    def start(self) -> None:
        """Create the file, with what came so far; does nothing from the second time on.

        Where there can be no file, the session lives in this process alone: see complaint().
        """
        if self._descriptor is not None or self._given_up:
            return
        try:
            self._create(b"".join(map(self._line, self._held)))
        except OSError as error:
            self._given_up = True
            log.say(f"a session is not stored: {error.strerror}")
            why, remedy = str(error.strerror), "make the state directory writable"
            if self._path is None:
                why, remedy = "your home directory does not exist", "set HOME or XDG_STATE_HOME"
            self._complaint = (
                f"this conversation is not kept ({why}): {remedy} to find it again later"
            )
        self._held.clear()

    def complaint(self) -> str | None:
        """Why the session is not kept, once; None if it is."""
        complaint, self._complaint = self._complaint, None
        return complaint

    def resume(self) -> None:
        """Open the file that is there, lock it and mend its end; OSError, or BridgeError."""
        if self._path is None:
            raise _no_file()
        descriptor = _open(self._path, 0)
        try:
            with _told("mended"):
                _mend(descriptor, self._path)
        except BridgeError:
            os.close(descriptor)  # with the lock: it may be tried again
            raise
        self._descriptor = descriptor
        self._mark(self._label)

    def records(self) -> Iterator[Record]:
        """What the open file holds, from the beginning, one line at a time; OSError."""
        if self._descriptor is not None:
            # Not a duplicate of the descriptor: writing to that would move the place of reading.
            with open_file(self._path) as file:
                yield from read(file, self._label.session)

    def sync(self) -> None:
        """Return when all that was appended is on disk; may take milliseconds. BridgeError."""
        if self._descriptor is not None:
            with _told("written"):
                _flush(self._descriptor)

    def delete(self) -> None:
        """Remove the file and what stands beside it, and give it free; OSError."""
        if self._path is not None and self._descriptor is not None:
            beside = (label_path(self._path), new_label_path(self._path), torn_path(self._path))
            try:
                for path in beside:
                    path.unlink(missing_ok=True)
                self.copies.delete()
                self._path.unlink(missing_ok=True)
            finally:
                os.close(self._descriptor)
                self._descriptor = None

    @property
    def copies(self) -> Copies:
        """Where copies of files go: beside the file of the session, as long as that is open."""
        folder = None if self._descriptor is None else _copies_path(self._path)
        return Copies(folder, self._secrets)

    def keep(self, data: bytes) -> None:
        """Keep a copy of what a file holds before it changes; takes milliseconds. BridgeError."""
        with _told("written"):
            self.copies.keep(data)

    def close(self) -> None:
        """Give the file and its lock free."""
        if self._descriptor is not None:
            self._mark(replace(self._label, pid=None))
            os.close(self._descriptor)
            self._descriptor = None

    def _create(self, data: bytes) -> None:
        if self._path is None:
            raise _no_file()
        folder = self._path.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)
        self._descriptor = descriptor = _open(self._path, os.O_CREAT | os.O_EXCL)
        try:
            os.fchmod(descriptor, 0o600)
            _write(descriptor, data)
        except OSError:
            self._path.unlink()
            os.close(descriptor)
            self._descriptor = None
            raise
        self._mark(self._label)

    def _line(self, record: Record) -> bytes:
        return conceal(encode(record), self._secrets)

    def _mark(self, label: Label) -> None:
        """Write the label, on which nothing depends that could not be found again."""
        self._label = label
        if self._descriptor is not None and self._path is not None:
            write_label(self._path, label, self._secrets)


def open_file(path: Path | None) -> BinaryIO:
    """A session's file, to read it without a lock; OSError."""
    if path is None:
        raise _no_file()
    return os.fdopen(os.open(path, _READ), "rb", buffering=_BLOCK)


def read(file: BinaryIO, name: str) -> Iterator[Record]:
    """The records in a session's file; damaged lines are left out, and the log says which."""
    for number, line in enumerate(file, 1):
        record = decode(line)
        if record is not None:
            yield record
        elif line.strip():
            log.say(f"session {name}: line {number} is damaged or unknown, and left out")


def _no_file() -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _copies_path(path: Path | None) -> Path | None:
    return None if path is None else path.with_suffix(".files")


def torn_path(path: Path) -> Path:
    """Where the torn end of a session's file is put."""
    return path.with_suffix(".torn")


@contextmanager
def _told(deed: str) -> Generator[None]:
    """Turn what the disk refuses into a sentence for the person."""
    try:
        yield
    except OSError as error:
        raise BridgeError(
            f"the session file cannot be {deed} ({error.strerror}): free some space or make it "
            "writable, then send the prompt again"
        ) from error


def _open(path: Path, flags: int) -> int:
    descriptor = os.open(path, _APPEND | flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever held the lock until now may have deleted the file.
        if not os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False)):
            raise _no_file()
    except BlockingIOError as error:
        os.close(descriptor)
        raise _open_elsewhere(path) from error
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _open_elsewhere(path: Path) -> BridgeError:
    label = read_label(path)
    pid = None if label is None else label.pid
    where = "another process" if pid is None else f"another process ({pid})"
    if pid == os.getpid():
        return BridgeError(
            f'session "{path.stem}" is still being closed: load it again in a moment'
        )
    return BridgeError(
        f'session "{path.stem}" is open in {where} of responses-acp: close it there, then load it '
        "again"
    )


def _mend(descriptor: int, path: Path) -> None:
    """End the last line, or cut it off and put it aside, so that the next record has its own."""
    size = os.fstat(descriptor).st_size
    torn = _last_piece(descriptor, size)
    if not torn:
        return
    if decode(torn) is not None:
        _write(descriptor, b"\n")
        return
    with suppress(OSError):
        aside = os.open(torn_path(path), _PUT_ASIDE, 0o600)
        with os.fdopen(aside, "wb") as file:
            file.write(torn)
    os.ftruncate(descriptor, size - len(torn))
    log.say(f"session {path.stem}: a torn last line was put aside")


def _last_piece(descriptor: int, size: int) -> bytes:
    """What stands behind the last line end."""
    piece, start = b"", size
    while start > 0 and b"\n" not in piece:
        begin = max(0, start - _BLOCK)
        piece = os.pread(descriptor, start - begin, begin) + piece
        start = begin
    return piece.rpartition(b"\n")[2]


def _write(descriptor: int, data: bytes) -> None:
    """Write all of it, or leave the file as it was and raise OSError."""
    before = os.fstat(descriptor).st_size
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        with suppress(OSError):  # not a file that can be cut
            os.ftruncate(descriptor, before)
        raise


_flush = getattr(os, "fdatasync", os.fsync)
