"""How sessions begin, come back and end, as the editor asks for it.

Rule 1: nothing is created or opened before everything that was asked is found possible.
Rule 2: a session that is loaded shows the same as it showed live; one that is resumed, nothing.
Rule 3: a session ends after its prompts: they are answered first.
"""

import os
import uuid
from collections import deque
from collections.abc import Callable, Iterator

from bridge import commands, log, options
from bridge.acp import schema
from bridge.acp.agent import Agent, Answered, Pending, not_open
from bridge.core import updates
from bridge.core.records import Opened, Record, Responded
from bridge.errors import INVALID_PARAMS, EditorError
from bridge.session import Session, now
from bridge.store import Summary


def new(agent: Agent, params: schema.NewSessionParams) -> Answered:
    """Open a new session."""
    agent.demand_login()
    cwd, directories = _workspace(params)
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
    session = Session(config, opened, agent.store.create(opened, directories), directories)
    _begin(agent, session, params.mcp_servers)
    return Answered({"sessionId": session.id, **_state(session)}, lambda: _greet(agent, session))


def load(agent: Agent, params: schema.LoadSessionParams) -> Answered:
    """Open a stored session and show all of it."""
    used: list[int] = []

    def show(session: Session, records: Iterator[Record]) -> None:
        editor = agent.editor(session)
        counted = _counted(records, used)
        terminal = agent.can.terminal_output
        for update in updates.replay(
            counted, cwd=session.cwd, terminal=terminal, compactions=agent.can.compaction
        ):
            editor.update(update)
        editor.update(updates.commands(commands.menu()))

    session = _open_again(agent, params, show)

    def after() -> None:
        if used and session.model.context_window is not None:
            editor = agent.editor(session)
            editor.update(updates.usage(used[-1], session.model.context_window, session.cost))
        agent.tasks.start_soon(_attend, agent, session)
        agent.discover(session.config)

    return Answered(_state(session), after)


def resume(agent: Agent, params: schema.ResumeSessionParams) -> Answered:
    """Open a stored session without showing anything of it."""
    # ACP, Session Setup, Resuming a Session: the conversation must not be replayed.
    session = _open_again(agent, params, lambda _, records: deque(records, 0))
    return Answered(_state(session), lambda: _greet(agent, session))


def listed(agent: Agent, params: schema.ListSessionsParams) -> Answered:
    """One page of the stored sessions."""
    cwd = None if params.cwd is None else os.path.normpath(params.cwd)
    page, cursor = agent.store.list(cwd, params.cursor)
    sessions = [_entry(one) for one in page]
    return Answered({"sessions": sessions, **({} if cursor is None else {"nextCursor": cursor})})


def close(agent: Agent, params: schema.SessionParams) -> Pending:
    """Cancel what runs in a session, and give everything free that it holds."""
    session = agent.sessions.pop(params.session_id, None)
    if session is None:
        raise not_open(params.session_id)

    async def run() -> Answered:
        await session.end()
        return Answered({})

    return Pending(run)


def delete(agent: Agent, params: schema.SessionParams) -> Pending:
    """Close a session if it is open, and remove it; one that is unknown is as good as removed."""
    session = agent.sessions.pop(params.session_id, None)

    async def run() -> Answered:
        if session is not None:
            await session.end()
        agent.store.delete(params.session_id)
        return Answered({})

    return Pending(run)


def _open_again(
    agent: Agent,
    params: schema.LoadSessionParams | schema.ResumeSessionParams,
    take: Callable[[Session, Iterator[Record]], object],
) -> Session:
    """A stored session, restored; take gets each record once it is applied."""
    if params.session_id in agent.sessions:
        raise EditorError(
            INVALID_PARAMS, "the session is loaded already", {"sessionId": params.session_id}
        )
    agent.demand_login()
    cwd, directories = _workspace(params)
    config = agent.load_config()
    stored = agent.store.load(params.session_id, directories)
    if stored.opened.cwd != cwd:
        stored.journal.close()
        raise EditorError(
            INVALID_PARAMS,
            f"session cwd mismatch: persisted {stored.opened.cwd}, requested {cwd}",
        )
    session = Session(config, stored.opened, stored.journal, directories)
    try:
        _begin(agent, session, params.mcp_servers)
        take(session, session.restored(stored.records()))
    except BaseException:
        del agent.sessions[session.id]
        session.close()
        raise
    return session


def _begin(agent: Agent, session: Session, servers: list[schema.McpServer]) -> None:
    session.servers = tuple(servers)
    agent.sessions[session.id] = session
    agent.hide_secrets(session)


def _greet(agent: Agent, session: Session) -> None:
    """What a session without history shows, once its id is known to the editor."""
    if session.id in agent.sessions:
        agent.editor(session).update(updates.commands(commands.menu()))
        agent.tasks.start_soon(_attend, agent, session)
    agent.discover(session.config)


async def _attend(agent: Agent, session: Session) -> None:
    """Keep what a session needs beside its prompts, until it is closed."""
    try:
        # While an answer streams, nothing heavy is loaded beside it.
        await agent.attend(session, agent.editor(session), not agent.prompts)
    except Exception as error:  # noqa: BLE001 (the seam: a fault of ours ends what it is in)
        log.fault(error, "session/new")


def _workspace(params: schema.WorkspaceParams) -> tuple[str, tuple[str, ...]]:
    """The session's folder and its further roots; EditorError for one that cannot be used."""
    directories = params.additional_directories
    named = [("cwd", params.cwd)]
    named += [(f"additionalDirectories.{n}", path) for n, path in enumerate(directories)]
    for name, path in named:
        if not os.path.isdir(path):  # noqa: PTH112 (Path.is_dir raises where we may not look)
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


def _counted(records: Iterator[Record], used: list[int]) -> Iterator[Record]:
    """The same records; `used` becomes what the last answer said of the context."""
    for record in records:
        if isinstance(record, Responded) and record.used is not None:
            used[:] = [record.used]
        yield record
