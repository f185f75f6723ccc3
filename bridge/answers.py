"""What the person allowed or denied for good: for this session, or for every one in this folder.

Those of a project stand in the state directory, one file for each, never in the project.

Rule 1: a file is replaced whole, under a lock, by whoever adds or takes away; readers see the one
before or the one after.
Rule 2: a file that others could write, or that holds no answers, holds none.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from bridge import log
from bridge.core.rule import FOR_PROJECT, Rule, Sort, exactly
from bridge.core.wire import dump, load_object

try:
    import fcntl
except ImportError:  # native Windows, where no session is ever opened
    fcntl = None

_LONGEST = 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Answers:
    """The answers for one session; owned by it. Without a folder none outlasts the process."""

    def __init__(self, folder: Path | None, cwd: str) -> None:
        self._root = os.path.realpath(cwd)
        named = hashlib.sha256(os.fsencode(self._root)).hexdigest()[:32]
        self._file = None if folder is None else folder / f"{named}.json"
        self._session: list[Rule] = []
        self._stored: tuple[Rule, ...] = ()
        self._stamp: tuple[int, ...] | None = None
        """Of the file that was read last."""

    def rules(self) -> tuple[Rule, ...]:
        """All of them, as they are now: other sessions may have added some."""
        self._refresh()
        return (*self._session, *self._stored)

    def keep(self, rule: Rule) -> None:
        """From now on; where it cannot be written down, for this session."""
        if rule.source == FOR_PROJECT and self._file is not None:
            try:
                self._change(lambda known: [*(one for one in known if one != rule), rule])
            except OSError as error:
                log.say(f"an answer for a project is not stored: {error.strerror}")
            else:
                return
        if rule not in self._session:
            self._session.append(rule)

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
            self._stored, self._stamp = (), None
            return
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode, found.st_uid)
        if stamp != self._stamp:
            self._stored, self._stamp = self._read(self._file), stamp

    def _read(self, file: Path) -> tuple[Rule, ...]:
        try:
            return tuple(_rules(_text(file), self._root))
        except (OSError, ValueError):
            log.say("the answers stored for a project cannot be used; they count as none")
            return ()

    def _change(self, change: Callable[[Sequence[Rule]], Iterable[Rule]]) -> None:
        """Read, change and replace the file, while nobody else does; OSError."""
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(self._file.with_suffix(".lock")):
            self._refresh()
            entries = [_entry(rule) for rule in change(self._stored)]
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
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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


def _rules(text: bytes, root: str) -> Iterable[Rule]:
    stored = load_object(text)
    answers = stored.get("answers")
    if stored.get("root") != root or not isinstance(answers, list):
        raise ValueError("it is of another project")
    for one in cast("list[Any]", answers):
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            yield _rule(one)


def _rule(entry: dict[str, str]) -> Rule:
    sort: Sort = "deny" if entry["sort"] == "deny" else "allow"
    if "exactly" in entry:
        return exactly(sort, entry["exactly"], entry["of"], FOR_PROJECT)
    from bridge.core.rules import parsed  # noqa: PLC0415 (few folders have any)

    return parsed(sort, entry["rule"], FOR_PROJECT)


def _entry(rule: Rule) -> dict[str, str]:
    if rule.exact:
        return {"sort": rule.sort, "exactly": rule.tool, "of": rule.about}
    return {"sort": rule.sort, "rule": rule.text}
