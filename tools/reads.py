"""Which commands of a line only read, and only what `read` would need no permission for either.

Rule 1: what cannot be told is a no: options that name files, whole trees, unknown folders.
"""

import os
import re
from collections.abc import Sequence
from glob import glob

from anyio.to_thread import run_sync

from tools import paths
from tools.argv import Word, Words
from tools.base import Context
from tools.programs import only_reads, program
from tools.target import is_hidden

_WANDERERS = frozenset({"rg"})
"""They read other files than those that are named."""
_READS_FOLDERS = frozenset({"diff"})
"""Of a folder that is named they read the files."""
_LEADS_ELSEWHERE = {
    "du": re.compile(r"--f"),
    "file": re.compile(r"-[A-Za-z0-9]*[fm]|--f"),
    "grep": re.compile(r"-[A-Za-z0-9]*[rRdf]|--(?:rec|der|di)"),
    "sort": re.compile(r"--fil"),
    "wc": re.compile(r"--f"),
}
"""By program: options, as far as GNU needs them, for whole trees or for names out of a file."""


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
    name, words = program(command[0].text), command[1:]
    elsewhere = _LEADS_ELSEWHERE.get(name)
    options = [word.text for word in words if word.text.startswith("-")]
    leads = any("/" in one or (elsewhere and elsewhere.match(one)) for one in options)
    if name in _WANDERERS or leads or not folders:
        return False
    for word in filter(None, map(_naming, words)):
        for folder in folders:
            if not await _is_open(word, folder, context, whole=name in _READS_FOLDERS):
                return False
    return True


def _naming(word: Word) -> Word | None:
    """What may be the name of a file in a word; None: an option without a long name has none."""
    if not word.text.startswith("-"):
        return word
    _, is_given, value = word.text.partition("=")
    return Word(value) if word.text.startswith("--") and is_given else None


async def _is_open(word: Word, folder: str, context: Context, *, whole: bool) -> bool:
    """Whether a word, if it is the name of files, names only such as anyone may read.

    whole: a folder stands for the files in it.
    """
    if word.text.startswith("~"):
        return False
    named = paths.absolute(word.text, folder)
    found = await run_sync(glob, named) if word.pattern else []
    for path in (named, *found):
        resolved = await context.files.resolve(path)
        hidden = paths.is_secret(path) or is_hidden(resolved, context)
        if hidden or context.is_barred(resolved) or not paths.is_inside(resolved, *context.roots):
            return False
        if whole and await run_sync(os.path.isdir, resolved):
            return False
    return True
