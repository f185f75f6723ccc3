"""One handler per inbound method.

Rule 1: METHODS and NOTES are the whole list; what is not in METHODS is not a method.
Rule 2: messages are handled in the order of arrival. A handler never waits: what must wait for the
model, a tool or the editor goes on as a task of its own and answers later.
Rule 3: a request is answered once, whatever happens in its handler.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from anyio import CancelScope
from pydantic import BaseModel

from bridge import log, options
from bridge.acp import schema, sessions
from bridge.acp.agent import Agent, Answered, Pending, RequestId
from bridge.acp.peer import Note, Reply, Request
from bridge.config import Provider
from bridge.core import content, handshake, hello, updates
from bridge.core.records import Item
from bridge.core.wire import JsonObject
from bridge.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_CANCELLED,
    BridgeError,
    ConfigError,
    EditorError,
    LoginRequired,
)
from bridge.session import Prompt, Session
from tools.frozen import frozen

P = TypeVar("P", bound=BaseModel)
R = TypeVar("R")


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
    if method in METHODS:
        log.detail(f"asked for {method}")
    answered: Answered | Pending | None = None  # where it fails, that is answered at once
    with _answering_failures(agent, request, method):
        answered = _handle(agent, method, params)
    match answered:
        case Answered():
            _answered(agent, request, answered)
        case Pending(scope=scope):
            if scope is not None:
                agent.scopes[request] = scope
            agent.tasks.start_soon(_answer_later, agent, request, method, answered)


@contextmanager
def _answering_failures(agent: Agent, request: RequestId, method: str) -> Generator[None]:
    """What goes wrong inside is the answer."""
    try:
        yield
    except BridgeError as error:
        agent.connection.refuse(request, error)
    except Exception as error:  # noqa: BLE001 (the seam: a fault of ours ends one request)
        log.fault(error, method)
        agent.connection.refuse(
            request,
            BridgeError("internal error of responses-acp; its log file says where it happened"),
        )


def _answered(agent: Agent, request: RequestId, answered: Answered) -> None:
    agent.connection.result(request, answered.result)
    if answered.after is not None:
        answered.after()


async def _answer_later(agent: Agent, request: RequestId, method: str, pending: Pending) -> None:
    answered = pending.given_up
    try:
        with _answering_failures(agent, request, method):
            with pending.scope or CancelScope() as scope:
                try:
                    answered = await pending.run()
                except BridgeError:
                    # ACP, Prompt Turn, Cancellation: what fails by being cancelled is no error.
                    if answered is None or not scope.cancel_called:
                        raise
            if answered is None:
                raise EditorError(REQUEST_CANCELLED, "the request was given up")
            _answered(agent, request, answered)
    finally:
        agent.scopes.pop(request, None)


def _handle(agent: Agent, method: str, params: JsonObject) -> Answered | Pending:
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


# -- initialize and authenticate -----------------------------------------------------------------


def _initialize(agent: Agent, params: schema.AnyParams) -> Answered:
    given = params.model_extra or {}
    try:
        result = hello.initialize(given)
    except hello.BadHandshake as error:
        raise EditorError(INVALID_PARAMS, str(error)) from None
    agent.can = handshake.client_capabilities(given)
    return Answered(result)


def _authenticate(agent: Agent, params: schema.AuthenticateParams) -> Answered | Pending:
    """Look for the key anew; where a program prints it, that runs and may be given up."""
    if params.method_id == hello.TERMINAL_METHOD:
        # ACP, Authentication: a method of type "terminal" must not be passed to `authenticate`.
        raise EditorError(INVALID_PARAMS, "methodId: this method is run in a terminal")
    agent.forget_keys()
    with _of_method(params.method_id):
        provider = _default_provider(agent)
        provider.credentials(agent.environment)
    if provider.api_key_command is None:
        agent.is_logged_out = False
        return Answered({})

    async def run() -> Answered:
        with _of_method(params.method_id):
            await agent.find_key(provider)
        agent.is_logged_out = False
        return Answered({})

    return Pending(run, CancelScope())


@contextmanager
def _of_method(method: str) -> Generator[None]:
    """A missing key is the matter of the method that we offer; any other is unknown."""
    try:
        yield
    except LoginRequired:
        if method != hello.AUTH_METHOD:
            raise EditorError(INVALID_PARAMS, "methodId: unknown authentication method") from None
        raise


def _logout(agent: Agent, _params: schema.AnyParams) -> Answered:
    """Forget the keys that are ours to forget; others count again after `authenticate`."""
    agent.is_logged_out = True
    agent.forget_keys()
    with suppress(ConfigError):
        agent.load_config().forget_kept(agent.environment)
    return Answered({})


def _default_provider(agent: Agent) -> Provider:
    config = agent.load_config()
    return config.providers[config.models[config.default_model].provider]


# -- options -------------------------------------------------------------------------------------


def _set_mode(agent: Agent, params: schema.SetModeParams) -> Answered | Pending:
    def act(session: Session) -> Answered:
        options.set_mode(session, params.mode_id)
        editor = agent.editor(session)
        editor.update(updates.mode(session.mode))
        editor.update(updates.options(options.all_options(session)))
        return Answered({})

    return _when_loaded(agent, params.session_id, act)


def _set_option(agent: Agent, params: schema.SetConfigOptionParams) -> Answered | Pending:
    def act(session: Session) -> Answered:
        mode = session.mode
        options.set_option(session, params.config_id, params.value)
        if session.mode != mode:
            agent.editor(session).update(updates.mode(session.mode))
        return Answered({"configOptions": options.all_options(session)})

    return _when_loaded(agent, params.session_id, act)


def _when_loaded(
    agent: Agent, session_id: str, act: Callable[[Session], Answered]
) -> Answered | Pending:
    """Do this with a session: now, or as soon as all of it is read."""
    session = agent.session(session_id)
    if session.loading is None:
        return act(session)

    async def run() -> Answered:
        await agent.loaded(session)
        return act(session)

    return Pending(run)


# -- prompts -------------------------------------------------------------------------------------


def _prompt(agent: Agent, params: schema.PromptParams) -> Pending:
    """Run one prompt when its turn has come."""
    session = agent.session(params.session_id)
    agent.demand_login()
    prompt = Prompt(_checked(params.prompt))
    agent.hide_secrets(session)
    session.prompts.append(prompt)

    async def run() -> Answered:
        try:
            await agent.loaded(session)
            async with session.turn:
                _check(prompt.blocks, images=session.model.images)
                stop = await agent.answer(session, agent.editor(session), prompt)
            return Answered({"stopReason": stop})
        finally:
            session.prompts.remove(prompt)
            prompt.answered.set()  # whoever waits for it goes on after the answer is out

    return Pending(run, prompt.scope, given_up=Answered({"stopReason": "cancelled"}))


def _checked(blocks: list[schema.ContentBlock]) -> tuple[Item, ...]:
    """The blocks as they came, if they are a prompt."""
    sent = tuple(block.as_sent() for block in blocks)
    _check(sent, images=True)
    if not any(kind.type != "text" or str(kind.as_sent().get("text")).strip() for kind in blocks):
        raise EditorError(INVALID_PARAMS, "empty prompt")
    return sent


def _check(blocks: Iterable[Item], *, images: bool) -> None:
    """Refuse what no model takes, and images where the model in use takes none."""
    for number, block in enumerate(blocks):
        why = content.unfit(block, images=images)
        if why is not None:
            kind = str(block["type"])[:100]
            raise EditorError(INVALID_PARAMS, f'prompt.{number}: content of type "{kind}": {why}')


def _cancel(agent: Agent, params: schema.SessionParams) -> None:
    session = agent.sessions.get(params.session_id)
    if session is not None:
        session.cancel()


def _cancel_request(agent: Agent, params: schema.CancelRequestParams) -> None:
    agent.connection.knows_cancelling = True
    scope = agent.scopes.get(params.request_id)
    if scope is not None:
        scope.cancel()


# -- the tables ----------------------------------------------------------------------------------


@frozen
class Row(Generic[P, R]):
    """One method: what its params must be, and what handles it."""

    params: type[P]
    handle: Callable[[Agent, P], R]


METHODS: dict[str, Row[Any, Answered | Pending]] = {
    "initialize": Row(schema.AnyParams, _initialize),
    "authenticate": Row(schema.AuthenticateParams, _authenticate),
    "logout": Row(schema.AnyParams, _logout),
    "session/new": Row(schema.WorkspaceParams, sessions.new),
    "session/load": Row(schema.LoadSessionParams, sessions.load),
    "session/resume": Row(schema.LoadSessionParams, sessions.resume),
    "session/list": Row(schema.ListSessionsParams, sessions.listed),
    "session/close": Row(schema.SessionParams, sessions.close),
    "session/delete": Row(schema.SessionParams, sessions.delete),
    "session/set_mode": Row(schema.SetModeParams, _set_mode),
    "session/set_config_option": Row(schema.SetConfigOptionParams, _set_option),
    "session/prompt": Row(schema.PromptParams, _prompt),
}

NOTES: dict[str, Row[Any, None]] = {
    "session/cancel": Row(schema.SessionParams, _cancel),
    "$/cancel_request": Row(schema.CancelRequestParams, _cancel_request),
}
