"""How sessions begin, come back and end, as the editor asks for it.

Rule 1: nothing is created or opened before everything that was asked is found possible.
Rule 2: a session that is loaded shows the same as it showed live; one that is resumed, nothing.
Rule 3: a session ends after its prompts: they are answered first.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from itertools import islice

from anyio.lowlevel import checkpoint

from bridge import commands, log, options
from bridge.acp import schema
from bridge.acp.agent import Agent, Answered, Pending, not_open
from bridge.acp.editor import SessionEditor
from bridge.core import updates
from bridge.core.records import Opened, Record
from bridge.errors import INVALID_PARAMS, EditorError
from bridge.narrowing import Narrowed
from bridge.session import Loading, Session, now
from bridge.store import Summary

_STEPS_AT_ONCE = 32
"""Updates of a load between two looks at what else there is to do."""


def new(agent: Agent, params: schema.WorkspaceParams) -> Answered:
    """Open a new session."""
    agent.demand_login()
    cwd, directories = _workspace(agent, params)
    narrowed = agent.settings(cwd)
    config = narrowed.config
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
    session = Session(config, opened, agent.store.create(opened, directories), directories)
    _begin(agent, session, params.mcp_servers, narrowed)
    return Answered({"sessionId": session.id, **_state(session)}, lambda: _greet(agent, session))


def load(agent: Agent, params: schema.LoadSessionParams) -> Pending:
    """Open a stored session and show all of it."""
    session, records = _open_again(agent, params)
    editor = agent.editor(session)

    def show() -> Iterator[None]:
        for update in updates.replay(
            records,
            cwd=session.cwd,
            terminal=agent.can.terminal_output,
            compactions=agent.can.compaction,
        ):
            editor.update(update)
            yield
        _show_commands(agent, session)

    def after() -> None:
        if session.usage is not None:
            editor.update(session.usage)
        _tell_remarks(session, editor)
        _attend_soon(agent, session)

    return _restoring(agent, session, show(), after)


def resume(agent: Agent, params: schema.LoadSessionParams) -> Pending:
    """Open a stored session without showing anything of it."""
    # ACP, Session Setup, Resuming a Session: the conversation must not be replayed.
    session, records = _open_again(agent, params)
    return _restoring(agent, session, records, lambda: _greet(agent, session))


def listed(agent: Agent, params: schema.ListSessionsParams) -> Answered:
    """One page of the stored sessions."""
    cwd = None if params.cwd is None else os.path.normpath(params.cwd)
    page, cursor = agent.store.list(cwd, params.cursor)
    sessions = [_entry(one) for one in page]
    return Answered({"sessions": sessions, **({} if cursor is None else {"nextCursor": cursor})})


def close(agent: Agent, params: schema.SessionParams) -> Pending:
    """Cancel what runs in a session, and give everything free that it holds."""
    session = agent.leave(params.session_id)
    if session is None:
        raise not_open(params.session_id)

    async def run() -> Answered:
        await agent.end(session)
        return Answered({})

    return Pending(run)


def delete(agent: Agent, params: schema.SessionParams) -> Pending:
    """Close a session if it is open, and remove it; one that is unknown is as good as removed."""
    closing = agent.closing.get(params.session_id)
    session = agent.leave(params.session_id)

    async def run() -> Answered:
        if session is not None:
            await agent.end(session)
        elif closing is not None:
            await closing.closed.wait()
        agent.store.delete(params.session_id)
        return Answered({})

    return Pending(run)


def _open_again(agent: Agent, params: schema.LoadSessionParams) -> tuple[Session, Iterator[Record]]:
    """A stored session, and its records, each of which is applied as it is taken."""
    if params.session_id in agent.sessions:
        raise EditorError(
            INVALID_PARAMS, "the session is loaded already", {"sessionId": params.session_id}
        )
    agent.demand_login()
    cwd, directories = _workspace(agent, params)
    narrowed = agent.settings(cwd)
    stored = agent.store.load(params.session_id, directories)
    if stored.opened.cwd != cwd:
        stored.journal.close()
        raise EditorError(
            INVALID_PARAMS,
            f"session cwd mismatch: persisted {stored.opened.cwd}, requested {cwd}",
        )
    session = Session(narrowed.config, stored.opened, stored.journal, directories)
    try:
        _begin(agent, session, params.mcp_servers, narrowed)
    except BaseException:
        agent.sessions.pop(session.id, None)
        session.close()
        raise
    return session, session.restored(stored.records())


def _restoring(
    agent: Agent, session: Session, steps: Iterator[object], after: Callable[[], None]
) -> Pending:
    """Restores a session step by step: a slow editor is waited for, and others are heard."""
    session.loading = loading = Loading()
    editor = agent.editor(session)

    async def run() -> Answered:
        try:
            is_over = False
            while not is_over:
                with agent.connection.together():
                    is_over = len(list(islice(steps, _STEPS_AT_ONCE))) < _STEPS_AT_ONCE
                await editor.room()
                await checkpoint()
        except BaseException:
            agent.sessions.pop(session.id, None)
            session.cancel()
            session.close()
            raise
        finally:
            session.loading = None
            loading.ended.set()
        return Answered(_state(session), after)

    return Pending(run, loading.scope)


def _begin(
    agent: Agent, session: Session, servers: list[schema.McpServer], narrowed: Narrowed
) -> None:
    session.servers = tuple(servers)
    session.rules, session.remarks = narrowed.rules, narrowed.remarks
    session.answers = agent.store.answers(session.cwd)
    agent.sessions[session.id] = session
    agent.hide_secrets(session)


def _greet(agent: Agent, session: Session) -> None:
    """What a session without history shows, once its id is known to the editor."""
    if not session.is_closed:
        _show_commands(agent, session)
        _tell_remarks(session, agent.editor(session))
    _attend_soon(agent, session)


def _show_commands(agent: Agent, session: Session) -> None:
    editor = agent.editor(session)
    commands.find_own(session, agent.user_folder)
    editor.update(updates.commands(commands.menu(session)))
    if agent.can.notices:
        for text in commands.untold_faults(session):
            editor.notice("warning", text)


def _attend_soon(agent: Agent, session: Session) -> None:
    if session.id in agent.sessions:
        agent.tasks.start_soon(_attend, agent, session)
    agent.discover(session.config)


def _tell_remarks(session: Session, editor: SessionEditor) -> None:
    for remark in session.remarks:
        editor.notice("warning", remark)


async def _attend(agent: Agent, session: Session) -> None:
    """Keep what a session needs beside its prompts, until it is closed."""
    try:
        # While an answer streams, nothing heavy is loaded beside it.
        await agent.attend(session, agent.editor(session), not agent.is_busy)
    except Exception as error:  # noqa: BLE001 (the seam: a fault of ours ends what it is in)
        log.fault(error, "session/new")


def _workspace(agent: Agent, params: schema.WorkspaceParams) -> tuple[str, tuple[str, ...]]:
    """The session's folder and its further roots; EditorError for one that cannot be used."""
    directories = params.additional_directories
    named = [("cwd", params.cwd)]
    named += [(f"additionalDirectories.{n}", path) for n, path in enumerate(directories)]
    for name, path in named:
        if not agent.is_folder(path):
            # Editors start us where the project is, which may be another machine than theirs.
            raise EditorError(
                INVALID_PARAMS,
                f"{name}: there is no folder {path[:200]} on {os.uname().nodename}, where this "
                "agent runs; open one that is there, or install the agent where the project is",
            )
    return os.path.normpath(params.cwd), tuple(map(os.path.normpath, directories))


def _state(session: Session) -> dict[str, object]:
    return {"modes": options.modes(session), "configOptions": options.all_options(session)}


def _entry(summary: Summary) -> dict[str, object]:
    label = summary.label
    entry: dict[str, object] = {
        "sessionId": label.session,
        "cwd": label.cwd,
        "updatedAt": summary.updated_at,
    }
    if label.title is not None:
        entry["title"] = label.title
    if label.directories:
        entry["additionalDirectories"] = list(label.directories)
    return entry
