"""A stored conversation for people and other programs: updates in, entries or Markdown out.

Rule 1: it shows what the editor was shown, and nothing of what only the model was sent.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias, cast

from bridge.core.updates import Update, fenced
from tools.hunks import unified

Entry: TypeAlias = dict[str, Any]
"""role: user, thought, assistant or tool; text, or what is known of the call."""

_ROLES = {
    "user_message_chunk": "user",
    "agent_thought_chunk": "thought",
    "agent_message_chunk": "assistant",
}
_CARD = ("title", "kind", "status", "rawInput", "rawOutput", "content")


def entries(updates: Iterable[Update]) -> list[Entry]:
    """The conversation, each text whole and each call as it stood in the end."""
    found: list[Entry] = []
    calls: dict[str, Entry] = {}
    last: tuple[str, object] | None = None
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in _ROLES:
            place = (kind, update.get("messageId"))
            if place != last:
                found.append({"role": _ROLES[kind], "text": ""})
            found[-1]["text"] += _text(update["content"])
            last = place
        elif "toolCallId" in update:
            last = None
            if update["toolCallId"] not in calls:
                calls[update["toolCallId"]] = {"role": "tool"}
                found.append(calls[update["toolCallId"]])
            calls[update["toolCallId"]] |= {key: update[key] for key in _CARD if key in update}
    return found


def markdown(title: str, facts: Iterable[str], conversation: Iterable[Entry]) -> str:
    """The conversation as one Markdown document."""
    parts = [f"# {title}", "\n".join(f"- {fact}" for fact in facts)]
    for entry in conversation:
        parts += _section(entry)
    return "\n\n".join(parts) + "\n"


def _section(entry: Entry) -> Iterator[str]:
    match entry["role"]:
        case "user":
            yield "## You"
            yield entry["text"].strip()
        case "thought":
            yield "\n".join(f"> {line}".rstrip() for line in entry["text"].strip().splitlines())
        case "assistant":
            yield entry["text"].strip()
        case _:
            yield f"### {entry.get('title', 'Call')} ({entry.get('status')})"
            for block in cast("list[Update]", entry.get("content", [])):
                yield _block(block)


def _block(block: Update) -> str:
    if block["type"] == "diff":
        return fenced(_diff(block), "diff")
    text = _text(cast("Update", block.get("content", {})))
    return text if text.startswith("```") else fenced(text, "")


def _diff(block: Update) -> str:
    old = (block.get("oldText") or "").splitlines()
    path, new = block["path"], block["newText"].splitlines()
    return "\n".join(unified(old, new, path, path))


def _text(content: Update) -> str:
    match content:
        case {"text": str(text)}:
            return text
        case {"resource": {"uri": uri}} | {"uri": uri}:
            return f"\n[{uri}]\n"
        case _:
            return f"\n[{content.get('type')}]\n"
