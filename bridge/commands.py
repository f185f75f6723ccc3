"""Slash commands: what the user types instead of a prompt.

Rule 1: one function and one row of COMMANDS per command; the editor's menu comes from the table,
and from the files of commands that the user and the project bring along.
Rule 2: a command answers with text; what the model is to do afterwards runs in the same turn.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Literal, Protocol

from bridge import own_commands
from bridge import session_commands as telling
from bridge.acp.editor import SessionEditor
from bridge.core import goal as goals
from bridge.core.goal import NO_GOAL, USAGE
from bridge.core.own_command import OwnCommand
from bridge.core.records import GoalChanged
from bridge.session import Session
from tools.base import Files, Shell
from tools.frozen import frozen
from tools.late import pattern

_LINE = pattern(r"/([A-Za-z][A-Za-z0-9_-]*)(?:[ \t\r\n]+(.*))?", re.DOTALL)


class Bench(Protocol):
    """This machine, as far as commands need it."""

    def files_of(self, session: Session, editor: SessionEditor, /) -> Files:
        """The files as this session sees them."""
        ...

    def shell(self, session: Session, /) -> Shell:
        """How commands of this session run."""
        ...


@frozen
class Reply:
    """What a command answers, and how the turn goes on."""

    text: str
    message: str | None = None
    """A message to the model, as if the user had sent it."""
    pursue: bool = False
    """Work on the goal now."""
    compact: str | None = None
    """Compact the conversation, and keep this above all."""
    work: Callable[[SessionEditor, Bench], Awaitable[str]] | None = None
    """What takes its time: files, commands, or a question; gives the text."""

    @property
    def is_for_model(self) -> bool:
        """The model is to do something now."""
        return self.message is not None or self.pursue


@frozen
class Command:
    """One slash command."""

    description: str
    hint: str
    """What may follow the name; empty: nothing."""
    run: Callable[[Session, str], Reply]
    takes_links: bool = False
    """What follows is for the model, links among it too, unless it is one of the words."""
    words: frozenset[str] = frozenset()

    def argument(self, typed: str, with_places: str) -> str:
        """What follows the name, of the text alone or of the text with its links."""
        takes_links = self.takes_links and typed.lower() not in self.words
        return with_places if takes_links else typed


def reply_to(session: Session, text: str, with_places: str) -> Reply | None:
    """The reply to a slash command; None for text that is none and goes to the model.

    with_places: the same text, with the places that the prompt's links lead to.
    """
    typed = _parted(text)
    if typed is None:
        return None
    name, argument = typed
    _, longer = _parted(with_places) or ("", "")
    own = session.own_commands.get(name)
    if own is not None:
        return Reply("", message=own.prompt(longer))
    command = COMMANDS.get(name)
    if command is None:
        return Reply(f"Error: unknown command: {text.split(chr(10), 1)[0].strip()[:200]}")
    return command.run(session, command.argument(argument, longer))


def _parted(text: str) -> tuple[str, str] | None:
    """A command's name and what follows it; None for text that is no command."""
    line = _LINE.fullmatch(text)
    return None if line is None else (line[1], (line[2] or "").strip())


def pauses_goal(text: str) -> bool:
    """Whether this prompt, once its turn comes, pauses the goal: rounds then stop for it."""
    name, argument = _parted(text) or ("", "")
    return (name, argument.lower()) == ("goal", "pause")


def _told(text: Callable[[Session, str], str]) -> Callable[[Session, str], Reply]:
    return lambda session, argument: Reply(text(session, argument))


def _status(session: Session, _argument: str) -> Reply:
    async def work(_editor: SessionEditor, bench: Bench) -> str:
        return telling.status(session, await bench.shell(session).hold())

    return Reply("", work=work)


def _help(session: Session, _argument: str) -> Reply:
    lines = (
        f"- `/{name}{' ' * bool(command.hint)}{command.hint}`: {command.description}"
        for name, command in _all(session)
    )
    return Reply("\n".join([*lines, *session.command_faults]))


def _init(_session: Session, _argument: str) -> Reply:
    return Reply("", message=telling.INIT)


def _review(_session: Session, argument: str) -> Reply:
    what = argument or "the changes of this working tree that are not committed yet"
    return Reply("", message=telling.REVIEW.format(what=what))


def _compact(session: Session, argument: str) -> Reply:
    if not session.history.is_worked_on:
        return Reply("There is nothing to compact yet.")
    return Reply("", compact=argument)


def _plan(session: Session, argument: str) -> Reply:
    if argument.lower() == "off":
        return Reply(_leave_plan_mode(session))
    session.switch("plan")
    text = "Entering plan mode (applies from the next step). Use /plan off to leave."
    return Reply(text, message=argument or None)


def _leave_plan_mode(session: Session) -> str:
    if not session.switch("default"):
        return "Plan mode is already inactive."
    if session.described_mode == "plan":
        return "Leaving plan mode (applies from the next step)."
    return "Plan mode entry cancelled."


def _goal(session: Session, argument: str) -> Reply:
    word, _, rest = argument.partition(" ")
    if not argument:
        return _show_goal(session)
    control = _CONTROLS.get(argument.lower())
    if control is not None:
        return control(session)
    if word.lower() == "edit":
        return _edit_goal(session, rest.strip())
    return _create_goal(session, argument)


def _show_goal(session: Session) -> Reply:
    if session.goal.objective is None:
        return Reply(f"No goal is currently set.\n{USAGE}")
    return Reply(_view(session, "Goal"))


def _create_goal(session: Session, objective: str) -> Reply:
    if session.goal.objective is not None and session.goal.status != "complete":
        return Reply(
            "Error: A goal is already active. Use /goal edit <objective> to change it or "
            "/goal clear before replacing it."
        )
    return _set_goal(session, GoalChanged(objective), "Goal created", pursue=True)


def _edit_goal(session: Session, objective: str) -> Reply:
    if not objective:
        return Reply(f"Error: Goal editing requires a replacement objective. {USAGE}")
    if session.goal.objective is None:
        return _missing("edit")
    return _set_goal(session, replace(session.goal, objective=objective), "Goal updated")


def _pause_goal(session: Session) -> Reply:
    if session.goal.objective is None:
        return _missing("pause")
    session.goal_armed = False
    return _set_goal(session, replace(session.goal, status="paused"), "Goal paused")


def _resume_goal(session: Session) -> Reply:
    if session.goal.objective is None:
        return _missing("resume")
    resumed = replace(session.goal, status="active", blocker="", rounds=0)
    return _set_goal(session, resumed, "Goal resumed", pursue=True)


def _clear_goal(session: Session) -> Reply:
    if session.goal.objective is None:
        return Reply("No goal to clear.")
    session.goal_armed = False
    session.record(NO_GOAL)
    return Reply("Goal cleared.")


def _set_goal(session: Session, goal: GoalChanged, title: str, *, pursue: bool = False) -> Reply:
    session.goal_armed = session.goal_armed or pursue
    session.record(goal)
    return Reply(_view(session, title), pursue=pursue)


def _view(session: Session, title: str) -> str:
    return goals.view(
        session.goal, title, armed=session.goal_armed, most_rounds=session.config.goal_rounds
    )


def _missing(action: str) -> Reply:
    return Reply(f"Error: No goal is currently set; /goal {action} requires one. {USAGE}")


def _log(_session: Session, _argument: str) -> Reply:
    return Reply(telling.log_file())


def _mcp(session: Session, argument: str) -> Reply:
    return Reply(session.remote.view(argument))


_CONTROLS: dict[str, Callable[[Session], Reply]] = {
    "clear": _clear_goal,
    "pause": _pause_goal,
    "resume": _resume_goal,
}
"""Words that are a command when they are the whole argument, and an objective otherwise."""


def _diff(session: Session, _argument: str) -> Reply:
    async def work(editor: SessionEditor, bench: Bench) -> str:
        from bridge.undo import diff  # noqa: PLC0415 (few sessions need it)

        return await diff(session, bench.files_of(session, editor))

    return Reply("", work=work)


def _undo(session: Session, argument: str) -> Reply:
    how = _UNDO.get(argument.lower())
    if how is None:
        return Reply("Error: /undo takes nothing, or one of: files, all.")

    async def work(editor: SessionEditor, bench: Bench) -> str:
        from bridge.undo import undo  # noqa: PLC0415 (few sessions need it)

        return await undo(session, editor, bench.files_of(session, editor), how)

    return Reply("", work=work)


_UNDO: dict[str, Literal["ask", "files", "all"]] = {"": "ask", "files": "files", "all": "all"}

COMMANDS: dict[str, Command] = {
    "compact": Command(
        "Go on from a summary of the conversation", "[what to keep above all]", _compact
    ),
    "diff": Command("Show what this session changed in files", "", _diff),
    "goal": Command(
        "set or view the goal for a long-running task",
        "[<objective>|clear|edit <objective>|pause|resume]",
        _goal,
        takes_links=True,
        words=frozenset({"", "edit", *_CONTROLS}),
    ),
    "help": Command("Show all commands", "", _help),
    "init": Command("Have an AGENTS.md written for this project", "", _init),
    "log": Command("Show where the log file is", "", _log),
    "mode": Command("Show or set the mode", "[default|plan]", _told(telling.mode)),
    "model": Command("Show the models or switch to one", "[model]", _told(telling.model)),
    "permissions": Command(
        "Show or set what may be done without asking",
        "[ask|workspace-write|danger-full-access|remove RULE|reset]",
        _told(telling.permissions),
    ),
    "mcp": Command("Show the MCP servers, and what their tools cost", "[server]", _mcp),
    "plan": Command(
        "Enter or leave plan mode",
        "[off|message]",
        _plan,
        takes_links=True,
        words=frozenset({"", "off"}),
    ),
    "review": Command("Have changes reviewed", "[what]", _review, takes_links=True),
    "status": Command("Show what is in force", "", _status),
    "undo": Command(
        "Take back the file changes of the last prompt, and the conversation if you like",
        "[files|all]",
        _undo,
    ),
}


def find_own(session: Session, user_folder: str | None) -> bool:
    """Look for the user's and the project's commands again; whether there are others now."""
    found = own_commands.find(session.cwd, user_folder, COMMANDS)
    changed = found.commands != session.own_commands
    session.own_commands = found.commands
    session.command_faults = tuple(
        f"{file} is not a command: {why}" for file, why in found.faults.items()
    )
    return changed


def untold_faults(session: Session) -> list[str]:
    """What is wrong with files of commands and was not told yet; it counts as told from now on."""
    untold = [text for text in session.command_faults if text not in session.told_faults]
    session.told_faults.update(untold)
    return untold


def menu(session: Session) -> list[dict[str, object]]:
    """All commands, as the editor lists them."""
    return [_entry(name, command) for name, command in _all(session)]


def _all(session: Session) -> list[tuple[str, Command | OwnCommand]]:
    return sorted({**session.own_commands, **COMMANDS}.items())


def _entry(name: str, command: Command | OwnCommand) -> dict[str, object]:
    entry: dict[str, object] = {"name": name, "description": command.description}
    return {**entry, "input": {"hint": command.hint}} if command.hint else entry
