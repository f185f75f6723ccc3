"""What the person allowed or denied for good: for this session, or for every one in this folder.

Those of a project stand in the state directory, one file for each, never in the project.

Rule 1: a file is replaced whole, under a lock, by whoever adds or takes away; readers see the one
before or the one after.
Rule 2: a file that others could write, or that holds no answers, holds none.
Rule 3: what allows is believed only if all of its entry is understood; what is not stays in the
file for the version that wrote it.
"""

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from bridge import log
from bridge.core.rule import FOR_PROJECT, FOR_SESSION, Rule, Sort, exactly
from bridge.core.wire import dump, load_object

_SORTS: Mapping[str, Sort] = {"allow": "allow", "deny": "deny"}
_BY_RULE, _EXACTLY = {"sort", "rule"}, {"sort", "exactly", "of"}
"""The members of an answer, as this version writes them."""
_LONGEST = 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TRIES, _PAUSE = 200, 0.01
"""How often, and after how many seconds, it is tried again to be the one who changes the file."""
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Answers:
    """The answers for one session; owned by it. Without a folder none outlasts the process."""

    def __init__(self, folder: Path | None, cwd: str) -> None:
        self._root = os.path.realpath(cwd)
        named = hashlib.sha256(os.fsencode(self._root)).hexdigest()[:32]
        self._file = None if folder is None else folder / f"{named}.json"
        self._session: list[Rule] = []
        self._stored: tuple[Rule, ...] = ()
        self._strange: tuple[object, ...] = ()
        """Of the file, what is no answer as this version writes them."""
        self._stamp: tuple[int, ...] | None = None
        """Of the file that was read last."""

    def rules(self) -> tuple[Rule, ...]:
        """All of them, as they are now: other sessions may have added some."""
        self._refresh()
        return (*self._session, *self._stored)

    def keep(self, rule: Rule) -> bool:
        """From now on; False where it cannot be written down, and holds for this session alone."""
        for_session = rule.source != FOR_PROJECT
        stored = not for_session and self._store(rule)
        own = rule if for_session else replace(rule, source=FOR_SESSION)
        if not stored and own not in self._session:
            self._session.append(own)
        return stored or for_session

    def _store(self, rule: Rule) -> bool:
        if self._file is None:
            return False
        try:
            self._change(lambda known: [*(one for one in known if one != rule), rule])
        except OSError as error:
            log.say(f"an answer for a project is not stored: {error.strerror}")
            return False
        return True

    def forget(self, text: str) -> int:
        """Take back the answers that read like this, or all for an empty text; how many."""

        def stays(rule: Rule) -> bool:
            return bool(text) and text not in (rule.text, f"{rule.sort} {rule.text}")

        before = len(self.rules())
        self._session = [rule for rule in self._session if stays(rule)]
        if not all(map(stays, self._stored)):
            self._change(lambda known: [rule for rule in known if stays(rule)])
        return before - len(self.rules())

    def _refresh(self) -> None:
        if self._file is None:
            return
        try:
            found = self._file.stat(follow_symlinks=False)
        except OSError:
            self._stored, self._strange, self._stamp = (), (), None
            return
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode, found.st_uid)
        if stamp != self._stamp:
            read = self._read(self._file)
            self._stored = tuple(rule for rule, _ in read if rule is not None)
            self._strange = tuple(entry for rule, entry in read if rule is None)
            self._stamp = stamp

    def _read(self, file: Path) -> list[tuple[Rule | None, object]]:
        """What the file holds, each with what it means."""
        try:
            return [(_rule(entry), entry) for entry in _entries(_text(file), self._root)]
        except (OSError, ValueError):
            log.say("the answers stored for a project cannot be used; they count as none")
            return []

    def _change(self, change: Callable[[Sequence[Rule]], Iterable[Rule]]) -> None:
        """Read, change and replace the file, while nobody else does; OSError."""
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(self._file.with_suffix(".lock")):
            self._refresh()
            entries = [*self._strange, *map(_entry, change(self._stored))]
            fresh = self._file.with_suffix(f".{os.getpid()}")
            with suppress(FileNotFoundError):
                fresh.unlink()
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as out:
                out.write(dump({"root": self._root, "answers": entries}))
                out.flush()
                os.fsync(descriptor)
            fresh.replace(self._file)
        self._refresh()


@contextmanager
def _locked(path: Path) -> Generator[None]:
    descriptor = os.open(path, _LOCK, 0o600)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Be the only one; OSError where another process does not let go, as one that was stopped."""
    for again in reversed(range(_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not again:
                raise
            time.sleep(_PAUSE)
        else:
            break


def _text(file: Path) -> bytes:
    descriptor = os.open(file, _READ)
    try:
        found = os.fstat(descriptor)
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not ours or found.st_mode & 0o022 or found.st_size > _LONGEST:
            raise ValueError("others could have written it")
        return os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)


def _entries(text: bytes, root: str) -> list[object]:
    stored = load_object(text)
    answers = stored.get("answers")
    if stored.get("root") != root or not isinstance(answers, list):
        raise ValueError("it is of another project")
    return cast("list[object]", answers)


def _rule(entry: object) -> Rule | None:
    """The answer that is written here; None: this version does not know what it means."""
    members = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    texts = {key: value for key, value in members.items() if isinstance(value, str)}
    sort: Sort | None = _SORTS.get(texts.get("sort", ""))
    # A member more can only make an answer narrower: what denies is taken at its widest.
    if sort is None or (sort == "allow" and members.keys() not in (_BY_RULE, _EXACTLY)):
        return None
    match texts:
        case {"exactly": ("shell" | "edit" | "read" | "call") as tool, "of": about}:
            return exactly(sort, tool, about, FOR_PROJECT)
        case {"rule": text}:
            return _parsed(sort, text)
        case _:
            return None


def _parsed(sort: Sort, text: str) -> Rule | None:
    from bridge.core.rules import BadRule, parsed  # noqa: PLC0415 (few folders have any)

    try:
        return parsed(sort, text, FOR_PROJECT)
    except BadRule:
        return None


def _entry(rule: Rule) -> dict[str, str]:
    if rule.exact:
        return {"sort": rule.sort, "exactly": rule.tool, "of": rule.about}
    return {"sort": rule.sort, "rule": rule.text}
