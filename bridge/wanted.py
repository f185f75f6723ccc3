"""Which MCP servers a session wants, and how each is reached: the editor's and the configured ones.

It starts nothing.

Rule 1: a server of the editor's wins over a configured one of the same name, as a whole: what the
user trusts in a file is not trusted in what a client sends.
Rule 2: a server's values stay in its environment and its headers; they are no part of any text.
Rule 3: what cannot be reached is kept with the reason, so that the user can be told.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from bridge.acp.schema import HttpServer, McpServer, OtherServer, SseServer, StdioServer
from bridge.config import Config, Server
from bridge.errors import ConfigError, LoginRequired
from bridge.session import Session
from tools.environment import child_environment, looks_secret
from tools.frozen import frozen

_SHORTEST_SECRET = 8
"""Anything shorter occurs in texts by chance."""


@frozen
class Program:
    """A server that we start, and talk to over its standard streams."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    cwd: str


@frozen
class Address:
    """A server that runs already, reached over streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(repr=False)


@frozen
class Unreachable:
    """A server that there is no way to."""

    why: str


Reach: TypeAlias = Program | Address | Unreachable


@frozen
class Wanted:
    """One server, and what was said about it."""

    name: str
    reach: Reach
    origin: Literal["editor", "configuration"]
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values that must not leave it."""
    tools: tuple[str, ...] = ("*",)
    """Patterns of the tools to be offered."""
    trust_read_only: bool = False
    """What its server calls read-only is believed to be."""
    wait: float = 2
    """Seconds that a request waits for it."""
    start_timeout: float = 60
    call_timeout: float = 600
    """Longest silence within a call."""
    rest_after: float = 1800
    """How long it stays without being called."""

    def scrubbed(self, text: str) -> str:
        """The text without any of the values."""
        for secret in sorted(self.secrets, key=len, reverse=True):  # one may begin another
            text = text.replace(secret, "[redacted]")
        return text


class Place(Protocol):
    """Where servers run: a session, for one."""

    @property
    def config(self) -> Config: ...
    @property
    def cwd(self) -> str: ...
    @property
    def scratch(self) -> str: ...


def wanted(session: Session, environment: Mapping[str, str]) -> tuple[Wanted, ...]:
    """All servers of a session, configured ones first."""
    sent = {server.name: _sent(server, session, environment) for server in session.servers}
    return tuple({**configured(session, environment), **sent}.values())


def configured(place: Place, environment: Mapping[str, str]) -> dict[str, Wanted]:
    """The servers of the configuration, by name."""
    return {
        name: _configured(name, server, place, environment)
        for name, server in place.config.mcp.items()
    }


def _sent(server: McpServer, session: Session, environment: Mapping[str, str]) -> Wanted:
    reach: Reach
    given: dict[str, str] = {}
    match server:
        case StdioServer():
            given = {one.name: one.value for one in server.env}
            try:
                reach = _program((server.command, *server.args), given, session, environment)
            except ConfigError as error:
                reach = Unreachable(str(error))
        case HttpServer():
            given = {one.name: one.value for one in server.headers}
            reach = Address(server.url, given)
        case SseServer():
            reach = Unreachable("servers over SSE are not supported; give its streamable HTTP URL")
        case OtherServer():
            reach = Unreachable(f'servers of type "{server.type[:40]}" are not supported')
    wait = session.config.mcp_wait
    return Wanted(server.name, reach, "editor", secrets_of(given), wait=wait)


def _configured(name: str, server: Server, place: Place, environment: Mapping[str, str]) -> Wanted:
    named = secrets_of({**server.env, **server.headers})
    kept = {one: environment[one] for one in server.env_keep if one in environment}
    key = None
    reach: Reach
    try:
        key = server.credentials(environment)
        if server.url is None:
            argv = (str(server.command), *server.args)
            reach = _program(argv, {**kept, **server.env}, place, environment, server.cwd)
        else:
            authorization = {} if key is None else {"authorization": f"Bearer {key}"}
            reach = Address(server.url, {**server.headers, **authorization})
    except (ConfigError, LoginRequired) as error:
        reach = Unreachable(str(error))
    return Wanted(
        name,
        reach,
        "configuration",
        (*named, *_long((*kept.values(), key or ""))),
        tools=server.tools,
        trust_read_only=server.trust_read_only,
        wait=place.config.mcp_wait if server.wait is None else server.wait,
        start_timeout=server.start_timeout,
        call_timeout=server.call_timeout,
        rest_after=server.rest_after,
    )


def _program(
    argv: tuple[str, ...],
    given: Mapping[str, str],
    place: Place,
    environment: Mapping[str, str],
    cwd: str | None = None,
) -> Program:
    """A program with the environment of commands, and what is given to it alone; ConfigError."""
    keys = place.config.secrets(environment), place.config.key_variables()
    own = child_environment(environment, *keys, place.scratch)
    return Program(argv, {**own, **given}, cwd or place.cwd)


def secrets_of(values: Mapping[str, str]) -> tuple[str, ...]:
    """The values whose names say that they are secret; of `Bearer KEY` the key as well."""
    secret = [value for name, value in values.items() if looks_secret(name)]
    return tuple(_long(one for value in secret for one in (value, value.split(" ")[-1])))


def _long(values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if len(value) >= _SHORTEST_SECRET]
