"""Slash commands that tell of a session or set something in it: text out.

It must not know the table of commands, nor how an answer is shown.
"""

from collections.abc import Iterable

from bridge import log, options
from bridge.config import Model
from bridge.core.rule import Rule
from bridge.errors import EditorError
from bridge.session import Session
from tools.base import Hold

INIT = """\
Look at this project and write an AGENTS.md at its root, for agents like you that see it for the
first time: what it is, how it is laid out, how to build it, run it and test it, and the conventions
that its code follows. Take all of it from what you find, keep it short, and leave out what every
project has. If there is an AGENTS.md already, improve it and keep what is right."""

REVIEW = """\
Review {what}. Look for mistakes first: wrong results, lost data, races, unsafe input, missing error
handling, tests that cannot fail; then for what makes the code harder to read. Read the code around
each change before you judge it. Change nothing. List what you found, the worst first, each with
path:line, what happens, and how to mend it; say so plainly when there is nothing."""


def status(session: Session, hold: Hold) -> str:
    """What is in force, what was used so far, and what the session knows of."""
    model = session.model
    effort = "" if session.effort is None else f", effort {session.effort}"
    return _lines(
        (
            (
                "Model",
                f"{model.name or session.model_key} ({model.provider}/{model.model}){effort}",
            ),
            ("Mode", session.mode),
            ("Permissions", session.permission),
            ("Sandbox", _sandbox(hold)),
            ("Folder", ", ".join((session.cwd, *session.directories))),
            ("Context", _context(session, model)),
            *_environment(session),
            *session.meter.report(),
            ("Instructions from", ", ".join(sorted(session.told_files)) or "no file"),
            ("Own commands", ", ".join(f"/{name}" for name in sorted(session.own_commands))),
            ("MCP servers", session.remote.brief()),
            ("Session", session.id),
            ("Session file", str(session.journal.path or "none: it is not kept")),
        )
    )


def log_file() -> str:
    """Where the log is, and how to have more in it."""
    file = log.place()
    if file is None:
        return "There is no log: the state directory cannot be written to."
    return (
        f"The log is in {file} (level {log.level()}). It holds nothing of your conversations. "
        f"`{log.VARIABLE}=debug` in the agent's environment has more written down."
    )


def _environment(session: Session) -> list[tuple[str, str]]:
    """Where commands have their environment from, if not from the agent."""
    if not session.login.was_asked:
        return []
    changed = ", ".join(session.login.changed) or "nothing"
    return [("Environment of commands", f"that of your login shell, which changes {changed}")]


def _context(session: Session, model: Model) -> str:
    used = session.history.tokens
    if model.context_window is None:
        return f"about {used} tokens; the window is not configured"
    percent = 100 * used // model.context_window
    return f"about {used} of {model.context_window} tokens ({percent} %)"


def _sandbox(hold: Hold) -> str:
    if hold.refusal:
        return hold.refusal
    if hold.reach == "danger-full-access":
        return "none: commands may do all that you may"
    gaps = f": {'; '.join(hold.gaps)}" if hold.gaps else ""
    strength = {"full": "commands are held to", "partial": "commands are partly held to"}
    if hold.strength == "none":
        return f"none{gaps}"
    return f"{strength[hold.strength]} {hold.reach}{gaps}"


def _lines(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {text}" for name, text in rows if text)


def model(session: Session, argument: str) -> str:
    """The models there are; or a switch to the one that is named."""
    models = session.config.models
    if not argument:
        return "\n".join(
            f"- {key}{_in_force(key == session.model_key)}: {one.name or one.model}"
            for key, one in models.items()
        )
    names = {(one.name or key).lower(): key for key, one in models.items()}
    names |= {key.lower(): key for key in models}
    key = argument if argument in models else names.get(argument.lower())
    if key is None:
        return f"Error: unknown model: {argument[:80]}. There are: {', '.join(models)}"
    options.set_option(session, "model", options.model_value(session.config, key))
    return f"The model is now {models[key].name or key}."


def mode(session: Session, argument: str) -> str:
    """The mode in force; or a switch to the one that is named."""
    if not argument:
        return f"The mode is {session.mode}."
    return _set(session, "mode", argument) or f"The mode is now {session.mode}."


def permissions(session: Session, argument: str) -> str:
    """What may be done without asking; or another preset, or an end to what was allowed."""
    word, _, rest = argument.partition(" ")
    if argument == "reset":
        return _forget(session, "")
    if word == "remove" and rest.strip():
        return _forget(session, rest.strip())
    if argument:
        return _set(session, "permission", argument) or f"Permissions: {session.permission}."
    presets = (
        f"- {preset['value']}{_in_force(preset['value'] == session.permission)}: "
        f"{preset['description']}"
        for preset in options.PRESETS
    )
    rules = [
        f"- {rule.sort} `{rule.text}`{' exactly' * rule.exact} ({rule.source})"
        for rule in (*session.answers.rules(), *session.rules)
    ]
    in_force = ["", "Rules, before all that:", *rules] if rules else []
    return "\n".join([*presets, *in_force, *(f"- {remark}" for remark in session.remarks)])


def _forget(session: Session, text: str) -> str:
    """Take back one answer, or all of them."""
    try:
        gone = session.answers.forget(text)
    except OSError as error:
        return f"Error: the stored answers cannot be changed: {error.strerror}"
    if gone:
        return f"{gone} {'answer is' if gone == 1 else 'answers are'} taken back; that asks again."
    source = next((rule.source for rule in session.rules if text in _names(rule)), None)
    if source is not None:
        return f"Error: this rule is not an answer of yours; take it out of {source}"
    return (
        "Error: there is no such answer; /permissions shows all"
        if text
        else "You have given no answer for good."
    )


def _names(rule: Rule) -> tuple[str, str]:
    return rule.text, f"{rule.sort} {rule.text}"


def _in_force(is_it: bool) -> str:  # noqa: FBT001 (said of a value)
    return " (in force)" if is_it else ""


def _set(session: Session, option: str, value: str) -> str | None:
    """Set an option; what is wrong with the value, if it is not offered."""
    try:
        options.set_option(session, option, value)
    except EditorError as error:
        return f"Error: {error}"
    return None
