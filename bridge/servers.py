"""The MCP servers of one session: started together, waited for, heeded, ended.

It must not know how a server is reached: `connect` of bridge/mcp.py does.

Rule 1: no server holds up a session, and none ends a turn. What fails costs one notice and its
tools.
Rule 2: what the model is offered changes in join() only, before a request, so that the tools of
one request are those that its calls are made with.
Rule 3: a server's tools are known for as long as the session lives, so that a call to one that is
gone is answered by a sentence.
Rule 4: every server ends with its session; cancelling a turn ends none.
Rule 5: one that nobody has called for long rests: it is ended, keeps its tools, and is started
again by the next call. So does a URL that worked and no longer does: who runs it starts it anew.
Rule 6: one that tells of other tools whenever it is asked for them is asked less and less often.
"""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from fnmatch import fnmatchcase
from typing import Literal, Protocol, TypeAlias

import anyio

from bridge.core import window
from bridge.core.remote import RemoteTool, function, offered_names, slugs
from bridge.core.remote_content import Output
from bridge.remote_tool import Asked, BoundTool, Forgotten, ServerFault
from bridge.wanted import Address, Program, Unreachable, Wanted

_FAREWELL = 2.0
"""Seconds that a server gets to take leave."""
_SOON, _FREE = 1.0, 10
"""Tools that change within so many seconds after they were listed are listed so often at once."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 60.0
"""Seconds to wait from then on, each time twice as many."""


class Line(Protocol):
    """A connected server."""

    async def tools(self) -> tuple[RemoteTool, ...]:
        """All tools there are now; ServerFault."""
        ...

    async def call(self, name: str, arguments: Mapping[str, object], asked: Asked) -> Output:
        """Make one call and wait for its answer; ServerFault."""
        ...


class Events(Protocol):
    """What a server does by itself."""

    @property
    def can_ask(self) -> bool:
        """The person can be shown a form."""
        ...

    def changed(self) -> None:
        """It has other tools now."""
        ...

    def gone(self, last_words: str) -> None:
        """It has ended."""
        ...


Connect: TypeAlias = Callable[[Program | Address, Events], AbstractAsyncContextManager[Line]]
Load: TypeAlias = Callable[[], Awaitable[Connect]]
"""Gives the way to connect, which may have to be loaded first."""


class Server:
    """One server; owner of its state."""

    def __init__(self, wanted: Wanted, slug: str, *, can_ask: bool) -> None:
        self.wanted = wanted
        self.can_ask = can_ask
        self.state: Literal["starting", "ready", "resting", "failed"] = "starting"
        self.reason = ""
        self.tools: Mapping[str, BoundTool] = {}
        """All it ever offered, by their names towards the model."""
        self.offers: Sequence[dict[str, object]] = ()
        self._slug = slug
        self._line: Line | None = None
        self._news = anyio.Event()
        self._settled = anyio.Event()
        self._patience = wanted.wait
        self._stale = False
        self._over = False
        self._parting = False
        """Its end is what we want."""
        self._calls = 0
        """Those that wait for an answer."""
        self._used = anyio.current_time()
        """When the last one ended."""
        self._listed = -math.inf
        """When its tools were listed last."""
        self._in_a_row = 0
        """How often they were listed soon after the time before."""
        self._paused = 0.0
        """Seconds that were waited before that."""
        self._scope = anyio.CancelScope(shield=True)

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self.wanted.name

    def changed(self) -> None:
        """Its tools are to be listed again."""
        self._stale, self._patience = True, self.wanted.wait
        self._unsettle()
        self._news.set()

    def gone(self, last_words: str) -> None:
        """It ended, and it was not us."""
        if self._parting:
            return
        words = f": {last_words}" if last_words else ""
        self._fail(f"it ended{words}")
        self._news.set()

    def stop(self) -> None:
        """End it, soon."""
        self._over = True
        self._news.set()
        if self.state == "starting":
            self._scope.cancel()
        else:
            self._part()

    async def settled(self, since: float) -> None:
        """Wait until its tools are known, for as long as a request waits for it."""
        with anyio.CancelScope(deadline=since + self._patience):
            await self._settled.wait()
        self._patience = 0

    async def live(self, connect: Connect) -> None:
        """Be connected, or resting, until it ends, fails or is stopped."""
        try:
            while self.state != "failed" and not self._over:
                if self.state == "resting":
                    self._news = anyio.Event()
                    await self._news.wait()
                else:
                    await self._live_once(connect)
        finally:
            self._settled.set()

    async def call(self, tool: str, arguments: Mapping[str, object], asked: Asked) -> Output:
        """Make one call; ServerFault where it cannot be made."""
        self._calls += 1
        try:
            line = await self._awake()
            try:
                return await line.call(tool, arguments, asked)
            except Forgotten:  # MCP, Streamable HTTP, Session Management: begin a new session
                self._rest(line)
                return await (await self._awake()).call(tool, arguments, asked)
        except ServerFault:
            if self.state == "failed":
                raise ServerFault(self.reason) from None
            raise
        finally:
            self._calls -= 1
            self._used = anyio.current_time()
            self._news.set()

    async def _awake(self) -> Line:
        """The connection; one that rests is started."""
        if self.state == "resting":
            self.state = "starting"
            self._unsettle()
            self._news.set()
        if self.state == "starting":
            await self._settled.wait()
        if self._line is None:
            raise ServerFault(self.reason or "it is not connected")
        return self._line

    async def _live_once(self, connect: Connect) -> None:
        """Be connected until it ends, fails, is stopped or has nothing to do."""
        self._parting = False
        # Shielded: a process that ends takes leave of its servers as a closed session does.
        self._scope = scope = anyio.CancelScope(shield=True)
        try:
            with scope:
                await self._converse(connect)
            if scope.cancelled_caught and not (self._parting or self._over):
                self._fail(f"it was not ready after {self.wanted.start_timeout:g} s")
        except ServerFault as fault:
            if self._parting or self._over or self.state == "failed":
                return
            if self._line is not None and isinstance(self.wanted.reach, Address):
                self._rest(self._line)
            else:
                self._fail(str(fault))

    async def _converse(self, connect: Connect) -> None:
        reach = self.wanted.reach
        if isinstance(reach, Unreachable):
            raise ServerFault(reach.why)
        self._scope.deadline = anyio.current_time() + self.wanted.start_timeout
        async with connect(reach, self) as line:
            await self._list(line)
            self._line, self.state = line, "ready"
            self._scope.deadline, self._used = math.inf, anyio.current_time()
            while self.state == "ready" and not self._over:
                self._news = anyio.Event()
                if self._stale:
                    await self._pause()
                    await self._list(line)
                    continue
                self._settled.set()
                with anyio.CancelScope(deadline=self._rest_at()) as patience:
                    await self._news.wait()
                if patience.cancelled_caught and not self._calls:
                    self._rest(line)

    async def _pause(self) -> None:
        """Wait before listing tools that change all the time; no request does."""
        soon = anyio.current_time() - self._listed < _SOON + self._paused
        self._in_a_row = self._in_a_row + 1 if soon else 0
        over = self._in_a_row - _FREE
        self._paused = min(_SHORTEST_PAUSE * 2**over, _LONGEST_PAUSE) if over > 0 else 0
        if not self._paused:
            return
        self._settled.set()
        with anyio.move_on_after(self._paused):
            while self.state == "ready" and not self._over:
                await self._news.wait()
                self._news = anyio.Event()

    def _rest(self, line: Line) -> None:
        """Give this connection up; the next call makes another."""
        if self._line is line:
            self.state, self._line = "resting", None
            self._part()
            self._news.set()

    def _rest_at(self) -> float:
        return math.inf if self._calls else self._used + self.wanted.rest_after

    def _unsettle(self) -> None:
        """Have requests wait again; those that wait already go on waiting for the same."""
        if self._settled.is_set():
            self._settled = anyio.Event()

    def _part(self) -> None:
        """Let it take leave, and not for long."""
        self._parting = True
        self._scope.deadline = anyio.current_time() + _FAREWELL

    async def _list(self, line: Line) -> None:
        self._stale = False
        listed: tuple[RemoteTool, ...] | None = None
        with anyio.move_on_after(self.wanted.start_timeout):
            listed = await line.tools()
        if listed is None:
            self._line = None  # it is there, and no other connection would help
            raise ServerFault("it does not say which tools it has")
        kept = [
            tool
            for tool in listed
            if any(fnmatchcase(tool.name, pattern) for pattern in self.wanted.tools)
        ]
        names = offered_names(self._slug, (tool.name for tool in kept))
        bound = {names[tool.name]: self._bound(names[tool.name], tool) for tool in kept}
        self.offers = [function(name, each.tool) for name, each in bound.items()]
        self.tools = {**self.tools, **bound}
        self._listed = anyio.current_time()

    def _bound(self, name: str, tool: RemoteTool) -> BoundTool:
        """A tool, with what it was before where it is another one now."""
        known = self.tools.get(name)
        if known is None:
            return BoundTool(self, self.wanted, tool)
        former = known.former if known.tool == tool else known.tool
        return BoundTool(self, self.wanted, tool, former)

    def _fail(self, reason: str) -> None:
        self.state, self.reason, self.offers = "failed", self.wanted.scrubbed(reason), ()
        self._line = None
        self._settled.set()


class Servers:
    """All of them; owned by their session."""

    def __init__(
        self, wanted: Sequence[Wanted], tell: Callable[[str, str], None], *, can_ask: bool
    ) -> None:
        names = slugs(one.name for one in wanted)
        self._servers = [Server(one, names[one.name], can_ask=can_ask) for one in wanted]
        self._tell = tell
        self._wanted_now = anyio.Event()
        self._loaded = anyio.Event()
        self._closed = anyio.Event()
        self.offered: Sequence[dict[str, object]] = ()
        """The tools of the next request, as the API takes them."""

    @property
    def tools(self) -> Mapping[str, BoundTool]:
        """Every tool there ever was, by its name towards the model."""
        return {name: tool for server in self._servers for name, tool in server.tools.items()}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What was given to the servers and to nobody else."""
        return tuple(secret for server in self._servers for secret in server.wanted.secrets)

    async def run(self, load: Load, *, at_once: bool) -> None:
        """Start them, now or when they are first waited for; returns when all have ended."""
        if not at_once:
            await self._wanted_now.wait()
        try:
            connect = None if self._closed.is_set() else await load()
        finally:
            self._loaded.set()
        if connect is None:
            return
        async with anyio.create_task_group() as tasks:
            for server in self._servers:
                tasks.start_soon(self._live, server, connect)
            try:
                await self._closed.wait()
            finally:
                for server in self._servers:
                    server.stop()

    async def join(self) -> None:
        """Wait, within limits, for what is starting or changing; the next request has the rest."""
        self._wanted_now.set()
        await self._loaded.wait()
        since = anyio.current_time()
        for server in self._servers:
            await server.settled(since)
        offered = [offer for server in self._servers for offer in server.offers]
        if offered != self.offered:
            self.offered = offered

    def close(self) -> None:
        """End all of them, soon."""
        self._wanted_now.set()
        self._closed.set()

    def view(self, server: str = "") -> str:
        """How they are, for the user; or how the named one is, and which tools it has."""
        if not server:
            return "\n".join(["MCP servers:", *map(_line, self._servers)])
        for one in self._servers:
            if one.name == server:
                return "\n".join([_line(one), *(f"  - {offer['name']}" for offer in one.offers)])
        known = ", ".join(one.name for one in self._servers)
        return f"Error: there is no MCP server {server}; there are: {known}"

    def brief(self) -> str:
        """How they are, in a few words each."""
        return ", ".join(f"{server.name} ({_state(server)})" for server in self._servers)

    async def _live(self, server: Server, connect: Connect) -> None:
        await server.live(connect)
        if server.state == "failed":
            self._tell(server.name, server.reason)


def _line(server: Server) -> str:
    match server.state:
        case "starting":
            how = "starting"
        case "ready" | "resting" as state:
            tokens = sum(window.tokens(offer) for offer in server.offers)
            how = f"{state}, {_count(server.offers)}, about {tokens} tokens in every request"
        case "failed":
            how = f"failed: {server.reason}"
    return f"- {server.name} ({server.wanted.origin}): {how}"


def _state(server: Server) -> str:
    is_there = server.state in ("ready", "resting")
    return _count(server.offers) if is_there else server.state


def _count(offers: Sequence[object]) -> str:
    return "1 tool" if len(offers) == 1 else f"{len(offers)} tools"
