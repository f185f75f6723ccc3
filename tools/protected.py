"""What stays as it is in a folder that commands may change, and what is done if it did not.

Rule 1: what exists is mounted over itself, with everything on the way to it, so that it can be
neither changed nor moved. Nothing is made in the workspace to hold a place.
Rule 2: what does not exist is looked for after the command, and put aside under another name.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tools.frozen import frozen
from tools.paths import PROTECTED, is_inside
from tools.regular import anchored
from tools.repository import Layout, layout

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


@frozen
class Guard:
    """How some folders are kept from harm while commands change them."""

    places: tuple[Place, ...]
    watched: tuple[Watched, ...]


def guard(roots: Sequence[str], *, sealed: bool = False) -> Guard:
    """What to mount, and what to look at afterwards, for these folders.

    sealed: their repositories stay as they are, with all that is in them.
    """
    layouts = [layout(root) for root in roots]
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
    pinned = (path for one in layouts for path in one.pinned if os.path.isdir(path))
    places |= {path: places.get(path, "pin") for path in pinned}
    return Guard(tuple((kind, path) for path, kind in places.items()), tuple(watched.values()))


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


def _between(base: str, path: str) -> list[str]:
    """The folders between one that is mounted and a path inside, outer ones first."""
    found: list[str] = []
    while (path := os.path.dirname(path)) != base:
        found.insert(0, path)
    return found


def put_aside(watched: Iterable[Watched]) -> list[str]:
    """Rename what appeared under a watched name; gives a sentence for each.

    What a link leads to on the way there lies elsewhere and is none of the command's.
    """
    return [
        f"moved {one.path} to {moved}: other programs could run what it holds"
        for one in watched
        if (moved := _moved(one))
    ]


def _moved(one: Watched) -> str | None:
    """Where that went which was new at a watched place; None: nothing was, or it stays."""
    try:
        with anchored(one.path) as name:
            held = replace(one, path=name)
            aside = _renamed(name) if _is_new(held) else None
    except OSError:
        return None
    return aside and os.path.join(os.path.dirname(one.path), os.path.basename(aside))


def _is_new(one: Watched) -> bool:
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
