"""The command `setup`: which of its two parts is meant, and how each ends."""

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

from bridge.config import Provider
from bridge.core.catalogue import Found, models_in
from bridge.errors import BridgeError
from bridge.folders import default_file
from bridge.keys import Keys
from bridge.responses.transport import Transport
from bridge.setup.entry import NotDone, Wish, launch, tell
from bridge.setup.first import configure
from bridge.terminal import Person, Terminal


def run(options: Namespace, terminal: Terminal | None = None) -> int:
    """Show, write or ask; the exit code."""
    person = terminal or Person()
    try:
        if options.editor is None:
            anyio.run(partial(first_questions, _configuration(options.config), person))
        else:
            anyio.run(partial(tell, _wish(options), person, os.environ))
    except BridgeError as error:
        sys.stderr.write(f"responses-acp setup: {error}\n")
    except OSError as error:
        where = error.filename or "the working directory"  # it may have been deleted
        sys.stderr.write(f"responses-acp setup: {where}: {error.strerror}\n")
    except (EOFError, KeyboardInterrupt):
        sys.stderr.write("\nresponses-acp setup: stopped; nothing was written\n")
    else:
        return 0
    return 1


def _wish(options: Namespace) -> Wish:
    return Wish(
        options.editor,
        launch(options.config, options.name, sys.argv[0], os.environ.get("PATH")),
        write=options.write,
        remove=options.remove,
        yes=options.yes,
        file=None if options.file is None else Path(options.file).absolute(),
    )


def _configuration(named: str | None) -> Path:
    file = default_file(os.environ) if named is None else Path(named).expanduser().absolute()
    if file is None:
        raise NotDone(
            "there is no place for a configuration: set HOME to a folder that is there, "
            "or give --config FILE"
        )
    return file


async def first_questions(file: Path, person: Terminal) -> None:
    """Ask, and write the configuration; raises NotDone."""
    async with Transport() as transport:
        await configure(file, person, os.environ, partial(_models, transport))


async def _models(transport: Transport, server: Provider, key: str | None) -> Sequence[Found]:
    """What a server lists; BridgeError."""
    if key is None:
        key = await Keys(os.environ, lambda _: None).key(server)
    endpoint = server.endpoint(key)
    return models_in(await transport.fetch(endpoint, f"{endpoint.base_url}/models"))
