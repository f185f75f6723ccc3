"""Sessions on disk: one append-only file of records each, in the state directory.

Rule 1: a file exists from a session's first prompt on, 0600 in a folder that is 0700.
Rule 2: one record is one write, so that a crash can only leave a last line that is torn.
Rule 3: whoever has a session open holds a lock on its file; the kernel frees it with the process.
"""

import base64
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from bridge import log
from bridge.core.records import Opened, Record, Titled, decode, encode
from bridge.errors import INVALID_PARAMS, NOT_FOUND, BridgeError, EditorError
from tools.frozen import frozen

try:
    import fcntl
except ImportError:  # native Windows, where no session is ever opened
    fcntl = None

PAGE = 50
"""Sessions of one answer to session/list."""

_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HEAD = 64 * 1024
"""Bytes in which the title is looked for; it stands right after the first prompt."""


@frozen
class Summary:
    """One line of the session list."""

    session: str
    cwd: str
    title: str | None
    updated_ns: int

    @property
    def updated_at(self) -> str:
        """RFC 3339, UTC."""
        return timestamp(self.updated_ns)


class Journal:
    """The file of one session, open for appending; owned by that session."""

    def __init__(self, path: Path | None, held: list[Record]) -> None:
        self._path = path
        self._held = held
        self._descriptor: int | None = None

    def append(self, record: Record) -> None:
        """Write one record down; before start() it is only kept."""
        if self._descriptor is None:
            self._held.append(record)
            return
        try:
            _write(self._descriptor, encode(record))
        except OSError as error:
            raise BridgeError(
                f"the session file cannot be written ({error.strerror}): free some space, then "
                "send the prompt again"
            ) from error

    def start(self) -> None:
        """Create the file, with what came so far; does nothing from the second time on.

        Where there can be no file, the session lives in this process alone.
        """
        if self._path is None or self._descriptor is not None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._descriptor = _open(self._path, os.O_CREAT | os.O_EXCL)
            _write(self._descriptor, b"".join(map(encode, self._held)))
        except OSError as error:
            log.say(f"a session is not stored: {error.strerror}")
            self._path = None
        self._held.clear()

    def resume(self) -> bytes:
        """Open the file that is there, lock it and give its whole content."""
        if self._path is None:
            raise FileNotFoundError
        self._descriptor = _open(self._path, 0)
        data = self._path.read_bytes()
        torn = data.rpartition(b"\n")[2]
        if torn and decode(torn) is None:
            os.ftruncate(self._descriptor, len(data) - len(torn))
        elif torn:
            _write(self._descriptor, b"\n")
        return data

    def close(self) -> None:
        """Give the file and its lock free."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Store:
    """All sessions of this user; without a folder nothing is kept beyond the process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def create(self, opened: Opened) -> Journal:
        """The journal of a new session; the file comes with start()."""
        return Journal(self._path(opened.session), [opened])

    def load(self, session: str) -> tuple[list[Record], Journal]:
        """The records of a stored session, and its journal to go on with."""
        journal = Journal(self._path(session), [])
        try:
            data = journal.resume()
        except OSError as error:
            raise unknown_session(session) from error
        records = [record for line in data.split(b"\n") if (record := decode(line)) is not None]
        if not records or not isinstance(records[0], Opened):
            journal.close()
            raise BridgeError(f'the file of session "{session}" is damaged: its first line is bad')
        return records, journal

    def list(self, cwd: str | None, cursor: str | None) -> tuple[list[Summary], str | None]:
        """One page, newest first, and the cursor of the next; EditorError for a bad cursor."""
        after = None if cursor is None else _read_cursor(cursor)
        found = sorted(self._summaries(), key=_rank, reverse=True)
        wanted = [
            one
            for one in found
            if (cwd is None or one.cwd == cwd) and (after is None or _rank(one) < after)
        ]
        page = wanted[:PAGE]
        return page, _cursor(page[-1]) if len(wanted) > PAGE else None

    def _path(self, session: str) -> Path | None:
        if self._folder is None or not _SESSION_ID.fullmatch(session):
            return None
        return self._folder / f"{session}.jsonl"

    def _summaries(self) -> Iterator[Summary]:
        if self._folder is None:
            return
        with suppress(OSError):
            for path in self._folder.glob("*.jsonl"):
                summary = _summary(path)
                if summary is not None:
                    yield summary


def unknown_session(session: str) -> EditorError:
    """The answer for a session id that nobody knows."""
    return EditorError(NOT_FOUND, "unknown session: it was never stored", {"sessionId": session})


def timestamp(nanoseconds: int) -> str:
    """Nanoseconds of the epoch as RFC 3339 in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _open(path: Path, flags: int) -> int:
    descriptor = os.open(
        path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600
    )
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise BridgeError(
            f'session "{path.stem}" is open in another process of responses-acp: close it there, '
            "then load it again"
        ) from error
    return descriptor


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


def _summary(path: Path) -> Summary | None:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            head = file.read(_HEAD) if stat.S_ISREG(status.st_mode) else b""
    except OSError:
        return None
    records = [record for line in head.split(b"\n") if (record := decode(line)) is not None]
    opened = next(iter(records), None)
    if not isinstance(opened, Opened):
        return None
    return Summary(opened.session, opened.cwd, _last_title(records), status.st_mtime_ns)


def _last_title(records: Iterable[Record]) -> str | None:
    titles = [record.title for record in records if isinstance(record, Titled)]
    return titles[-1] if titles else None


def _rank(summary: Summary) -> tuple[int, str]:
    return summary.updated_ns, summary.session


def _cursor(last: Summary) -> str:
    return base64.urlsafe_b64encode(f"{last.updated_ns}:{last.session}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[int, str]:
    try:
        updated, _, session = base64.urlsafe_b64decode(cursor).decode().partition(":")
        return int(updated), session
    except ValueError:
        raise EditorError(
            INVALID_PARAMS, "cursor: not one that session/list gave; ask for the first page again"
        ) from None
