"""One MCP server, reached by the official client: its tools, its answers, its questions.

The only importer of mcp, which takes a third of a second to load: it is imported itself by
servers.py alone, when a session has servers. It must not know sessions, cards or permissions.

Rule 1: what arrives is plain data from here on, and every fault is a ServerFault.
Rule 2: the handshake of the widely spoken versions comes first; only a server that refuses it is
asked for what it speaks. Many programs end at a first message they do not know.
Rule 3: what a program prints that is no message is not the end of it.
Rule 4: a URL is reached as the model's server is: the same proxies, the same certificates.
"""

import ssl
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client, MCPError, types
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from bridge import __version__
from bridge.core.remote import RemoteTool
from bridge.core.remote_content import Output
from bridge.core.wire import dump, load_object
from bridge.errors import ConfigError
from bridge.remote_tool import Asked, Forgotten, ServerFault
from bridge.responses import proxies
from bridge.responses.client import trusted
from bridge.servers import Events, Line
from bridge.wanted import Address, Program
from tools.process import Launch
from tools.service import Service, program, service

_MOST_PAGES = 100
_LONGEST_REASON = 300
_CONNECT_SECONDS = 30.0

_SESSION = "mcp-session-id"
"""The header by which a URL knows a conversation again."""
_NOT_FOUND = 404

_OTHER_HANDSHAKE = (
    types.UNSUPPORTED_PROTOCOL_VERSION,
    types.METHOD_NOT_FOUND,
    types.INVALID_REQUEST,
)

Incoming: TypeAlias = SessionMessage | Exception
Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]
]

FAULTS = (
    MCPError,
    OSError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    RuntimeError,
    ValueError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.EndOfStream,
)
"""All that the client raises, as its documentation says, or lets through."""


@asynccontextmanager
async def connect(reach: Program | Address, events: Events) -> AsyncGenerator[Line]:
    """A server, connected for as long as the context is open; ServerFault if that fails."""
    heard = _Heard(events)
    try:
        async with AsyncExitStack() as stack:
            try:
                client = await stack.enter_async_context(_client(reach, heard, "legacy"))
            except (MCPError, ExceptionGroup) as error:
                if not any(_refuses_handshake(one) for one in _leaves(error)):
                    raise
                heard.refusals.clear()
                client = await stack.enter_async_context(_client(reach, heard, "auto"))
            yield Connection(client, heard)
    except FAULTS as error:
        raise ServerFault(heard.reason(error)) from None
    except ExceptionGroup as group:
        leaves = list(_leaves(group))
        if not all(isinstance(one, (*FAULTS, ServerFault)) for one in leaves):
            raise
        raise ServerFault(heard.reason(leaves[0])) from None


class Connection:
    """A connected server."""

    def __init__(self, client: Client, heard: "_Heard") -> None:
        self._client = client
        self._heard = heard

    async def tools(self) -> tuple[RemoteTool, ...]:
        """All tools there are now."""
        found: list[types.Tool] = []
        cursor: str | None = None
        with self._heard.faults():
            for _ in range(_MOST_PAGES):
                page = await self._client.list_tools(cursor=cursor)
                found += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
        return tuple(_tool(one) for one in found)

    async def call(self, name: str, arguments: Mapping[str, object], asked: Asked) -> Output:
        """Make one call and wait for its answer; a cancelled call is cancelled there as well."""
        call = _Call(asked)
        self._heard.calls.append(call)
        try:
            with self._heard.faults():
                result = await self._client.call_tool(
                    name, dict(arguments), progress_callback=call.progress
                )
        finally:
            self._heard.calls.remove(call)
            call.give_up_forms()
        blocks = tuple(
            block.model_dump(by_alias=True, mode="json", exclude_none=True)
            for block in result.content
        )
        return Output(blocks, result.structured_content, failed=bool(result.is_error))


class _Heard:
    """What comes from one server beside the answers to requests."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.calls: list[_Call] = []
        """Those that wait for their answers."""
        self.refusals: list[str] = []
        """What a URL answered in the place of a message: the client says only that it did."""
        self.is_forgotten = False
        """The URL does not know our conversation any more."""

    async def message(self, message: object) -> None:
        """Heed a notification."""
        if isinstance(message, types.ToolListChangedNotification):
            self.events.changed()

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        """Put a question of the server's to who called it last."""
        del context
        if not self.calls or not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")
        return await self.calls[-1].fill(params.message, params.requested_schema)

    async def response(self, response: httpx2.Response) -> None:
        """Note a refusal of a message; a server need not have the stream that GET asks for."""
        if response.request.method == "POST" and response.is_error:
            self.refusals.append(f"it answered {response.status_code} {response.reason_phrase}")
            is_in_session = _SESSION in response.request.headers
            self.is_forgotten = is_in_session and response.status_code == _NOT_FOUND

    @contextmanager
    def faults(self) -> Generator[None]:
        """Turn what a request raises into a ServerFault."""
        self.refusals.clear()
        self.is_forgotten = False
        try:
            yield
        except FAULTS as error:
            # Another call's connection that is given up for it may have been heard by the server.
            is_cut = isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED
            fault = Forgotten if self.is_forgotten and not is_cut else ServerFault
            raise fault(self.reason(error)) from None

    def reason(self, error: BaseException) -> str:
        """What went wrong, as the end of a sentence."""
        return self.refusals[-1] if self.refusals else _reason(error)


class _Call:
    """A call that waits for its answer; what the server asks meanwhile is asked for it."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._forms: list[anyio.CancelScope] = []

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """The server says how far it is."""
        much = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        self._asked.progress(f"{much}: {message}" if message else much)

    async def fill(self, message: str, schema: Mapping[str, Any]) -> types.ElicitResult:
        """The server wants a form filled in."""
        with anyio.CancelScope() as scope:
            self._forms.append(scope)
            filled = await self._asked.fill(message, schema)
            content: Any = filled.content
            return types.ElicitResult(action=filled.action, content=content)
        return types.ElicitResult(action="cancel")

    def give_up_forms(self) -> None:
        """The call is over, so nobody needs an answer any more."""
        for scope in self._forms:
            scope.cancel()


def _client(
    reach: Program | Address, heard: _Heard, mode: str
) -> AbstractAsyncContextManager[Client]:
    transport: AbstractAsyncContextManager[Any]
    if isinstance(reach, Program):
        transport = _program(reach, heard.events)
    else:
        transport = _address(reach, heard)
    return Client(
        transport,
        mode=mode,
        cache=None,
        message_handler=heard.message,
        # Whoever cannot be asked is not advertised as somebody who can.
        elicitation_callback=heard.elicit if heard.events.can_ask else None,
        client_info=types.Implementation(name="responses-acp", version=__version__),
    )


@asynccontextmanager
async def _program(reach: Program, events: Events) -> AsyncGenerator[Streams]:
    """A program's standard streams as streams of messages."""
    argv = (program(reach.argv[0], reach.environment), *reach.argv[1:])
    into, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, out_of = anyio.create_memory_object_stream[SessionMessage](0)
    async with (
        into,
        incoming,
        outgoing,
        out_of,
        service(Launch(argv, reach.environment, reach.cwd)) as running,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_listen, running, into, events)
        tasks.start_soon(_speak, running, out_of, into, events)
        yield incoming, outgoing
        tasks.cancel_scope.cancel()


async def _listen(running: Service, into: MemoryObjectSendStream[Incoming], events: Events) -> None:
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with into:
            async for line in running.lines():
                message = _message(line)
                if message is not None:
                    await into.send(SessionMessage(message))
            # Told before those who wait for an answer are, so that they can say why none came.
            events.gone(await running.last_words())


def _message(line: bytes) -> types.JSONRPCMessage | None:
    """The message that a line is; None for what is none.

    Programs cut texts in the middle of a character. That costs the character and not the message,
    for which somebody waits.
    """
    parse = types.jsonrpc_message_adapter.validate_json
    with suppress(ValidationError):
        return parse(line, by_name=False)
    with suppress(ValueError):
        return parse(dump(load_object(line.decode("utf-8", "replace"))), by_name=False)
    return None


async def _speak(
    running: Service,
    out_of: MemoryObjectReceiveStream[SessionMessage],
    into: MemoryObjectSendStream[Incoming],
    events: Events,
) -> None:
    async for message in out_of:
        line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            await running.send(line.encode())
        except OSError:
            events.gone(await running.last_words())
            into.close()  # whoever waits for an answer is told that none will come
            return


@asynccontextmanager
async def _address(reach: Address, heard: _Heard) -> AsyncGenerator[Any]:
    """A URL as streams of messages; what is silent there is ended by whoever waits for it."""
    async with (
        _http(reach, heard) as http,
        streamable_http_client(reach.url, http_client=http) as streams,
    ):
        yield streams


def _http(reach: Address, heard: _Heard) -> httpx2.AsyncClient:
    """A client that goes the way to this URL which requests to models go; ServerFault."""
    source, proxy = proxies.source_of_proxy(reach.url), proxies.proxy_to(reach.url)
    try:
        return httpx2.AsyncClient(
            headers=dict(reach.headers),
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
            event_hooks={"response": [heard.response]},
            trust_env=False,
            verify=_tls(reach.url) or False,
            proxy=None if proxy is None else _proxy(proxy),
        )
    except ConfigError as error:
        raise ServerFault(str(error)) from None
    except ImportError:
        raise ServerFault(proxies.is_socks(source)) from None
    except (ValueError, httpx2.InvalidURL):
        raise ServerFault(proxies.is_no_url(source)) from None


def _proxy(url: str) -> httpx2.Proxy:
    return httpx2.Proxy(proxies.checked(url), ssl_context=_tls(url))


def _tls(url: str) -> ssl.SSLContext | None:
    return trusted(None) if urlsplit(url).scheme == "https" else None


def _tool(tool: types.Tool) -> RemoteTool:
    hints = tool.annotations
    return RemoteTool(
        tool.name,
        tool.description or tool.title or "",
        tool.input_schema,
        read_only=hints is not None and bool(hints.read_only_hint),
    )


def _refuses_handshake(error: BaseException) -> bool:
    return isinstance(error, MCPError) and error.code in _OTHER_HANDSHAKE


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The error, or all that a group of them holds."""
    if isinstance(error, BaseExceptionGroup):
        for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(one)
    else:
        yield error


def _reason(error: BaseException) -> str:
    """What went wrong, as the end of a sentence."""
    match error:
        case MCPError(message=text):
            pass
        case OSError(strerror=str(text)):
            pass
        case httpx2.HTTPError():
            text = f"it cannot be reached ({type(error).__name__})"
        case ValidationError():
            text = "it answered something that is not MCP"
        case _:
            text = str(error)
    first = (text.strip().splitlines() or [type(error).__name__])[0]
    return first[:_LONGEST_REASON]
