"""The commands `login` and `logout`: a key is typed in once and kept, or forgotten.

Rule 1: a key that the server refuses is not kept.
Rule 2: where another source of the key comes first, that is said.
Rule 3: `login` also works behind the agent's own arguments: that is how editors run it.
"""

import os
import sys
from argparse import Namespace
from functools import partial
from http import HTTPStatus

import anyio

from bridge import kept
from bridge.complaints import nearest
from bridge.config import Config, Provider, load
from bridge.errors import BridgeError, ConfigError
from bridge.folders import kept_file
from bridge.responses.transport import Transport
from bridge.setup.entry import NotDone
from bridge.setup.first import typed
from bridge.terminal import Person, Terminal

_SECONDS = 20.0


def run(options: Namespace, terminal: Terminal | None = None) -> int:
    """Log in or out; the exit code."""
    command = _login if options.command == "login" else _logout
    try:
        command(options, terminal or Person())
    except BridgeError as error:
        sys.stderr.write(f"responses-acp {options.command}: {error}\n")
        return 2 if isinstance(error, ConfigError) else 1
    except (EOFError, KeyboardInterrupt):
        sys.stderr.write(f"\nresponses-acp {options.command}: stopped; no key was kept\n")
    except OSError as error:
        sys.stderr.write(f"responses-acp {options.command}: {_unwritable(error)}\n")
    else:
        return 0
    return 1


def _unwritable(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}; set XDG_CONFIG_HOME to a folder you can write to"


def _login(options: Namespace, terminal: Terminal) -> None:
    provider = _provider(load(options.config, os.environ), options.provider)
    other = _other_source(provider)
    if other is not None:
        raise NotDone(f"the key comes from {other}, as the configuration says; take that out first")
    file = kept_file(os.environ)
    if file is None:
        raise NotDone("there is no place for the key: set HOME to a folder that is there")
    terminal.say(f"The key for {provider.base_url}\n")
    key = typed(terminal)
    terminal.say(f"{anyio.run(partial(_tried, provider, key))}\n")
    kept.keep(file, provider.base_url, key)
    terminal.say(f"It is kept in {file}, readable by you alone; responses-acp logout forgets it.\n")
    if provider.api_key_env and os.environ.get(provider.api_key_env):
        terminal.say(f"{provider.api_key_env} is set here and comes first where it is.\n")


def _logout(options: Namespace, terminal: Terminal) -> None:
    config = load(options.config, os.environ)
    named = options.provider and [_provider(config, options.provider)]
    file = kept_file(os.environ)
    for provider in named or config.providers.values():
        was_kept = kept.forget(file, provider.base_url)
        state = "is forgotten" if was_kept else "is not kept here"
        terminal.say(f"The key for {provider.base_url} {state}.\n")
        source = _other_source(provider) or (
            provider.api_key_env if os.environ.get(provider.api_key_env or "") else None
        )
        if source is not None:
            terminal.say(f"A key for {provider.base_url} still comes from {source}.\n")


def _provider(config: Config, named: str | None) -> Provider:
    """The named provider, or that of the default model; NotDone."""
    name = named or config.models[config.default_model].provider
    if name not in config.providers:
        raise NotDone(f"there is no provider {name[:80]}; {nearest(name, config.providers)}")
    return config.providers[name]


def _other_source(provider: Provider) -> str | None:
    """A source that leaves no room for a kept key."""
    if provider.api_key_command is not None:
        return f"the program {provider.api_key_command[0]}"
    return provider.api_key_file


async def _tried(provider: Provider, key: str) -> str:
    """What the server says to the key; NotDone where it refuses it."""
    try:
        with anyio.fail_after(_SECONDS):
            async with Transport() as transport:
                greeting = await transport.greet(provider.endpoint(key))
    except (BridgeError, TimeoutError):
        return "The server cannot be asked now, so the key was not tried."
    if greeting.status == HTTPStatus.UNAUTHORIZED:
        raise NotDone(f"the server refuses this key (HTTP {greeting.status}); it was not kept")
    if greeting.status == HTTPStatus.FORBIDDEN:  # it may be good for answers all the same
        return "The server does not let this key list its models; responses-acp check tries more."
    return "The server takes the key."
