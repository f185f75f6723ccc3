"""Searches on this machine: ripgrep where it is installed, else the program in tools/walk.py.

Rule 1: both find the same. A pattern means what Python says it means; what ripgrep refuses, or
would read differently, is searched for by the other one.
Rule 2: the program gets no configuration and no environment, nothing from a folder that is not
trusted is run, and what it finds is read as it comes and never kept whole.
Rule 3: however a search ends, its process is gone when it returns.
Rule 4: a program may be led out of the folder by a link that appears at the right moment, so what
is to be told is looked at once more, by us.
"""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

import anyio
from anyio import to_thread

from tools import regular, walk
from tools.base import FileTooLarge, Found, NotRegular, Query
from tools.frozen import frozen
from tools.globs import wanted
from tools.offspring import signal_group
from tools.paths import is_inside
from tools.process import exit_of

MOST_LINES = 200
"""Lines of one file that are kept."""

_LONGEST_SHOWN = 300
"""Characters of a line; it must be less than a program prints of one."""
_PIECE = 256 * 1024

_RIPGREP = (
    "--no-config", "--no-messages", "--no-ignore-messages", "--color=never",
    "--hidden", "--glob=!.git", "--null",
    "--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global",
    f"--max-filesize={walk.LARGEST}",
)  # fmt: skip
_RIPGREP_LINES = (
    "--no-heading", "--with-filename", "--line-number", "--crlf", "--no-mmap",
    f"--max-columns={walk.LONGEST}", "--max-columns-preview",
)  # fmt: skip

_READ_DIFFERENTLY = re.compile(r"\\[<>]|\\b\{|[*+?}]\+")
"""Word boundaries and possessive repeats: the one language has what the other reads as plain."""

_PLAIN_NAME = re.compile(r"[\w.*-]+", re.ASCII)
"""Patterns of names that both read alike."""

_BINARY = re.compile(
    rb"(?:WARNING: stopped searching binary file after match|binary file matches) \(found .*\)\Z"
)

_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from tools.walk import main; main(sys.argv[2])"
)
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@frozen
class Limits:
    """What one search may take."""

    seconds: float = 20.0
    printed: int = 64 * 1024 * 1024
    """Bytes."""


_FAILED = "the search program failed"

FindRipgrep = Callable[[Sequence[str]], str | None]


def ripgrep(distrusted: Sequence[str]) -> str | None:
    """Where ripgrep is: on PATH or beside our own interpreter, but in no folder named here."""
    folders = [*filter(os.path.isabs, os.get_exec_path()), os.path.dirname(sys.executable)]
    trusted = (one for one in folders if not is_inside(os.path.realpath(one), *distrusted))
    found = shutil.which("rg", path=os.pathsep.join(trusted))
    if found is None or is_inside(os.path.realpath(found), *distrusted):
        return None
    return found


async def search(
    query: Query,
    take: Callable[[Found], None],
    find: FindRipgrep = ripgrep,
    limits: Limits = Limits(),  # noqa: B008 (it cannot change)
) -> str:
    """Search a folder or a file; the contract is that of Files.search in tools.base."""
    top, name, rules = await to_thread.run_sync(_ground, query.top)
    fits = wanted(query.glob) if query.glob is not None and name is None else None
    is_told = False

    def chosen(found: Found) -> None:
        nonlocal is_told
        if "\n" not in found.path and (fits is None or fits(found.path.split("/"))):
            is_told = True
            take(replace(found, path=os.path.join(top, found.path)))

    program = await to_thread.run_sync(find, query.distrusted)
    if program is not None and not _READ_DIFFERENTLY.search(query.pattern or ""):
        argv = (program, rules, *_ripgrep_arguments(query, name))
        reason = await _run(argv, top, _reader(query, chosen), limits)
        if is_told or reason != _FAILED:
            return reason
    job = walk.Job(top, name, query.pattern, query.ignore_case, query.glob)
    argv = (sys.executable, "-I", "-X", "utf8", "-c", _PROGRAM, _HOME, json.dumps(asdict(job)))
    return await _run(argv, top, _reader(query, chosen), limits)


def confirmed(found: Sequence[Found]) -> list[Found]:
    """Those of the files that are there, behind no link, and hold the lines."""
    return [one for one in found if _is_there(one)]


def _is_there(found: Found) -> bool:
    try:
        if not found.hits:
            with regular.anchored(found.path) as name:
                return stat.S_ISREG(os.lstat(name).st_mode)
        file = regular.read(found.path, walk.LARGEST)
    except OSError:
        return False
    if file is None:
        return False
    lines = walk.text_of(file.data).split("\n")
    return all(
        number <= len(lines) and _line(lines[number - 1].encode("utf-8", "surrogateescape")) == line
        for number, line in found.lines
    )


def _ground(path: str) -> tuple[str, str | None, str]:
    """The folder to search, the file in it if it is only one, and which rules ripgrep obeys."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        # Told to do without git, ripgrep no longer sees where a repository begins.
        inside = walk.repository(path) is not None
        return path, None, "--require-git" if inside else "--no-require-git"
    if not stat.S_ISREG(status.st_mode):
        raise NotRegular("neither a file nor a folder")
    if status.st_size > walk.LARGEST:
        raise FileTooLarge(status.st_size)
    return *os.path.split(path), "--require-git"


def _ripgrep_arguments(query: Query, name: str | None) -> Iterator[str]:
    yield from _RIPGREP
    if name is None and query.glob is not None and _PLAIN_NAME.fullmatch(query.glob):
        yield from (f"--type-add=wanted:{query.glob}", "--type=wanted")
    if query.pattern is None:
        yield "--files"
    else:
        yield from _RIPGREP_LINES
        yield "--ignore-case" if query.ignore_case else "--case-sensitive"
        yield f"--regexp={query.pattern}"
    yield from ("--", f"./{name or ''}")


def _reader(query: Query, take: Callable[[Found], None]) -> "Names | Lines":
    return Names(take) if query.pattern is None else Lines(take)


@dataclass(slots=True)
class Names:
    """Reads a list of files, each path ended by a NUL: feed() all bytes, then close()."""

    take: Callable[[Found], None]
    _rest: bytes = b""

    def feed(self, data: bytes) -> None:
        """Take the bytes that follow."""
        *paths, self._rest = (self._rest + data).split(b"\0")
        for path in paths:
            self.take(Found(_path(path)))

    def close(self) -> None:
        """All bytes came."""


@dataclass(slots=True)
class Lines:
    r"""Reads lines of the form PATH\0NUMBER:TEXT, file after file: feed() all, then close()."""

    take: Callable[[Found], None]
    _rest: bytes = b""
    _path: bytes = b""
    _hits: int = 0
    _lines: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def feed(self, data: bytes) -> None:
        """Take the bytes that follow."""
        *rows, self._rest = (self._rest + data).split(b"\n")
        for row in rows:
            self._feed(row)

    def close(self) -> None:
        """All bytes came: give the last file."""
        if self._hits:
            self.take(Found(_path(self._path), self._hits, tuple(self._lines)))
        self._hits, self._lines = 0, []

    def _feed(self, row: bytes) -> None:
        path, nul, rest = row.partition(b"\0")
        if not nul:
            if _BINARY.search(row):
                self._hits = 0  # what was found before the NUL does not count
            return
        if not path.startswith(b"./"):
            return  # the rest of a name that holds a line end
        if path != self._path:
            self.close()
            self._path = path
        number, _, text = rest.partition(b":")
        self._hits += 1
        if len(self._lines) < MOST_LINES:
            self._lines.append((int(number), _line(text)))


def _path(path: bytes) -> str:
    return os.fsdecode(path.removeprefix(b"./"))


def _line(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace").removesuffix("\r")
    if len(text) > _LONGEST_SHOWN:
        return f"{text[:_LONGEST_SHOWN]}... (line truncated to {_LONGEST_SHOWN} chars)"
    return text


async def _run(argv: Sequence[str], cwd: str, reader: Names | Lines, limits: Limits) -> str:
    """Run a program and read what it prints; why there may be more, or nothing if that is all."""
    process = _start(argv, cwd)
    out, err = (pipe for pipe in (process.stdout, process.stderr) if pipe)
    reason = f"it was stopped after {limits.seconds:g} seconds"
    try:
        with anyio.move_on_after(limits.seconds):
            reason = await _listen(out.fileno(), reader, limits.printed)
            if not reason and await _piece(err.fileno()):
                reason = _FAILED
    finally:
        with anyio.CancelScope(shield=True):
            signal_group(process.pid, signal.SIGKILL)
            await exit_of(process)
            process.wait()
        out.close()
        err.close()
    reader.close()
    return reason


def _start(argv: Sequence[str], cwd: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 (the pattern is one argument, and no shell reads it)
        argv,
        bufsize=0,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={},
        start_new_session=True,
    )


async def _listen(pipe: int, reader: Names | Lines, most: int) -> str:
    size = 0
    while data := await _piece(pipe):
        reader.feed(data)
        size += len(data)
        if size > most:
            return "it was stopped because it found too much"
    return ""


async def _piece(pipe: int) -> bytes:
    await anyio.wait_readable(pipe)
    return os.read(pipe, _PIECE)
