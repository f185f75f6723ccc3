"""Which commands of a line only read, and only what `read` would need no permission for either.

Rule 1: what cannot be told is a no: options that name files, whole trees, unknown folders.
"""

import re
from collections.abc import Sequence
from glob import glob

from anyio.to_thread import run_sync

from tools import paths
from tools.argv import Word, Words
from tools.base import Context
from tools.programs import only_reads
from tools.target import is_hidden

_WANDERERS = frozenset({"rg"})
"""They read other files than those that are named."""
_TREE_READERS = frozenset({"grep", "egrep", "fgrep"})
_RECURSIVE = re.compile(r"-[A-Za-z]*[rRd]|--(?:recursive|dereference-recursive|directories)")


async def reads(commands: Sequence[Words], folder: str, context: Context) -> tuple[bool, ...]:
    """Of each command, which begin in this folder: it reads, and nothing but what anyone may."""
    folders = [folder]
    found: list[bool] = []
    for command in commands:
        if command[0].text == "cd":
            entered = await _entered(command, folders, context)
            found.append(entered != [])
            # Where a cd fails, what follows may run in the folder before.
            folders = [*folders, *entered] if entered and folders else []
        else:
            found.append(only_reads(command) and await _is_public(command, folders, context))
    return tuple(found)


async def _entered(command: Words, folders: Sequence[str], context: Context) -> list[str]:
    """The folders that a cd may lead to; none where it leads out of the workspace, or who knows."""
    if len(command) != 2 or command[1].pattern or command[1].text[:1] in ("", "-", "~"):
        return []
    named = [paths.absolute(command[1].text, folder) for folder in folders]
    entered = [await context.files.resolve(path) for path in named]
    return entered if all(paths.is_inside(one, *context.roots) for one in entered) else []


async def _is_public(command: Words, folders: Sequence[str], context: Context) -> bool:
    """Whether a command that reads does so where anyone may."""
    name, *arguments = command
    if name.text in _WANDERERS or not folders:
        return False
    for word in arguments:
        if word.text.startswith("-"):
            if "/" in word.text or (name.text in _TREE_READERS and _RECURSIVE.match(word.text)):
                return False
        elif not all([await _is_open(word, folder, context) for folder in folders]):
            return False
    return True


async def _is_open(word: Word, folder: str, context: Context) -> bool:
    """Whether a word, if it is the name of files, names only such as anyone may read."""
    if word.text.startswith("~"):
        return False
    named = paths.absolute(word.text, folder)
    found = await run_sync(glob, named) if word.pattern else []
    for path in (named, *found):
        resolved = await context.files.resolve(path)
        hidden = paths.is_secret(path) or is_hidden(resolved, context)
        if hidden or context.is_barred(resolved) or not paths.is_inside(resolved, *context.roots):
            return False
    return True
