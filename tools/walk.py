"""A small search program for machines without ripgrep: files below a folder, lines in them.

It is run as a process of its own, since a pattern that never comes to an end can only be killed.
It prints what ripgrep prints, so that its reader need not know which of the two ran.

Rule 1: entries that .gitignore rules exclude are left out, and so is .git. In a git repository
rules count as far as it reaches; elsewhere, all of the folders above.
Rule 2: no symbolic link is followed, and nothing but regular files is opened.
Rule 3: a file with a NUL is no text and has no matches.
Rule 4: nothing but the standard library loads here.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator

from tools.frozen import frozen
from tools.globs import Rule, is_ignored, rules, wanted

LARGEST = 64 * 1024 * 1024
"""Bytes of a file beyond which it is not searched."""
LONGEST = 2000
"""Characters of a line that are printed."""

_PLAIN = re.compile(r"[^\\^$.|?*+()\[\]{}]+")
"""Patterns that stand for themselves; most are, and most files do not hold them."""
_LARGEST_RULES = 1024 * 1024
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_NOFOLLOW")
)


@frozen
class Scope:
    """The rules of one folder."""

    depth: int
    """How many parts the path of the folder has."""
    rules: tuple[Rule, ...]


Scopes = tuple[Scope, ...]


@frozen
class Job:
    """What the program is to do; it is given as JSON."""

    top: str
    """An absolute folder."""
    name: str | None = None
    """A file in it, if only that one is to be searched."""
    pattern: str | None = None
    """None: the files themselves are asked for."""
    ignore_case: bool = False
    glob: str | None = None
    """What the files' paths must fit."""


def main(text: str) -> None:
    """Do a job and print what it found."""
    job = Job(**json.loads(text))
    out = sys.stdout.buffer
    flags = re.IGNORECASE if job.ignore_case else 0
    pattern = None if job.pattern is None else re.compile(job.pattern, flags)
    for path in _paths(job):
        name = os.fsencode(f"./{path}") + b"\0"
        if pattern is None:
            out.write(name)
            continue
        for number, line in matches(os.path.join(job.top, path), pattern):
            out.write(name + f"{number}:{line[:LONGEST]}\n".encode("utf-8", "surrogateescape"))
    out.flush()


def files(top: str) -> Iterator[str]:
    """The regular files below a folder that are not ignored, as paths from there."""
    depth = len(_parts(top))
    home = repository(top)
    pending = [(top, _scopes_above(top, home))]
    while pending:
        folder, above = pending.pop()
        if home is not None and _has_git(folder):
            above = ()
        scopes, within = _scopes(folder, above), _parts(folder)
        for entry in _entries(folder):
            parts = (*within, entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.is_file(follow_symlinks=False):
                continue
            if _is_left_out(parts, scopes, folder=is_folder):
                continue
            if is_folder:
                pending.append((entry.path, scopes))
            else:
                yield "/".join(parts[depth:])


def repository(folder: str) -> str | None:
    """Where the git repository begins that a folder is in."""
    return next(filter(_has_git, _way_up(folder)), None)


def matches(path: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The lines of a text file that hold the pattern, after their numbers."""
    text = text_of(_read(path, LARGEST))
    plain = _PLAIN.fullmatch(pattern.pattern) and not pattern.flags & re.IGNORECASE
    if plain and pattern.pattern not in text:
        return
    lines = text.split("\n")
    if not lines[-1]:
        del lines[-1]
    for number, line in enumerate(lines, 1):
        bare = line.removesuffix("\r")
        if pattern.search(bare):
            yield number, bare


def text_of(data: bytes) -> str:
    """The text of a file, by its byte order mark or as UTF-8; nothing if it is none."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    else:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return "" if "\0" in text else text


def _paths(job: Job) -> Iterator[str]:
    if job.name is not None:
        yield job.name
        return
    fits = wanted(job.glob) if job.glob is not None else None
    for path in files(job.top):
        if "\n" not in path and (fits is None or fits(path.split("/"))):
            yield path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_left_out(parts: tuple[str, ...], scopes: Scopes, *, folder: bool) -> bool:
    if parts[-1] == ".git":
        return True
    for scope in reversed(scopes):
        said = is_ignored(scope.rules, parts[scope.depth :], folder=folder)
        if said is not None:
            return said
    return False


def _scopes_above(top: str, home: str | None) -> Scopes:
    """The rules of the folders above, up to where the repository begins."""
    scopes: Scopes = ()
    for folder in reversed(list(_way_up(top))):
        if folder != top and len(folder) >= len(home or "/"):
            scopes = _scopes(folder, scopes)
    return scopes


def _scopes(folder: str, above: Scopes) -> Scopes:
    """The rules in force in a folder: its own after those of the folders above."""
    data = _read(os.path.join(folder, ".gitignore"), _LARGEST_RULES, follow=True)
    own = rules(data.decode("utf-8", "surrogateescape"))
    return (*above, Scope(len(_parts(folder)), own)) if own else above


def _way_up(folder: str) -> Iterator[str]:
    yield folder
    while folder != "/":
        folder = os.path.dirname(folder)
        yield folder


def _has_git(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, ".git"))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(filter(None, path.split("/")))


def _read(path: str, most: int, *, follow: bool = False) -> bytes:
    """The bytes of a regular file; none where it cannot be read, or is larger."""
    flags = _FLAGS & ~os.O_NOFOLLOW if follow else _FLAGS
    try:
        if not stat.S_ISREG((os.stat if follow else os.lstat)(path).st_mode):
            return b""
        with open(os.open(path, flags), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                return b""
            return file.read(most)
    except OSError:
        return b""
