"""`setup` without an editor: a configuration from a few questions.

It must not know HTTP: the list of models is fetched for it.

Rule 1: nothing is asked that a list or the environment can tell, and an empty line takes what is
offered.
Rule 2: the file is written last, for nobody else to read, and only after a yes where one is there.
What could not be read again is not written.
Rule 3: a key that is typed in goes into the file of kept keys and nowhere else, and one that the
server refuses nowhere.
"""

import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias

from bridge.config import Config, is_key, load
from bridge.config import Provider as Server
from bridge.core.catalogue import Found
from bridge.errors import BridgeError, ConfigError, ModelError
from bridge.folders import kept_file
from bridge.kept import keep, replace_private
from bridge.setup.entry import NotDone
from bridge.setup.providers import PROVIDERS, Answers, Provider, azure, text, variables, written
from bridge.terminal import Terminal, agrees

Models: TypeAlias = Callable[[Server, str | None], Awaitable[Sequence[Found]]]
"""The models that a server tells of, asked with this key; BridgeError."""

_OTHER_ADDRESS = "Is the address right? Another one, or Enter to go on with this:"
_SHOWN = 40


async def configure(
    file: Path, terminal: Terminal, environment: Mapping[str, str], models: Models
) -> None:
    """Ask, and write the configuration into this file; raises NotDone."""
    _may_replace(file, terminal)
    provider = PROVIDERS[_chosen(terminal, "Which server?", [one.title for one in PROVIDERS])]
    base_url, deployment = _address(terminal, provider)
    source, key = _key(terminal, provider, environment)
    found: Sequence[Found] = ()
    while not deployment:
        server = _server(provider, base_url, source)
        found, key = await _listed(terminal, server, key, models)
        if found or provider.is_fixed or not (other := terminal.ask(_OTHER_ADDRESS)):
            break
        base_url, deployment = _address(terminal, provider, other)
    model = Found(deployment) if deployment else _model(terminal, found)
    content = written(Answers(provider, base_url, source, model))
    terminal.say(f"\n{content}\n")
    if not agrees(terminal, f"Write this to {file}?", by_default=True):
        raise NotDone("nothing was written")
    _write(file, content)
    if key is not None:
        place = kept_file(environment)
        if place is None:
            raise NotDone("the key cannot be kept: set HOME to a folder that is there")
        keep(place, base_url, key)
        terminal.say(f"The key is in {place}, readable by you alone.\n")
    terminal.say(f"{file} is written. Next: responses-acp check, then responses-acp setup EDITOR\n")


def _address(terminal: Terminal, provider: Provider, said: str = "") -> tuple[str, str | None]:
    """The base URL, and the name of the model if it was part of what was typed."""
    if provider.is_fixed:
        return provider.base_url, None
    hint = "the address that the portal shows" if provider.table == "azure" else "base_url"
    offered = f" [{provider.base_url}]" if provider.base_url else ""
    while True:
        said = said or terminal.ask(f"Where is it? {hint}{offered}:") or provider.base_url
        url, deployment = azure(said)
        try:
            _server(provider, url, None)
        except ConfigError as error:
            terminal.say(f"{error}\n")
            said = ""
        else:
            return url, deployment


def _server(provider: Provider, base_url: str, source: tuple[str, str] | None) -> Server:
    """The server as the configuration would know it; ConfigError."""
    settings = (("base_url", text(base_url)), *provider.settings, *([source] if source else []))
    return _read(
        "[providers.p]\n"
        + "".join(f"{name} = {value}\n" for name, value in settings)
        + '[models.m]\nprovider = "p"\n'
    ).providers["p"]


def _read(content: str) -> Config:
    """What a configuration says; ConfigError."""
    with tempfile.TemporaryDirectory(prefix="responses-acp-setup-") as folder:
        file = Path(folder) / "config.toml"
        file.write_text(content, encoding="utf-8")
        try:
            return load(str(file), {})
        except ConfigError as error:
            raise ConfigError(str(error).partition(": ")[2]) from None


def _key(
    terminal: Terminal, provider: Provider, environment: Mapping[str, str]
) -> tuple[tuple[str, str] | None, str | None]:
    """Where the key comes from, as a setting; and the key itself, if it is typed in."""
    known = variables(environment, provider) if provider.variable else "an environment variable"
    ways = [
        f"from {known}",
        "from another environment variable",
        "from a file that only you can read",
        "typed in now, and kept in a file of ours",
        "it needs no key",
    ]
    way = _chosen(terminal, "Where does its key come from?", ways, 0 if provider.variable else 4)
    match way:
        case 0 if provider.variable:
            return ("api_key_env", text(provider.variable)), None
        case 0 | 1:
            return ("api_key_env", text(_said(terminal, "Its name:"))), None
        case 2:
            path = str(Path(_said(terminal, "Its path:")).expanduser().absolute())
            return ("api_key_file", text(path)), None
        case 3:
            # The variable comes first wherever it is set; where it is not, the kept key serves.
            usual = ("api_key_env", text(provider.variable)) if provider.variable else None
            return usual, typed(terminal)
        case _:
            return None, None


def typed(terminal: Terminal) -> str:
    """A key that the person types in, unseen; NotDone."""
    key = terminal.secret("The key (it is not shown):")
    if not is_key(key):
        why = "is empty" if not key else "has blanks or special characters"
        raise NotDone(f"what was typed is no key: it {why}")
    return key


async def _listed(
    terminal: Terminal, server: Server, key: str | None, models: Models
) -> tuple[Sequence[Found], str | None]:
    """The models that the server tells of, and the key: a typed one is typed until it is taken."""
    while True:
        try:
            return await models(server, key), key
        except BridgeError as error:
            # Forbidden may only mean that the key may not list models.
            status = error.fault.status if isinstance(error, ModelError) else None
            if key is None or status != HTTPStatus.UNAUTHORIZED:
                terminal.say(f"The server tells no models now: {error}\n")
                return (), key
        terminal.say("The server refuses this key. Ctrl-C ends this.\n")
        key = typed(terminal)


def _model(terminal: Terminal, found: Sequence[Found]) -> Found:
    """The one to use, from the server's list where it tells one."""
    if not found:
        return Found(_said(terminal, "The model's name:"))
    shown = found[:_SHOWN]
    if len(found) > _SHOWN:
        terminal.say(f"The first {_SHOWN} of {len(found)} models; any name can be typed.\n")
    names = [one.id for one in shown]
    for number, name in enumerate(names, 1):
        terminal.say(f"{number:4}  {name}\n")
    said = terminal.ask("Which model? number or name [1]:") or "1"
    if said.isdecimal() and 1 <= int(said) <= len(names):
        return shown[int(said) - 1]
    return next((one for one in found if one.id == said), Found(said))


def _chosen(terminal: Terminal, question: str, ways: Sequence[str], offered: int = 0) -> int:
    """The number of one of these, from 0."""
    terminal.say(f"\n{question}\n")
    for number, way in enumerate(ways, 1):
        terminal.say(f"{number:4}  {way}\n")
    while True:
        said = terminal.ask(f"Number [{offered + 1}]:") or str(offered + 1)
        if said.isdecimal() and 1 <= int(said) <= len(ways):
            return int(said) - 1
        terminal.say(f"a number from 1 to {len(ways)}, please\n")


def _said(terminal: Terminal, question: str) -> str:
    while not (said := terminal.ask(question)):
        pass
    return said


def _may_replace(file: Path, terminal: Terminal) -> None:
    """NotDone where a file is there that is to stay."""
    try:
        is_there = file.exists()
    except OSError as error:
        raise _unwritable(file, error) from None
    if is_there and not agrees(terminal, f"{file} exists. Replace it?"):
        raise NotDone(f"{file} stays as it is")


def _write(file: Path, content: str) -> None:
    try:
        _read(content)
        replace_private(Path(os.path.realpath(file)), content)
    except ConfigError as error:
        raise NotDone(f"these answers do not fit together: {error}") from None
    except OSError as error:
        raise _unwritable(file, error) from None


def _unwritable(file: Path, error: OSError) -> NotDone:
    remedy = "set XDG_CONFIG_HOME to a folder you can write to, or give --config FILE"
    return NotDone(f"{file} cannot be written: {error.strerror}; {remedy}")
