"""Tools of MCP servers, as the model is offered them: names, schemas, and what a call would touch.

It must not know how a server is reached.

Rule 1: a name is a function of the servers and tools there are, not of who answered first, so
that a conversation finds its tools again.
Rule 2: two tools never share a name, whatever their servers call them.
Rule 3: a lasting permission is for one tool as it was described. A server that changes what the
tool says of itself is asked about again.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tools.base import Access
from tools.frozen import frozen

_LONGEST_NAME = 64
_LONGEST_SLUG = 24
_MOST_CHANGE = 8000
"""Characters of a change that is shown."""
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
"""OpenAI, function calling: names are of letters, digits, underscores and dashes, 64 at most."""


@frozen
class RemoteTool:
    """One tool as its server describes it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """The JSON schema of its arguments, as received."""
    read_only: bool = False
    """The server says that it changes nothing, which is a hint and no promise."""


def slugs(servers: Iterable[str]) -> dict[str, str]:
    """Each server's part of its tools' names; unique, and without two underscores in a row."""
    return _distinct({server: _slug(server) for server in servers}, _LONGEST_SLUG)


def offered_names(slug: str, tools: Iterable[str]) -> dict[str, str]:
    """Each tool's name towards the model: mcp__SERVER__TOOL."""
    plain = {tool: f"mcp__{slug}__{_FOREIGN.sub('_', tool)}" for tool in tools}
    return _distinct(plain, _LONGEST_NAME)


def function(name: str, tool: RemoteTool) -> dict[str, object]:
    """The tool as the API takes it, its schema passed on."""
    return {
        "type": "function",
        "name": name,
        "description": tool.description,
        # Servers of models refuse an object that does not say which properties it has.
        "parameters": {"type": "object", "properties": {}, **tool.schema},
        "strict": False,
    }


def access(server: str, tool: RemoteTool, *, trusted: bool) -> Access:
    """What a call would touch: nothing that we could know of, unless the user trusts the hint."""
    described = json.dumps([server, tool.name, tool.description, tool.schema], sort_keys=True)
    digest = hashlib.blake2b(described.encode("utf-8", "surrogatepass"), digest_size=16)
    subject = f"{server}: {tool.name} {digest.hexdigest()}"
    return Access("call", subject, harmless=trusted and tool.read_only)


def change(before: RemoteTool, after: RemoteTool) -> str:
    """What a server changed about a tool, as a diff; nothing where that is nothing to see."""
    lines = difflib.unified_diff(_described(before), _described(after), n=2, lineterm="")
    return "\n".join(list(lines)[2:])[:_MOST_CHANGE]


def _described(tool: RemoteTool) -> list[str]:
    schema = json.dumps(tool.schema, indent=2, ensure_ascii=False)
    return [*tool.description.splitlines(), *schema.splitlines()]


def _slug(server: str) -> str:
    return re.sub(r"_{2,}", "_", _FOREIGN.sub("_", server)).strip("_") or "server"


def _distinct(wanted: Mapping[str, str], longest: int) -> dict[str, str]:
    """The wanted names, told apart by a digest where several want one or one is too long.

    Who wants exactly what it is called by anyway keeps it.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for own in sorted(wanted, key=lambda own: (not wanted[own].endswith(own), own)):
        name = wanted[own]
        if name in taken or len(name) > longest:
            digest = hashlib.blake2b(own.encode("utf-8", "surrogatepass"), digest_size=4)
            name = f"{name[: longest - 9].rstrip('_')}_{digest.hexdigest()}"
        taken.add(name)
        names[own] = name
    return {own: names[own] for own in wanted}
