"""One handler per inbound method.

Rule 1: METHODS and NOTES are the whole list; what is not in METHODS is not a method.
Rule 2: messages are handled in the order of arrival. A handler never waits: what must wait for the
model, a tool or the editor goes on as a task of its own and answers later.
Rule 3: a request is answered once, whatever happens in its handler.
"""

import os
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from anyio.abc import TaskGroup
from pydantic import BaseModel

from bridge import commands, log, options
from bridge.acp import schema
from bridge.acp.connection import Connection
from bridge.acp.editor import SessionEditor
from bridge.acp.peer import Note, Reply, Request
from bridge.config import Config
from bridge.core import handshake, updates
from bridge.core.handshake import Capabilities
from bridge.core.records import Item, Opened, Responded
from bridge.core.wire import JsonObject
from bridge.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    BridgeError,
    EditorError,
    LoginRequired,
)
from bridge.session import Prompt, Session, now
from bridge.store import Store, unknown_session
from tools.frozen import frozen

RequestId = str | int | None
P = TypeVar("P", bound=BaseModel)


@frozen
class Answered:
    """A result, and what is sent as soon as it is out."""

    result: Mapping[str, object]
    after: Callable[[], None] | None = None


@dataclass(eq=False, slots=True)
class Agent:
    """What the handlers work with; owner of the sessions."""

    connection: Connection
    tasks: TaskGroup
    load_config: Callable[[], Config]
    environment: Mapping[str, str]
    store: Store
    answer: Callable[[Session, SessionEditor, Prompt], Awaitable[str]]
    """Runs one prompt to its stop reason."""
    warm_up: Callable[[], None]
    """Called when a session is there: what the first prompt needs may be loaded now."""
    discover: Callable[[Config], None]
    """Called with it too: the servers may be asked for their models."""
    can: Capabilities = field(default_factory=Capabilities)
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    prompts: dict[RequestId, Prompt] = field(default_factory=dict[RequestId, Prompt])

    def session(self, session: str) -> Session:
        """An open session; EditorError for an id that is none."""
        found = self.sessions.get(session)
        if found is None:
            raise unknown_session(session)
        return found

    def editor(self, session: Session) -> SessionEditor:
        """The editor, for one session."""
        return SessionEditor(self.connection, self.can, session.id)

    def open_sessions(self) -> list[tuple[Session, SessionEditor]]:
        """Every session, with the editor as it sees it."""
        return [(session, self.editor(session)) for session in self.sessions.values()]

    def close(self) -> None:
        """Close every session: the end of input came."""
        for session in self.sessions.values():
            session.close()


def take(agent: Agent, message: Request | Note | Reply) -> None:
    """Handle one message of the editor's; never raises."""
    match message:
        case Reply():
            agent.connection.settle(message)
        case Note(method=method, params=params):
            _note(agent, method, params)
        case Request(id=request, method=method, params=params):
            _serve(agent, request, method, params)


def _serve(agent: Agent, request: RequestId, method: str, params: JsonObject) -> None:
    try:
        answered = _handle(agent, request, method, params)
    except BridgeError as error:
        agent.connection.refuse(request, error)
    except Exception as error:  # noqa: BLE001 (the seam: a fault of ours ends one request)
        _internal(agent, request, error, method)
    else:
        if answered is not None:
            agent.connection.result(request, answered.result)
            if answered.after is not None:
                answered.after()


def _handle(agent: Agent, request: RequestId, method: str, params: JsonObject) -> Answered | None:
    if method == "session/prompt":
        _prompt(agent, request, schema.read(schema.PromptParams, params))
        return None
    row = METHODS.get(method)
    if row is None:
        raise EditorError(
            METHOD_NOT_FOUND,
            f'"{method[:100]}" is not a method of this agent',
            {"method": method[:100]},
        )
    return row.handle(agent, schema.read(row.params, params))


def _note(agent: Agent, method: str, params: JsonObject) -> None:
    row = NOTES.get(method)
    if row is None:
        return
    try:
        row.handle(agent, schema.read(row.params, params))
    except EditorError:
        log.say(f"ignored a notification with bad params: {method}")


def _internal(agent: Agent, request: RequestId, error: Exception, where: str) -> None:
    log.fault(error, where)
    agent.connection.refuse(
        request, BridgeError("internal error of responses-acp; its log file says where it happened")
    )


# -- initialize and authenticate -----------------------------------------------------------------


def _initialize(agent: Agent, params: schema.AnyParams) -> Answered:
    given = params.model_extra or {}
    try:
        result = handshake.initialize(given)
    except handshake.BadHandshake as error:
        raise EditorError(INVALID_PARAMS, str(error)) from None
    agent.can = handshake.client_capabilities(given)
    return Answered(result)


def _authenticate(agent: Agent, params: schema.AuthenticateParams) -> Answered:
    try:
        _check_credentials(agent)
    except LoginRequired:
        if params.method_id != handshake.AUTH_METHOD:
            raise EditorError(INVALID_PARAMS, "methodId: unknown authentication method") from None
        raise
    return Answered({})


def _check_credentials(agent: Agent) -> None:
    config = agent.load_config()
    provider = config.providers[config.models[config.default_model].provider]
    provider.credentials(agent.environment)


# -- sessions ------------------------------------------------------------------------------------


def _new(agent: Agent, params: schema.NewSessionParams) -> Answered:
    cwd = _workspace(params)
    config = agent.load_config()
    model = config.models[config.default_model]
    opened = Opened(
        session=str(uuid.uuid4()),
        cwd=cwd,
        at=now(),
        mode=config.default_mode,
        model=config.default_model,
        effort=model.effort,
        permission=config.permission,
    )
    session = Session(config, opened, agent.store.create(opened))
    _keep_servers(session, params.mcp_servers)
    agent.sessions[session.id] = session

    def after() -> None:
        if session.id in agent.sessions:
            agent.editor(session).update(updates.commands(commands.menu()))
        agent.warm_up()
        agent.discover(config)

    return Answered({"sessionId": session.id, **_state(session)}, after)


def _load(agent: Agent, params: schema.LoadSessionParams) -> Answered:
    if params.session_id in agent.sessions:
        raise EditorError(
            INVALID_PARAMS, "the session is loaded already", {"sessionId": params.session_id}
        )
    cwd = _workspace(params)
    config = agent.load_config()
    records, journal = agent.store.load(params.session_id)
    opened = records[0]
    if not isinstance(opened, Opened) or opened.cwd != cwd:
        journal.close()
        raise EditorError(
            INVALID_PARAMS,
            f"session cwd mismatch: persisted {getattr(opened, 'cwd', None)}, requested {cwd}",
        )
    session = Session(config, opened, journal)
    _keep_servers(session, params.mcp_servers)
    session.restore(records)
    agent.sessions[session.id] = session
    editor = agent.editor(session)
    for update in updates.replay(
        records, cwd=cwd, terminal=agent.can.terminal_output, compactions=agent.can.compaction
    ):
        editor.update(update)
    editor.update(updates.commands(commands.menu()))

    def after() -> None:
        used = [one.used for one in records if isinstance(one, Responded) and one.used is not None]
        if used and session.model.context_window is not None:
            editor.update(updates.usage(used[-1], session.model.context_window, session.cost))
        agent.warm_up()
        agent.discover(config)

    return Answered(_state(session), after)


def _list(agent: Agent, params: schema.ListSessionsParams) -> Answered:
    cwd = None if params.cwd is None else os.path.normpath(params.cwd)
    page, cursor = agent.store.list(cwd, params.cursor)
    sessions: list[dict[str, str]] = []
    for one in page:
        entry = {"sessionId": one.session, "cwd": one.cwd, "updatedAt": one.updated_at}
        sessions.append(entry if one.title is None else {**entry, "title": one.title})
    return Answered({"sessions": sessions, **({} if cursor is None else {"nextCursor": cursor})})


def _set_mode(agent: Agent, params: schema.SetModeParams) -> Answered:
    session = agent.session(params.session_id)
    options.set_mode(session, params.mode_id)
    editor = agent.editor(session)
    editor.update(updates.mode(session.mode))
    editor.update(updates.options(options.all_options(session)))
    return Answered({})


def _set_option(agent: Agent, params: schema.SetConfigOptionParams) -> Answered:
    session = agent.session(params.session_id)
    mode = session.mode
    options.set_option(session, params.config_id, params.value)
    if session.mode != mode:
        agent.editor(session).update(updates.mode(session.mode))
    return Answered({"configOptions": options.all_options(session)})


def _state(session: Session) -> dict[str, object]:
    return {"modes": options.modes(session), "configOptions": options.all_options(session)}


def _workspace(params: schema.NewSessionParams | schema.LoadSessionParams) -> str:
    """The session's folder; EditorError for one that cannot be worked in."""
    if params.additional_directories:
        raise EditorError(
            INVALID_PARAMS, "additionalDirectories: not supported; open each folder by itself"
        )
    if not Path(params.cwd).is_dir():
        raise EditorError(
            INVALID_PARAMS, "cwd: there is no such folder on this machine; open an existing one"
        )
    return os.path.normpath(params.cwd)


def _keep_servers(session: Session, servers: list[schema.McpServer]) -> None:
    session.servers = tuple(servers)
    if servers:
        log.say(f"{len(servers)} MCP servers of the editor kept, not started: not supported yet")


# -- prompts -------------------------------------------------------------------------------------


def _prompt(agent: Agent, request: RequestId, params: schema.PromptParams) -> None:
    session = agent.session(params.session_id)
    blocks = _checked(params.prompt, images=session.model.images)
    prompt = Prompt(blocks)
    session.prompts.append(prompt)
    agent.prompts[request] = prompt
    agent.tasks.start_soon(_answer, agent, request, session, prompt)


async def _answer(agent: Agent, request: RequestId, session: Session, prompt: Prompt) -> None:
    """Run one prompt when its turn has come, and answer it."""
    stop = "cancelled"
    failure: BridgeError | None = None
    try:
        with prompt.scope:
            async with session.turn:
                stop = await agent.answer(session, agent.editor(session), prompt)
    except BridgeError as error:
        failure = error
    except Exception as error:  # noqa: BLE001 (the seam: a fault of ours ends one prompt)
        log.fault(error, "session/prompt")
        failure = BridgeError(
            "internal error of responses-acp; its log file says where it happened"
        )
    finally:
        session.prompts.remove(prompt)
        agent.prompts.pop(request, None)
    if failure is None:
        agent.connection.result(request, {"stopReason": stop})
    else:
        agent.connection.refuse(request, failure)


def _checked(blocks: list[schema.ContentBlock], *, images: bool) -> tuple[Item, ...]:
    """The blocks as they came, if every one may be sent to this model."""
    for block in blocks:
        kind = block.type
        if kind not in _BLOCKS or (kind == "image" and not images):
            why = "the model in use takes no images" if kind == "image" else "not supported"
            raise EditorError(INVALID_PARAMS, f'prompt: content of type "{kind}": {why}')
    sent = tuple(block.as_sent() for block in blocks)
    if not any(kind.type != "text" or str(kind.as_sent().get("text")).strip() for kind in blocks):
        raise EditorError(INVALID_PARAMS, "empty prompt")
    return sent


_BLOCKS = frozenset({"text", "resource_link", "image", "resource"})


def _cancel(agent: Agent, params: schema.CancelParams) -> None:
    session = agent.sessions.get(params.session_id)
    if session is not None:
        session.cancel()


def _cancel_request(agent: Agent, params: schema.CancelRequestParams) -> None:
    prompt = agent.prompts.get(params.request_id)
    if prompt is not None:
        prompt.scope.cancel()


# -- the tables ----------------------------------------------------------------------------------


@frozen
class Method(Generic[P]):
    """One method: what its params must be, and what answers it."""

    params: type[P]
    handle: Callable[[Agent, P], Answered]


@frozen
class Notification(Generic[P]):
    """One notification: what its params must be, and what heeds it."""

    params: type[P]
    handle: Callable[[Agent, P], None]


METHODS: dict[str, Method[Any]] = {
    "initialize": Method(schema.AnyParams, _initialize),
    "authenticate": Method(schema.AuthenticateParams, _authenticate),
    "session/new": Method(schema.NewSessionParams, _new),
    "session/load": Method(schema.LoadSessionParams, _load),
    "session/list": Method(schema.ListSessionsParams, _list),
    "session/set_mode": Method(schema.SetModeParams, _set_mode),
    "session/set_config_option": Method(schema.SetConfigOptionParams, _set_option),
}
"""Beside these stands session/prompt, whose answer comes later."""

NOTES: dict[str, Notification[Any]] = {
    "session/cancel": Notification(schema.CancelParams, _cancel),
    "$/cancel_request": Notification(schema.CancelRequestParams, _cancel_request),
}
