"""Whether two runs say the same: what is not compared, and the first place that differs.

Not compared is what no two runs share (ids of sessions, times, how often the output of a command
was shown) and what every version and machine says in words of its own (its name, the instructions,
the descriptions of tools, what /status and /log tell), which would hide all that comes after it.
"""

from typing import Any, cast

from bridge.core.scrub import scrubbed_values
from bridge.core.wire import object_of, text_of

Line = dict[str, Any]

MISSING = "nothing"
_UNSEEN = frozenset({"notice", "available_commands_update"})
"""Updates that depend on the clock, or on files that no recording holds."""
_TOLD = "n"
"""How the ids of messages of our own begin (core/records.py)."""
_REMOTE = "mcp__"
"""How the names of tools begin that an MCP server offers; none of them runs in a replay."""


def is_compared(message: Line) -> bool:
    """Whether a message of the agent's has to be the same."""
    update = _update(message)
    if not update:
        # What the editor has not saved is part of what tools find.
        return not str(message.get("method")).startswith("fs/")
    if update.get("sessionUpdate") in _UNSEEN or str(update.get("messageId")).startswith(_TOLD):
        return False
    # What a running command printed so far.
    is_glimpse = update.keys() <= {"sessionUpdate", "toolCallId", "content", "_meta"}
    return not (update.get("sessionUpdate") == "tool_call_update" and is_glimpse)


def of_message(message: Line) -> Line:
    """What is compared of a message of the agent's."""
    line = cast("Line", scrubbed_values(message))
    if isinstance(line.get("method"), str):
        line.pop("id", None)
    object_of(line, "result").pop("agentInfo", None)
    update = _update(line)
    update.pop("updatedAt", None)
    object_of(update, "_meta").pop("terminal_output", None)
    return line


def of_body(body: Line) -> Line:
    """What is compared of the body of a request."""
    line = cast("Line", scrubbed_values(body))
    line.pop("instructions", None)
    tools: Any = line.get("tools")
    if isinstance(tools, list):
        named = [str(tool.get("name") or tool.get("type")) for tool in cast("list[Line]", tools)]
        line["tools"] = [name for name in named if not name.startswith(_REMOTE)]
    return line


def difference(wanted: Any, got: Any, place: str = "") -> tuple[str, Any, Any] | None:
    """Where two values differ first, and how they do there; None: they are the same."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        one, other = cast("Line", wanted), cast("Line", got)
        for key in dict.fromkeys((*one, *other)):
            pair = one.get(key, MISSING), other.get(key, MISSING)
            found = difference(*pair, f"{place}.{key}" if place else key)
            if found is not None:
                return found
        return None
    if isinstance(wanted, list) and isinstance(got, list):
        first, second = cast("list[Any]", wanted), cast("list[Any]", got)
        for number, pair in enumerate(zip(first, second, strict=False)):
            found = difference(*pair, f"{place}[{number}]")
            if found is not None:
                return found
        if len(first) != len(second):
            place = f"{place}[{min(len(first), len(second))}]"
            return place, _rest(first, second), _rest(second, first)
        return None
    return None if wanted == got else (place, cast("Any", wanted), got)


def chunk_of(message: Line) -> tuple[tuple[object, ...], str] | None:
    """Which streaming text a message is a piece of, and the piece; None: of none."""
    update = _update(message)
    match update:
        case {"sessionUpdate": str(kind), "content": {"type": "text", "text": str(text)}}:
            return (kind, update.get("messageId")), text
        case _:
            return None


def with_text(message: Line, text: str) -> Line:
    """The same piece with another text."""
    params = message["params"]
    update = params["update"]
    content = {**update["content"], "text": text}
    return {**message, "params": {**params, "update": {**update, "content": content}}}


def session_of(message: Line) -> str:
    """The session that a message is about; empty: none, or it does not say."""
    return text_of(object_of(message, "params"), "sessionId")


def session_in(answer: Line) -> str:
    """The session that an answer opens; empty: none."""
    return text_of(object_of(answer, "result"), "sessionId")


def renamed(value: Any, names: dict[str, str]) -> Any:
    """The value with these names in the place of those, wherever they stand in a text."""
    if isinstance(value, str):
        for old, new in names.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, dict):
        return {key: renamed(item, names) for key, item in cast("Line", value).items()}
    if isinstance(value, list):
        return [renamed(item, names) for item in cast("list[Any]", value)]
    return value


def _rest(values: list[Any], others: list[Any]) -> Any:
    return values[len(others)] if len(values) > len(others) else MISSING


def _update(message: Line) -> Line:
    """What the message updates; empty for other messages."""
    return object_of(object_of(message, "params"), "update")
