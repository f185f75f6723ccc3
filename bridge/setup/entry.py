"""`setup EDITOR`: shows the entry for an editor, writes it into the editor's file, takes it out.

Rule 1: nothing is written that was not shown before, and nobody's silence is taken as yes.
Rule 2: a file is changed only in our entry, all at once, and only while it is as it was shown;
its mode and the links to it stay. Of an entry that is there, what starts the agent is set; the
environment and whatever else the user put there stays.
Rule 3: what is odd about a file is told, and the file left alone.
"""

import difflib
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from bridge.errors import BridgeError
from bridge.setup import jsonc
from bridge.setup.editors import (
    EDITORS,
    ENVIRONMENT,
    Editor,
    Home,
    JsonFile,
    Launch,
    is_folder,
    place_of,
)
from bridge.starting import MAIN, script
from bridge.terminal import Terminal, agrees
from tools.base import FileTooLarge, NotRegular, StaleFile
from tools.frozen import frozen
from tools.local import LocalFiles

_MOST_BYTES = 4 * 1024 * 1024


class NotDone(BridgeError):
    """Why nothing was changed."""


@frozen
class Wish:
    """What the command line asks for."""

    editor: str
    launch: Launch
    write: bool = False
    remove: bool = False
    yes: bool = False
    file: Path | None = None
    """In the place of the editor's usual one."""


async def tell(wish: Wish, terminal: Terminal, environment: Mapping[str, str]) -> None:
    """Show, write or remove one entry; raises NotDone."""
    editor = EDITORS[wish.editor]
    odd = next((one for one in (wish.launch.name, *wish.launch.argv) if not _is_text(one)), None)
    if odd is not None:
        raise NotDone(f"{odd} is not UTF-8 text, and no editor reads anything else: rename it")
    if not (wish.write or wish.remove):
        terminal.say(shown(editor, wish, environment))
        return
    if editor.file is None:
        known = ", ".join(name for name, one in EDITORS.items() if one.file is not None)
        raise NotDone(
            f"{editor.title} has no file of JSON for it: put the entry into {editor.where} "
            f"yourself (--write and --remove work for {known})"
        )
    if wish.file is None and not is_folder(home := _home(environment).folder):
        raise NotDone(f"there is no home {home}: set HOME, or name the editor's file with --file")
    place = wish.file or place_of(editor.file, _home(environment))
    await _change(wish, editor.file, place, terminal)
    if wish.write and editor.after:
        terminal.say(f"{editor.after}\n")


def shown(editor: Editor, wish: Wish, environment: Mapping[str, str]) -> str:
    """The entry and where it goes, for a person."""
    where = editor.where
    if editor.file is not None and (wish.file or environment.get("HOME")):
        place = wish.file or place_of(editor.file, _home(environment))
        where = f"{place}; `--write` does it"
    after = f"{editor.after}\n" if editor.after else ""
    return f"For {editor.title}, in {where}:\n\n{editor.text(wish.launch)}\n\n{after}"


async def _change(wish: Wish, file: JsonFile, place: Path, terminal: Terminal) -> None:
    files = LocalFiles()
    real = await files.resolve(str(place))
    try:
        read = await files.read(real, _MOST_BYTES)
        before = "" if read is None else read.data.decode("utf-8")
        after = _changed(wish, file, before)
    except jsonc.Odd as odd:
        raise NotDone(f"{place} {odd}") from None
    except UnicodeDecodeError:
        raise NotDone(f"{place} is not UTF-8 text: save it as such") from None
    except (FileTooLarge, NotRegular) as error:
        raise NotDone(f"{place} is no file of settings: {error}") from None
    except OSError as error:
        raise NotDone(f"{place}: {error.strerror}") from None
    if after == before:
        terminal.say(f"{place} is as it should be; nothing to do\n")
        return
    if read is None and not (file.is_ours or is_folder(place.parent)):
        raise NotDone(
            f"there is no folder {place.parent}: start the editor once on this machine, as this "
            "user, or name its file with --file"
        )
    _agree(terminal, place, before, after, yes=wish.yes)
    try:
        if read is None:
            await files.create(real, after.encode())
        else:
            await files.replace(real, after.encode(), read.stamp)
    except (StaleFile, FileExistsError):
        raise NotDone(f"{place} has changed meanwhile; nothing was done: try again") from None
    except OSError as error:
        raise NotDone(f"{place} cannot be written ({error.strerror}); nothing was done") from None
    terminal.say(f"{place} is changed\n")


def _changed(wish: Wish, file: JsonFile, text: str) -> str:
    path = file.path(wish.launch)
    if wish.remove:
        return jsonc.take_out(text, path)
    entry = file.entry(wish.launch)
    if not isinstance(jsonc.found(text, path), dict):
        return jsonc.put(text, path, entry)
    for name, value in reversed(tuple(entry.items())):  # what is new stands first
        there = jsonc.found(text, (*path, name))
        is_theirs = name == ENVIRONMENT and isinstance(there, dict)
        if there != value and not is_theirs:
            text = jsonc.put(text, (*path, name), value)
    return text


def _agree(terminal: Terminal, place: Path, before: str, after: str, *, yes: bool) -> None:
    """Show what would change and ask; raises NotDone."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(place), str(place), lineterm=""
    )
    terminal.say("".join(f"{line}\n" for line in lines))
    if yes:
        return
    if not terminal.can_ask:
        raise NotDone("nothing was changed, since nobody can be asked here: add --yes")
    if not agrees(terminal, "Change the file like this?"):
        raise NotDone("nothing was changed")


def _is_text(name: str) -> bool:
    """Whether the bytes that the system has for it are UTF-8."""
    return not any("\udc80" <= character <= "\udcff" for character in name)


def _home(environment: Mapping[str, str]) -> Home:
    folder, config = (Path(environment.get(name, "")) for name in ("HOME", "XDG_CONFIG_HOME"))
    if not folder.is_absolute():
        raise NotDone("HOME is not set: name the editor's file with --file")
    config = config if config.is_absolute() else folder / ".config"
    return Home(folder, config, platform.system() == "Darwin")


def launch(config: str | None, name: str | None, started: str, path: str | None) -> Launch:
    """How an editor is to start us: the script that was started now, or is found in this PATH."""
    given = () if config is None else ("--config", str(Path(config).expanduser().absolute()))
    called = name or "Responses"
    if (file := script(started, path)) is not None:
        return Launch(str(file), given, called)
    return Launch(sys.executable, ("-I", str(MAIN), *given), called)
