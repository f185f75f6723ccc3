"""The commands that the user and the project bring along, found again before every prompt.

Rule 1: a command of ours is never replaced, and one of the user's not by one of the project's: what
comes with somebody's repository must not change what the user's words mean.
Rule 2: a link that leads out of the project is not followed: its text would go to the model. The
user's own folder may hold links.
Rule 3: a file that cannot be a command is told of once in a session, and costs nothing else.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from bridge.core import own_command
from bridge.core.own_command import OwnCommand
from bridge.knowledge import down, project
from tools import paths, regular
from tools.base import NotRegular
from tools.frozen import frozen

PROJECT_FOLDER = ".agents/commands"
USER_FOLDER = "commands"

_MOST_BYTES = 64 * 1024
_MOST_FILES = 200
"""Of one folder."""


@frozen
class Found:
    """What there is now."""

    commands: Mapping[str, OwnCommand]
    faults: Mapping[str, str]
    """File -> why it is no command."""


def find(cwd: str, user_folder: str | None, reserved: Collection[str]) -> Found:
    """All commands for a session that works there; the names of ours are reserved."""
    commands: dict[str, OwnCommand] = {}
    faults: dict[str, str] = {}
    for folder, within in _folders(Path(os.path.realpath(cwd)), user_folder):
        for file in _files(folder):
            name = file.stem
            read = _read(file, within, reserved)
            if isinstance(read, str):
                faults[str(file)] = read
            else:
                commands.setdefault(name, read)
    return Found(commands, faults)


def _folders(cwd: Path, user_folder: str | None) -> Iterator[tuple[Path, Path | None]]:
    """Where commands may be, and what their files must lie in; the first of a name counts."""
    if user_folder is not None:
        yield Path(user_folder, USER_FOLDER), None
    root = project(cwd)
    for folder in reversed(down(root, cwd)):
        yield folder / PROJECT_FOLDER, root


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".md")[:_MOST_FILES]
    except OSError:
        return []


def _read(file: Path, within: Path | None, reserved: Collection[str]) -> OwnCommand | str:
    """The command in a file, or why there is none."""
    if not own_command.NAME.fullmatch(file.stem):
        return "its name must be of letters, digits, - and _, with a letter first"
    if file.stem in reserved:
        return f"/{file.stem} is built in"
    resolved = os.path.realpath(file)
    if within is not None and not paths.is_inside(resolved, str(within)):
        return "it leads out of the project"
    if paths.is_secret(resolved):
        return "its name is one that usually holds credentials"
    try:
        with regular.opened(resolved) as (descriptor, _):
            data = os.read(descriptor, _MOST_BYTES + 1)
    except NotRegular as error:
        return f"it is {error}"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    if len(data) > _MOST_BYTES:
        return f"it has more than {_MOST_BYTES // 1024} KB"
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    return "it holds bytes that are no text" if "\0" in text else own_command.read(text)
