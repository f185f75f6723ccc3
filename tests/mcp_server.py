"""A real MCP server for tests: on its standard streams, or with the argument `http` over
streamable HTTP on a free port, whose number is its only line of output.

What it finds in its environment tells it how to misbehave: NOISE makes it write megabytes to its
standard error, LATE makes it wait for that file before it answers anything, with LISTENS after it
has begun to take connections.
"""

import base64
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp import types
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

PICTURE = base64.b64encode(b"\x89PNG not really").decode()
READ_ONLY = types.ToolAnnotations(read_only_hint=True)

server = MCPServer("tests", log_level="ERROR")
stopped = anyio.Event()


class Colour(BaseModel):
    colour: str
    dark: bool = False


@server.tool(annotations=READ_ONLY)
def look(what: str) -> str:
    """Looks, and changes nothing."""
    return f"saw {what}"


@server.tool()
def echo(text: str) -> str:
    """Says what it is told."""
    return text


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("that did not work")


@server.tool()
def variable(name: str) -> str:
    """Tells a variable of its environment."""
    return os.environ.get(name, "unset")


@server.tool()
def header(name: str, ctx: Context) -> str:
    """Tells a header of the request that carries the call."""
    return (ctx.headers or {}).get(name, "unset")


@server.tool()
def mixed() -> list[Any]:
    """Answers with content of every kind."""
    resource = types.TextResourceContents(uri="file:///notes.txt", text="Notes.")
    return [
        types.TextContent(type="text", text="Look:"),
        types.ImageContent(type="image", data=PICTURE, mime_type="image/png"),
        types.ResourceLink(type="resource_link", uri="file:///a.txt", name="a.txt"),
        types.EmbeddedResource(type="resource", resource=resource),
    ]


@server.tool()
async def work(ctx: Context) -> None:
    """Tells how far it is, and works on until it is told to stop."""
    await ctx.report_progress(1, 3, "a third")
    try:
        await anyio.sleep_forever()
    finally:
        stopped.set()


@server.tool()
async def wait_for_stop() -> str:
    """Waits until work was told to stop."""
    await stopped.wait()
    return "stopped"


@server.tool()
async def ask(ctx: Context) -> str:
    """Asks the person for a colour."""
    answer = await ctx.elicit("Which colour?", Colour)
    return f"{answer.action}: {getattr(answer, 'data', None)}"


@server.tool()
async def grow(ctx: Context) -> str:
    """Has one more tool from now on."""
    server.add_tool(echo, name="grown", description="Came later.")
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.tool()
def crash() -> str:
    """Ends the server in the middle of the call."""
    sys.stderr.write("the disk is on fire\n")
    sys.stderr.flush()
    os._exit(7)


def main() -> None:
    if "PIDS" in os.environ:
        (Path(os.environ["PIDS"]) / str(os.getpid())).touch()
    if "NOISE" in os.environ:
        for _ in range(4096):
            sys.stderr.write("noise " * 170 + "\n")
    if "STUBBORN" in os.environ:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "LISTENS" not in os.environ:
        wait_until_wanted()
    if len(sys.argv) > 1:
        over_http()
    else:
        server.run()


def wait_until_wanted() -> None:
    while "LATE" in os.environ and not Path(os.environ["LATE"]).exists():
        time.sleep(0.01)


def over_http() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app(streamable_http_path="/mcp")
    settings = uvicorn.Config(app, log_level="error", lifespan="on")
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    wait_until_wanted()
    uvicorn.Server(settings).run(sockets=[listener])


if __name__ == "__main__":
    main()
