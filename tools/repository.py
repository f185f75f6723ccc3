"""Where git keeps the repository of a folder, and which part of it runs programs.

It reads what git wrote; it starts nothing and changes nothing.

Rule 1: a folder that lies elsewhere belongs to a checkout only if it says so itself, and not
because a file in the checkout names it: anyone can write such a file.
Rule 2: of an open repository history, index and references may change; hooks, settings and the
files that say where the rest is may not, since git runs what they name, later and outside of any
sandbox. Of a sealed one nothing may.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tools.frozen import frozen
from tools.paths import is_inside

# gitrepository-layout(5)
_FIXED = (
    "hooks", "config", "config.worktree", "info", "commondir", "gitdir", "branches", "remotes",
)  # fmt: skip
OF_A_WORKTREE = tuple(name for name in _FIXED if name not in ("commondir", "gitdir"))
"""What is not for git to make when it adds a worktree."""
_LONGEST = 64 * 1024
_MOST_SUBMODULES = 200

_MOST_SETTINGS = 50

_HOOKS_PATH = re.compile(r'(?:^|\])\s*hooksPath\s*=\s*"?([^"\n#;]+)', re.IGNORECASE | re.MULTILINE)
_PATH = re.compile(r'(?:^|\])\s*path\s*=\s*"?([^"\n#;]+)', re.IGNORECASE | re.MULTILINE)
"""git-config(1): further settings to obey, or a program to run."""
_WORK_TREE = re.compile(r'^\s*worktree\s*=\s*"?([^"\n#;]+)', re.IGNORECASE | re.MULTILINE)


@frozen
class Layout:
    """What git needs for the work in one folder."""

    write: tuple[str, ...] = ()
    """Folders outside of it that change with every commit."""
    pinned: tuple[str, ...] = ()
    """Folders that change inside, but must stay where they are."""
    fixed: tuple[str, ...] = ()
    """What must not change; some of it may not exist yet."""
    worktrees: tuple[str, ...] = ()
    """Folders of what belongs to worktrees, which git adds and removes."""
    entries: tuple[str, ...] = ()
    """The `.git` of worktrees in the folder: they may go, but must not lead elsewhere."""

    def sealed(self) -> "Layout":
        """The same, with nothing in it that may change."""
        fixed = (*self.fixed, *self.entries)
        kept = (path for path in fixed if not is_inside(path, *self.pinned))
        return Layout(self.write, (), (*self.pinned, *kept))


def layout(root: str, beside: Sequence[str] = ()) -> Layout:
    """The repository that git would find from a folder, which is absolute and resolved.

    beside: other folders in which there is work, with worktrees perhaps.
    """
    roots = (root, *beside)
    entry = _nearest(root)
    if entry is None or os.path.islink(entry):
        return Layout()
    if os.path.isdir(entry):
        return _joined(entry, entry, roots, () if os.path.dirname(entry) == root else (entry,))
    folder = _named(entry)
    if folder is None:
        return Layout(fixed=(entry,))
    if common := _common(folder, entry):
        return _linked(entry, roots, folder, common)
    if _work_tree(folder) == os.path.dirname(entry):
        found = _joined(folder, entry, roots, (folder,))
        return replace(found, fixed=(entry, *found.fixed))
    return Layout(fixed=(entry,))


def kept(roots: Iterable[str]) -> tuple[str, ...]:
    """What must not change in the repositories of these folders, where that leads to."""
    return tuple(os.path.realpath(path) for root in roots for path in layout(root).fixed)


def _nearest(folder: str) -> str | None:
    """The `.git` of the folder, or of the nearest one around it."""
    while True:
        entry = os.path.join(folder, ".git")
        if os.path.lexists(entry):
            return entry
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)


def _joined(folder: str, entry: str, roots: Sequence[str], write: tuple[str, ...]) -> Layout:
    """A repository, which a `.git` led to, and those of its submodules."""
    folders = [(folder, os.path.dirname(entry)), *_submodules(folder)]
    modules = {os.path.dirname(path) for path, _ in folders[1:]}
    trees = {tree: _entry(tree, roots) for at, _ in folders for tree in listed(f"{at}/worktrees")}
    fixed = [
        path
        for at, work in folders
        for path in (*(f"{at}/{name}" for name in _FIXED), *_obeyed(at, work))
    ]
    for tree, back in trees.items():
        fixed += [f"{tree}/{name}" for name in OF_A_WORKTREE] if back else [tree]
    fixed += [f"{work}/.git" for _, work in folders[1:] if work]
    return Layout(
        write,
        (*(at for at, _ in folders), *sorted(modules)),
        tuple(fixed),
        tuple(f"{at}/worktrees" for at, _ in folders),
        tuple(filter(None, trees.values())),
    )


def _linked(entry: str, roots: Sequence[str], folder: str, common: str) -> Layout:
    """A worktree that `git worktree add` made: most of its repository is that of another one."""
    whole = _joined(common, entry, roots, (common,))
    own = tuple(f"{folder}/{name}" for name in _FIXED)
    others = tuple(path for path in whole.fixed if not is_inside(path, folder))
    return replace(
        whole,
        pinned=(*whole.pinned, folder),
        fixed=(entry, *others, *own),
        entries=tuple(one for one in whole.entries if one != entry),
    )


def _entry(tree: str, roots: Sequence[str]) -> str | None:
    """The `.git` of a worktree in these folders, if both name each other, or it is gone."""
    back = read_text(f"{tree}/gitdir").strip()
    entry = os.path.realpath(os.path.join(tree, back)) if back else ""
    if not is_inside(entry, *roots) or not leads_to_common(tree):
        return None
    return entry if _named(entry) == tree or not os.path.lexists(entry) else None


def leads_to_common(tree: str) -> bool:
    """Whether the folder of a worktree names the repository around it, as git writes it."""
    return not os.path.islink(f"{tree}/commondir") and read_text(f"{tree}/commondir") == "../..\n"


def _common(folder: str, entry: str) -> str | None:
    """The repository that a worktree's folder is part of, where both say so."""
    named, back = read_text(f"{folder}/commondir").strip(), read_text(f"{folder}/gitdir").strip()
    if not named or not back or os.path.realpath(os.path.join(folder, back)) != entry:
        return None
    common = os.path.realpath(os.path.join(folder, named))
    return common if os.path.dirname(folder) == f"{common}/worktrees" else None


def _named(entry: str) -> str | None:
    """The folder that a `.git` file names."""
    key, _, path = read_text(entry).strip().partition(": ")
    folder = os.path.realpath(os.path.join(os.path.dirname(entry), path))
    return folder if key == "gitdir" and os.path.isfile(f"{folder}/HEAD") else None


def _submodules(folder: str) -> list[tuple[str, str]]:
    """The repositories below `modules`, each with its checkout."""
    found: list[tuple[str, str]] = []
    for path, names, files in os.walk(f"{folder}/modules"):
        if "HEAD" in files:
            names[:] = [name for name in names if name == "modules"]
            found.append((path, _work_tree(path) or ""))
        if len(found) == _MOST_SUBMODULES:
            break
    return found


def _work_tree(folder: str) -> str | None:
    """Where a repository says that its checkout is."""
    named = _WORK_TREE.search(read_text(f"{folder}/config"))
    return os.path.realpath(os.path.join(folder, named[1].strip())) if named else None


def _obeyed(folder: str, checkout: str) -> Iterator[str]:
    """Files of settings beside the repository's own, and folders that settings name for hooks."""
    own, users = [f"{folder}/config", f"{folder}/config.worktree"], _of_the_user()
    pending, known = [*own, *users], set(own)
    while pending and len(known) < _MOST_SETTINGS:
        path = pending.pop(0)
        if path not in known and (path not in users or is_inside(path, checkout)):
            yield path
        known.add(path)
        text = read_text(path)
        for named in _HOOKS_PATH.findall(text):
            yield _meant(named, checkout)
        pending += (
            one
            for it in _PATH.findall(text)
            if (one := _meant(it, os.path.dirname(path))) not in known
        )


def _of_the_user() -> list[str]:
    """git-config(1), Files."""
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    named = ("/etc/gitconfig", f"{config}/git/config", "~/.gitconfig")
    return [os.path.expanduser(path) for path in named]


def _meant(named: str, folder: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(named.strip())))


def listed(folder: str) -> list[str]:
    """What lies in a folder, by its path; nothing where there is none."""
    try:
        return [f"{folder}/{name}" for name in sorted(os.listdir(folder))]
    except OSError:
        return []


def read_text(path: str) -> str:
    """The beginning of a small text file; nothing where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, _LONGEST).decode(errors="replace")
        finally:
            os.close(descriptor)
    except OSError:
        return ""
