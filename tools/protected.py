"""What stays as it is in a folder that commands may change, and what is done if it did not.

Rule 1: what exists is mounted over itself, with everything on the way to it, so that it can be
neither changed nor moved. Nothing is made in the workspace to hold a place.
Rule 2: what does not exist is looked for after the command, and put aside under another name.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tools.frozen import frozen
from tools.paths import PROTECTED, is_inside
from tools.regular import anchored
from tools.repository import OF_A_WORKTREE, Layout, layout, leads_to_common, listed, read_text

Place = tuple[str, str]
"""A kind of place, as tools/confine.py knows them, and its path."""

_RUNS_PROGRAMS = re.compile(
    r"\[\s*(alias|credential|diff|filter|gpg|include|merge|protocol|sendemail)"
    r"|(^|\])\s*(update|worktree"
    r"|[\w-]*(askpass|cmd|command|editor|exec|fsmonitor|helper|hookspath|pack\b|pager|program|proxy"
    r"|tool|vcs)[\w-]*)\s*(=|$)",
    re.IGNORECASE | re.MULTILINE,
)
"""git-config(1): sections and settings by which git runs something, or works elsewhere."""


@frozen
class Watched:
    """A name that could not be mounted over."""

    path: str
    before: str | None
    """None: nothing was there; else where the symbolic link pointed."""
    text: str | None = None
    """What the file holds unless it goes; None: it was no file."""
    known: tuple[str, ...] | None = None
    """It holds what belongs to worktrees, of which this was there; None: it is no such folder."""


@frozen
class Survey:
    """What a command finds on disk."""

    places: tuple[Place, ...] = ()
    """To be mounted before it runs."""
    watched: tuple[Watched, ...] = ()
    """To be looked at when it is over."""


def guard(roots: Sequence[str], *, sealed: bool = False) -> Survey:
    """What to mount, and what to look at afterwards, for these folders.

    sealed: their repositories stay as they are, with all that is in them.
    """
    layouts = [layout(root, roots) for root in roots]
    around_them = [path for one in layouts for path in one.write if path not in roots]
    if sealed:
        layouts = [one.sealed() for one in layouts]
    bases = (*roots, *(() if sealed else around_them))
    places = dict.fromkeys(around_them, "read" if sealed else "write")
    watched: dict[str, Watched] = {}
    for path in _fixed(roots, layouts, sealed=sealed):
        around = [base for base in bases if base != path and is_inside(path, base)]
        if not around:
            continue  # nobody can change it
        if os.path.islink(path):
            watched[path] = Watched(path, os.readlink(path))
        elif os.path.lexists(path):
            places |= {one: places.get(one, "pin") for one in _between(max(around, key=len), path)}
            places[path] = "ro"
        else:
            watched[path] = Watched(path, None)
    for one in layouts:
        watched |= {path: _with_worktrees(path) for path in one.worktrees}
        entries = filter(os.path.lexists, one.entries)
        watched |= {path: Watched(path, None, read_text(path)) for path in entries}
    pinned = (path for one in layouts for path in (*one.pinned, *one.worktrees) if _is_folder(path))
    places |= {path: places.get(path, "pin") for path in pinned}
    return Survey(tuple((kind, path) for path, kind in places.items()), tuple(watched.values()))


def _fixed(roots: Sequence[str], layouts: Iterable[Layout], *, sealed: bool) -> Iterator[str]:
    """Every path that must not change; links on the way to it are followed."""
    for path in (
        *(f"{root}/{name}" for root in roots for name in sorted(PROTECTED)),
        *(path for one in layouts for path in one.fixed),
    ):
        # An open repository is guarded by its parts: commits change it.
        if not sealed and os.path.basename(path) == ".git" and _is_folder(path):
            continue
        yield path
        if (real := os.path.realpath(path)) != path:
            yield real


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _with_worktrees(folder: str) -> Watched:
    """The folder, as it is now."""
    parts = (f"{tree}/{name}" for tree in listed(folder) for name in OF_A_WORKTREE)
    known = (path.removeprefix(f"{folder}/") for path in parts if os.path.lexists(path))
    return Watched(folder, None, known=tuple(known))


def _between(base: str, path: str) -> list[str]:
    """The folders between one that is mounted and a path inside, outer ones first."""
    found: list[str] = []
    while (path := os.path.dirname(path)) != base:
        found.insert(0, path)
    return found


def told(watched: Iterable[Watched]) -> list[str]:
    """Each of them as a line of text."""
    return [json.dumps([one.path, one.before, one.text, one.known]) for one in watched]


def watched_of(lines: Iterable[str]) -> list[Watched]:
    """What told() made lines of."""
    found = [json.loads(line) for line in lines]
    return [
        Watched(path, before, text, None if known is None else tuple(known))
        for path, before, text, known in found
    ]


def put_aside(watched: Iterable[Watched]) -> list[str]:
    """Rename what appeared under a watched name; gives a sentence for each.

    What a link leads to on the way there lies elsewhere and is none of the command's.
    """
    return [
        f"moved {path} to {moved}: other programs could run what it holds"
        for one in watched
        for path, moved in _moved(one)
    ]


def _moved(one: Watched) -> list[tuple[str, str]]:
    """What was new at a watched place and is not to stay, and where it went."""
    try:
        with anchored(one.path) as name:
            found = list(_strange(replace(one, path=name)))
            moved = [(path, aside) for path in found if (aside := _renamed(path))]
    except OSError:
        return []
    return [
        (one.path + path.removeprefix(name), one.path + aside.removeprefix(name))
        for path, aside in moved
    ]


def _strange(one: Watched) -> Iterator[str]:
    """What is new at a watched place and could run something."""
    if one.known is None or os.path.islink(one.path):
        if _is_new(one):
            yield one.path
        return
    known = {f"{one.path}/{part}" for part in one.known}
    for tree in listed(one.path):
        if os.path.islink(tree):
            yield tree
            continue
        if os.path.lexists(f"{tree}/commondir") and not leads_to_common(tree):
            yield f"{tree}/commondir"
        parts = (f"{tree}/{name}" for name in OF_A_WORKTREE)
        yield from (path for path in parts if path not in known and os.path.lexists(path))


def _is_new(one: Watched) -> bool:
    if one.text is not None:
        is_file = os.path.isfile(one.path) and not os.path.islink(one.path)
        return os.path.lexists(one.path) and not (is_file and read_text(one.path) == one.text)
    if os.path.basename(one.path) == ".git" and one.before is None:
        return os.path.lexists(one.path) and not _is_plain_repository(one.path)
    now = os.readlink(one.path) if os.path.islink(one.path) else None
    return os.path.lexists(one.path) and (one.before is None or now != one.before)


def _is_plain_repository(path: str) -> bool:
    """Whether `git init` or `git clone` may have made this, and nobody else."""
    if not _is_folder(path):
        return False
    try:
        hooks = os.listdir(f"{path}/hooks") if os.path.lexists(f"{path}/hooks") else []
        with open(f"{path}/config", encoding="utf-8", errors="replace") as file:
            settings = file.read()
    except OSError:
        return False
    return (
        all(name.endswith(".sample") for name in hooks)
        and not _RUNS_PROGRAMS.search(settings)
        and not any(os.path.lexists(f"{path}/{name}") for name in ("commondir", "config.worktree"))
    )


def _renamed(path: str) -> str | None:
    for number in range(1, 100):
        aside = f"{path}.blocked" + (f"-{number}" if number > 1 else "")
        if not os.path.lexists(aside):
            try:
                os.rename(path, aside)
            except OSError:
                return None
            return aside
    return None
