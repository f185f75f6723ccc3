"""What the handlers of the editor's messages share: the agent itself, and how a handler answers.

It must not know any method.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anyio import CancelScope
from anyio.abc import TaskGroup

from bridge.acp.connection import Connection
from bridge.acp.editor import SessionEditor
from bridge.config import Config, Provider
from bridge.core import secrets
from bridge.core.handshake import Capabilities
from bridge.errors import NOT_FOUND, EditorError, LoginRequired
from bridge.narrowing import Narrowed, narrowed
from bridge.session import Prompt, Session
from bridge.store import Store
from tools.frozen import frozen

RequestId = str | int | None


@frozen
class Answered:
    """A result, and what is sent as soon as it is out."""

    result: Mapping[str, object]
    after: Callable[[], None] | None = None


@frozen
class Pending:
    """A result that comes later, from a task of its own."""

    run: Callable[[], Awaitable[Answered]]
    scope: CancelScope | None = None
    """Ends it when the editor gives the request up; None: it is finished all the same."""
    given_up: Answered | None = None
    """The answer where it was ended so; None: an error says it."""


async def _no_key(_: Provider) -> None:
    """Find no key: nothing is run here."""


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
    attend: Callable[[Session, SessionEditor, bool], Awaitable[None]]
    """Runs beside a session from its start: loads what its first prompt needs, keeps its servers.

    The truth value says whether it may begin with heavy work at once.
    """
    discover: Callable[[Config], None]
    """Called with a new session: the servers may be asked for their models."""
    forget_keys: Callable[[], None] = lambda: None
    """Called at a logout and at a login: what is known of keys is to be found out anew."""
    find_key: Callable[[Provider], Awaitable[None]] = _no_key
    """Runs the program that prints a server's key; LoginRequired or ConfigError."""
    is_logged_out: bool = False
    """The person logged out: nothing goes to a model until they log in."""
    machine_file: Path | None = None
    """Settings for everybody on this machine, which can only narrow those of the user."""
    user_folder: str | None = None
    """Where the user's own instructions, skills and commands are; None: nowhere."""
    is_folder: Callable[[str], bool] = os.path.isdir
    """Whether a session can be opened at this path."""
    can: Capabilities = field(default_factory=Capabilities)
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    closing: dict[str, Session] = field(default_factory=dict[str, Session])
    """Those that the editor has closed, and whose last work is still ending."""
    scopes: dict[RequestId, CancelScope] = field(default_factory=dict[RequestId, CancelScope])
    """What ends each request that the editor may give up."""
    printed_keys: set[str] = field(default_factory=set[str])
    """What programs printed that the configuration names for it."""

    def demand_login(self) -> None:
        """LoginRequired where the person has logged out."""
        if self.is_logged_out:
            raise LoginRequired("you have logged out: log in (authenticate) to go on")

    def settings(self, cwd: str) -> Narrowed:
        """The configuration for sessions in this folder; ConfigError."""
        return narrowed(self.load_config(), self.machine_file, cwd)

    def session(self, session: str) -> Session:
        """An open session; EditorError for an id that is none."""
        found = self.sessions.get(session)
        if found is None:
            raise not_open(session)
        return found

    def leave(self, session: str) -> Session | None:
        """Let the editor use a session no more; None if it is not open. To be ended next."""
        left = self.sessions.pop(session, None)
        if left is not None:
            self.closing[session] = left
        return left

    async def end(self, session: Session) -> None:
        """End a session that was left."""
        try:
            await session.end()
        finally:
            self.closing.pop(session.id, None)

    async def loaded(self, session: Session) -> None:
        """Wait until all of a session is read; EditorError where that came to nothing."""
        if session.loading is not None:
            await session.loading.ended.wait()
            if session.is_closed:
                raise not_open(session.id)

    @property
    def is_busy(self) -> bool:
        """Some prompt is being answered."""
        return any(session.prompts for session in self.sessions.values())

    def editor(self, session: Session) -> SessionEditor:
        """The editor, for one session."""
        return SessionEditor(self.connection, self.can, session.id)

    def hide_secrets(self, session: Session) -> None:
        """Keep what is secret now out of the session's file."""
        pairs = (
            pair
            for server in session.servers
            for pair in (*getattr(server, "env", ()), *getattr(server, "headers", ()))
        )
        known = (*session.config.secrets(self.environment), *self.printed_keys)
        session.journal.hide(secrets.loaded((*known, *(pair.value for pair in pairs))))

    def hide_key(self, key: str) -> None:
        """Keep a key that was printed just now out of every session's file."""
        self.printed_keys.add(key)
        for session in self.sessions.values():
            self.hide_secrets(session)

    def open_sessions(self) -> list[tuple[Session, SessionEditor]]:
        """Every session, with the editor as it sees it."""
        return [(session, self.editor(session)) for session in self.sessions.values()]

    def close(self) -> None:
        """Close every session: the end of input came."""
        for session in self.sessions.values():
            session.close()


def not_open(session: str) -> EditorError:
    """The answer for a session id that is not open here, whether it is stored or not."""
    return EditorError(
        NOT_FOUND,
        "unknown session: it is not open; load it, or begin a new one",
        {"sessionId": session},
    )
