"""The check of MCP servers: each is started, asked for its tools, and ended again."""

import os
import tempfile

import anyio

from bridge.check.finding import Finding, fault, ok, warning
from bridge.check.look import Look
from bridge.config import Config
from bridge.remote_tool import ServerFault
from bridge.servers import Connect
from bridge.wanted import Unreachable, Wanted, configured
from bridge.workshop import load_client
from tools.frozen import frozen
from tools.seek import counted

_SECONDS = 12.0


@frozen
class _Here:
    """Where servers run that no session has."""

    config: Config
    cwd: str
    scratch: str


class _Silent:
    """What a server does by itself is no matter here."""

    can_ask = False

    def changed(self) -> None: ...

    def gone(self, last_words: str) -> None:
        del last_words


async def mcp(look: Look) -> list[Finding]:
    """Whether the MCP servers of the configuration start; all at once."""
    found: dict[str, Finding] = {}
    with tempfile.TemporaryDirectory(prefix="responses-acp-check-") as scratch:
        cwd = look.environment.get("HOME") or os.sep
        servers = configured(_Here(look.settings, cwd, scratch), look.environment)
        if not servers:
            return []
        connect = await load_client()

        async def start(name: str, server: Wanted) -> None:
            found[name] = await _started(server, connect)

        async with anyio.create_task_group() as tasks:
            for name, server in servers.items():
                tasks.start_soon(start, name, server)
    return [found[name] for name in servers]


async def _started(server: Wanted, connect: Connect) -> Finding:
    reach = server.reach
    if isinstance(reach, Unreachable):
        return fault(f"{server.name}: {reach.why}")
    remedy = f"run it in a terminal, or take [mcp.{server.name}] out"
    try:
        with anyio.move_on_after(min(_SECONDS, server.start_timeout)):
            async with connect(reach, _Silent()) as line:
                tools = await line.tools()
                return ok(f"{server.name}: ready, {counted(len(tools), 'tool')}")
    except ServerFault as error:
        return fault(f"{server.name}: {server.scrubbed(str(error))}", remedy)
    return warning(f"{server.name}: not ready within {_SECONDS:.0f} s", remedy)
