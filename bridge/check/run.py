"""The command `check`: the table of checks, and one run through it.

Rule 1: a check is one function and one row of CHECKS, in the order in which they are told.
Rule 2: what a check needs has its own line: where that failed, the check is not made.
Rule 3: each check has its time, and all together have less than a minute: what hangs is told.
"""

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import anyio

from bridge import log
from bridge.check import asking, here, servers
from bridge.check.finding import Finding, entry, exit_code, fault, line, warning
from bridge.check.look import Look
from bridge.errors import BridgeError
from bridge.folders import state_folder
from bridge.keys import Keys
from bridge.responses.transport import Transport
from bridge.terminal import say_no_more, write
from tools.frozen import frozen

_ALL_SECONDS = 50.0

Show = Callable[[Finding], None]


@frozen
class Check:
    """One row: what it is called, what it asks, and which rows must not have failed."""

    name: str
    ask: Callable[[Look], Awaitable[list[Finding]]]
    needs: tuple[str, ...] = ()
    seconds: float = 10.0


CHECKS = (
    Check("host", here.host),
    Check("program", here.program),
    Check("state", here.state),
    Check("config", asking.config),
    Check("settings", asking.settings, ("config",)),
    Check("sandbox", here.sandbox),
    Check("search", here.search),
    Check("key", asking.key, ("config",), 20.0),
    Check("proxy", asking.proxy, ("config",)),
    Check("server", asking.server, ("config",), 15.0),
    Check("certificate", asking.certificate, ("server",)),
    Check("model", asking.model, ("server", "key")),
    Check("streaming", asking.streaming, ("model",), 25.0),
    Check("tools", asking.tool_calling, ("streaming",), 20.0),
    Check("reasoning", asking.summaries, ("streaming",), 20.0),
    Check("mcp", servers.mcp, ("config",), 15.0),
)


def run(options: Namespace) -> int:
    """Check everything, and tell it; the exit code."""
    return anyio.run(partial(_command, options))


async def _command(options: Namespace) -> int:
    as_json = bool(options.json)
    show: Show = _nothing if as_json else _shown
    with suppress(BrokenPipeError):  # whoever reads our output has seen enough
        async with Transport() as transport:
            keys = Keys(os.environ, lambda _: None)
            look = Look(os.environ, transport, keys, time.monotonic, time.time)
            look.named, look.chosen, look.state = options.config, options.model, state_folder()
            log.start(None)
            findings, hung = await checked(look, show)
        code = exit_code(findings, configured=look.config is not None)
        if as_json:
            told = {"ok": code == 0, "findings": [entry(one) for one in findings]}
            write(json.dumps(told, indent=2) + "\n")
        if hung:
            # A name that is being looked up cannot be given up, and its thread would be waited for.
            sys.stdout.flush()
            os._exit(code)
        return code
    say_no_more()
    return 1


async def checked(
    look: Look, show: Show, table: Sequence[Check] = CHECKS, seconds: float = _ALL_SECONDS
) -> tuple[list[Finding], bool]:
    """All findings, each shown as soon as it is there; and whether something hung."""
    found: list[Finding] = []
    failed: set[str] = set()
    end, hung = anyio.current_time() + seconds, False
    for check in table:
        if failed & set(check.needs):
            failed.add(check.name)
            continue
        limit = min(check.seconds, end - anyio.current_time())
        told = await _told(look, check, limit)
        hung = hung or told is None
        for one in [_late(limit)] if told is None else told:
            named = replace(one, name=check.name)
            found.append(named)
            show(named)
            if one.level == "fault":
                failed.add(check.name)
    skipped = [check.name for check in table if check.name in failed - {one.name for one in found}]
    if skipped:
        found.append(Finding("warning", f"not tried: {', '.join(skipped)}", name="rest"))
        show(found[-1])
    return found, hung


async def _told(look: Look, check: Check, limit: float) -> list[Finding] | None:
    """What a check found; None where its time ran out."""
    if limit <= 0:
        return None
    with anyio.move_on_after(limit):
        try:
            return await check.ask(look)
        except BridgeError as error:
            return [fault(str(error))]
        except OSError as error:
            return [warning(f"cannot be found out ({error.strerror})")]
    return None


def _late(limit: float) -> Finding:
    if limit <= 0:
        return fault("there was no time left for it", "mend what took so long, and check again")
    return fault(
        f"no answer within {limit:.0f} s",
        "a local server may still load its model: check again; else look at the server",
    )


def _shown(found: Finding) -> None:
    write(line(found))


def _nothing(found: Finding) -> None:
    del found
