"""Sessions on disk: one append-only file of records each, in the state directory.

Beside ID.jsonl stand ID.label (what the list shows) and ID.torn (the end of a file that a crash
left torn). All of it is 0600 in a folder that is 0700.

Rule 1: a file exists from a session's first prompt on.
Rule 2: an id becomes a path only if it looks like one of ours.
Rule 3: a list reads the labels of sessions, and of a session without one its file, once.
"""

import base64
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bridge.answers import Answers
from bridge.core.records import FORMAT, Opened, Record, Titled, decode, format_of
from bridge.errors import INVALID_PARAMS, NOT_FOUND, BridgeError, EditorError
from bridge.journal import Journal, open_file, read
from bridge.label import Label, read_label, write_label
from tools.frozen import frozen
from tools.late import pattern

PAGE = 50
"""Sessions of one answer to session/list."""

_SESSION_ID = pattern(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_HEADER = 64 * 1024


@frozen
class Summary:
    """One line of the session list."""

    label: Label
    updated_ns: int

    @property
    def updated_at(self) -> str:
        """RFC 3339, UTC."""
        return timestamp(self.updated_ns)


@frozen
class Stored:
    """A session that was opened again."""

    opened: Opened
    journal: Journal

    def records(self) -> Iterator[Record]:
        """All of them, the first included, one at a time; BridgeError."""
        with _told(self.opened.session):
            yield from self.journal.records()


class Store:
    """All sessions of this user; without a folder nothing is kept beyond the process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def create(self, opened: Opened, directories: tuple[str, ...] = ()) -> Journal:
        """The journal of a new session; the file comes with start()."""
        label = Label(opened.session, opened.cwd, None, directories, os.getpid())
        return Journal(self._path(opened.session), label, [opened])

    def answers(self, cwd: str) -> Answers:
        """What the person allowed or denied for good in this folder."""
        return Answers(self._folder and self._folder.with_name("permissions"), cwd)

    def opened(self, session: str) -> Opened:
        """The first record of a session; BridgeError where this program cannot go on from it."""
        with _told(session), open_file(self._path(session)) as file:
            line = file.readline(_LONGEST_HEADER)
        version = format_of(line)
        if version not in (None, FORMAT):
            raise BridgeError(
                f'the file of session "{session}" has format {version}, this program knows '
                f"{FORMAT}: load it with the version of responses-acp that wrote it"
            )
        opened = decode(line)
        if not isinstance(opened, Opened) or opened.session != session:
            raise BridgeError(
                f'the file of session "{session}" is damaged: its first line is bad; delete it or '
                "put a copy in its place"
            )
        return opened

    def load(self, session: str, directories: tuple[str, ...] = ()) -> Stored:
        """Open a stored session to go on with it: locked, and its end mended."""
        path, opened = self._path(session), self.opened(session)
        with _told(session):
            label = _label(path) or Label(session, opened.cwd)
            journal = Journal(path, replace(label, directories=directories, pid=os.getpid()))
            journal.resume()
        return Stored(opened, journal)

    def read(self, session: str) -> Generator[Record]:
        """The records of a session, which may be open elsewhere, one at a time."""
        self.opened(session)
        with _told(session):
            file = open_file(self._path(session))
        with file:
            yield from read(file, session)

    def delete(self, session: str) -> bool:
        """Remove a session and all that belongs to it; False if there is none."""
        journal = Journal(self._path(session), Label(session, ""))
        try:
            with _told(session):
                journal.resume()
                journal.delete()
        except EditorError:
            return False
        return True

    def list(self, cwd: str | None, cursor: str | None) -> tuple[list[Summary], str | None]:
        """One page, newest first, and the cursor of the next; EditorError for a bad cursor."""
        page: list[Summary] = []
        for summary in self.summaries(None if cursor is None else _read_cursor(cursor)):
            if cwd is None or summary.label.cwd == cwd:
                if len(page) == PAGE:
                    return page, _cursor(page[-1])
                page.append(summary)
        return page, None

    def summaries(self, after: tuple[int, str] | None = None) -> Iterator[Summary]:
        """Every session, newest first, from behind this place on."""
        for updated, session in sorted(self._found(), reverse=True):
            if after is None or (updated, session) < after:
                label = _label(self._path(session))
                if label is not None:
                    yield Summary(label, updated)

    def _found(self) -> Iterator[tuple[int, str]]:
        """When each session was last written to, and its id."""
        if self._folder is None:
            return
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                session, dot, kind = entry.name.partition(".")
                if dot + kind == ".jsonl" and _SESSION_ID.fullmatch(session):
                    with suppress(FileNotFoundError):  # deleted in this moment
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            yield status.st_mtime_ns, session

    def _path(self, session: str) -> Path | None:
        if self._folder is None or not _SESSION_ID.fullmatch(session):
            return None
        return self._folder / f"{session}.jsonl"


def timestamp(nanoseconds: int) -> str:
    """Nanoseconds of the epoch as RFC 3339 in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def _told(session: str) -> Generator[None]:
    """Turn what the disk refuses into an answer for the editor."""
    try:
        yield
    except FileNotFoundError as error:
        raise EditorError(
            NOT_FOUND,
            "unknown session: it was never stored, or was deleted",
            {"sessionId": session},
        ) from error
    except OSError as error:
        raise BridgeError(
            f'the file of session "{session}" cannot be opened: {error.strerror}; it must be a '
            "plain file that you can read and write"
        ) from error


def _label(path: Path | None) -> Label | None:
    """The label of a session's file, made again where it is missing; None: it is no session."""
    if path is None:
        return None
    known = read_label(path)
    if known is not None:
        return known
    label: Label | None = None
    with suppress(OSError), open_file(path) as file:
        for record in read(file, path.stem):
            match record:
                case Opened(session=session, cwd=cwd) if session == path.stem:
                    label = Label(session, cwd)
                case Titled(title=title) if label is not None:
                    label = replace(label, title=title)
                case _:
                    pass
            if label is None:  # the first record is no header
                return None
    if label is not None:
        write_label(path, label)
    return label


def _cursor(last: Summary) -> str:
    text = f"{last.updated_ns}:{last.label.session}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def _read_cursor(cursor: str) -> tuple[int, str]:
    try:
        updated, _, session = base64.urlsafe_b64decode(cursor).decode().partition(":")
        return int(updated), session
    except ValueError:
        raise EditorError(
            INVALID_PARAMS, "cursor: not one that session/list gave; ask for the first page again"
        ) from None
