"""What the editor is shown: cards, texts and results in; `session/update` objects, out.

Rule 1: live and loaded sessions are shown by the same functions of the same records.
Rule 2: nothing that is null is sent; rawInput and rawOutput are objects.
Rule 3: long texts are split over chunks; what cannot be split is cut in the middle, and says so.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from bridge.core.history import INTERRUPTED
from bridge.core.records import (
    Announced,
    Compacted,
    Cost,
    Hosted,
    Item,
    Planned,
    Prompted,
    Record,
    Responded,
    Returned,
    SaidText,
    Titled,
    Told,
)
from bridge.core.wire import cut, dump, load_object
from tools.base import Attached, Change, Console, Place, Shown, Text
from tools.hunks import hunks

Update: TypeAlias = dict[str, Any]

LONGEST_CHUNK = 150_000
"""Characters of one text chunk: under 1 MiB on the wire even where each takes six bytes."""
LONGEST_LINE = 1_000_000
"""Bytes: some clients stop reading at long lines."""
_LONGEST_ASIDE = 1000
"""Characters of a text that stands beside what it is about."""
_LONGEST_REPEATED = 16 * 1024
"""Characters of an argument that a question shows a second time."""
WHOLE_DIFF = 64 * 1024
"""Bytes up to which a diff carries both whole texts."""

_CONTEXT_LINES = 3
_COMPACTED = "The conversation was compacted: the model goes on from a summary of it.\n\n"
_CHUNKS = {"message": "agent_message_chunk", "thought": "agent_thought_chunk"}


def chunk(role: Literal["message", "thought"], message: str, text: str) -> Iterator[Update]:
    """Text under one message id, in pieces a client can take."""
    for start in range(0, len(text), LONGEST_CHUNK):
        yield {
            "sessionUpdate": _CHUNKS[role],
            "content": {"type": "text", "text": text[start : start + LONGEST_CHUNK]},
            "messageId": message,
        }


def announcement(call: Announced, *, cwd: str, terminal: bool) -> Update:
    """The first word of a call; `terminal`: the client shows commands in a terminal card."""
    card, card_id = call.card, call.card_id
    update: Update = {
        "sessionUpdate": "tool_call",
        "toolCallId": card_id,
        "title": _title(call),
        "name": call.name,
        "kind": card.kind,
        "status": "pending",
        "rawInput": raw_input(call.arguments),
    }
    if card.places:
        update["locations"] = [_location(place) for place in card.places]
    if terminal and card.kind == "execute":
        # A terminal block beside other blocks shows no widget in the client that invented it.
        update["content"] = [{"type": "terminal", "terminalId": card_id}]
        update["_meta"] = {"terminal_info": {"terminal_id": card_id, "cwd": cwd}}
    elif shown := [one for one in card.shown if not _is_long(one)]:
        update["content"] = content(shown)
    return update


def _title(call: Announced) -> str:
    """What stands on the card: some clients refuse one without a title, as of a blank command."""
    titles = (call.card.title, call.name)
    return next((title for title in titles if title.strip()), "Call without a name")


def renewal(call: Announced, *, cwd: str, terminal: bool) -> Update:
    """The whole card once more, for a call that was announced before it was complete."""
    update = announcement(call, cwd=cwd, terminal=terminal)
    return {**update, "sessionUpdate": "tool_call_update"}


def question(call: Announced, shown: tuple[Shown, ...] | None, reason: str) -> Update:
    """The call as a permission dialog shows it: complete, since some do not know the card."""
    update = announcement(call, cwd="", terminal=False)
    update["content"] = content((*(call.card.shown if shown is None else shown), Text(reason)))
    update["rawInput"] = _unrepeated(update["rawInput"], update["content"])
    del update["sessionUpdate"], update["name"]
    return fitted(update)


def progress(card_id: str, **changed: object) -> Update:
    """A change of a call that goes on."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": card_id, **changed}


def printed(card_id: str, text: str, *, terminal: bool) -> Update:
    """Output of a running command: appended in a terminal card, else the tail that stands now."""
    if terminal:
        return progress(card_id, _meta={"terminal_output": {"terminal_id": card_id, "data": text}})
    return progress(card_id, content=content((Console(text),)))


def outcome(returned: Returned, *, execute: bool, terminal: bool, streamed: bool = False) -> Update:
    """The last word of a call; `streamed`: the terminal card has the output already."""
    shown = returned.shown
    if shown is None:
        shown = ((Console if execute else Text)(returned.text),)
    update = progress(returned.card_id, status="completed" if returned.ok else "failed")
    if returned.title is not None:
        update["title"] = returned.title
    data = {"output": returned.text} if returned.data is None else dict(returned.data)
    update["rawOutput"] = data
    if execute and terminal:
        update["_meta"] = _terminal_end(returned.card_id, () if streamed else shown, data)
    else:
        update["content"] = content(shown)
    return update


def hosted_begin(call: Announced) -> Update:
    """The first word of a call that the provider makes itself, and is making."""
    return {**announcement(call, cwd="", terminal=False), "status": "in_progress"}


def hosted_end(hosted: Hosted) -> Update:
    """The last word of such a call, with all that is known of it only now."""
    call, text = hosted.call, "\n".join(one.text for one in hosted.shown)
    end = Returned(
        call.card_id, call.call_id, custom=False, text=text, ok=hosted.ok, shown=hosted.shown
    )
    known = announcement(call, cwd="", terminal=False)
    more = {key: known[key] for key in ("title", "kind", "rawInput")}
    return {**outcome(end, execute=False, terminal=False), **more}


def content(shown: Iterable[Shown]) -> list[Update]:
    """Blocks of a tool call."""
    return [block for one in shown for block in _blocks(one)]


def raw_input(arguments: str) -> Mapping[str, object]:
    """The arguments as an object, whatever the model sent."""
    if not arguments.strip():
        return {}
    try:
        return load_object(arguments)
    except ValueError:
        return {"arguments": arguments}


def title(record: Titled) -> Update:
    """The session's title."""
    return {"sessionUpdate": "session_info_update", "title": record.title, "updatedAt": record.at}


def usage(used: int, size: int, cost: Cost | None = None) -> Update:
    """Tokens in the context now, the window they must fit, and what the session has cost."""
    update: Update = {"sessionUpdate": "usage_update", "used": used, "size": size}
    if cost is not None:
        update["cost"] = {"amount": cost.amount, "currency": cost.currency}
    return update


def mode(current: str) -> Update:
    """The mode in force."""
    return {"sessionUpdate": "current_mode_update", "currentModeId": current}


def plan(record: Planned) -> Update:
    """The plan: always the complete list, which replaces what the client shows."""
    entries = [
        {"content": step.content, "priority": "medium", "status": step.status}
        for step in record.steps
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def options(all_options: Sequence[Update]) -> Update:
    """All options with their current values."""
    return {"sessionUpdate": "config_option_update", "configOptions": list(all_options)}


def commands(available: Sequence[Update]) -> Update:
    """All slash commands."""
    return {"sessionUpdate": "available_commands_update", "availableCommands": list(available)}


def compaction(number: int, status: str, **more: object) -> Update:
    """A compaction, for clients that know what it is."""
    return {
        "sessionUpdate": "compaction_update",
        "compactionId": f"c{number}",
        "status": status,
        **more,
    }


def compacted(record: Compacted, *, known: bool) -> Iterator[Update]:
    """The end of a compaction; known: the client knows compactions, others get a line of text."""
    if known:
        summary = [{"type": "text", "text": record.summary}]
        yield compaction(record.compaction, "completed", summary=summary)
    else:
        yield from chunk("message", f"c{record.compaction}", _COMPACTED)


def notice(severity: Literal["info", "warning", "error"], text: str) -> Update:
    """A remark beside the conversation, for clients that take notices."""
    return {"sessionUpdate": "notice", "severity": severity, "title": text}


def replay(
    records: Iterable[Record], *, cwd: str, terminal: bool, compactions: bool = False
) -> Iterator[Update]:
    """The whole conversation, as it looked; calls that never ended end as interrupted.

    terminal, compactions: the client shows commands in a terminal card, and compactions as such.
    """
    open_calls: dict[str, Announced] = {}
    planned: Planned | None = None
    for record in records:
        match record:
            case Prompted(blocks=blocks):
                yield from (_user_chunk(block) for block in blocks)
            case Responded(seen=seen):
                open_calls |= {one.card_id: one for one in seen if isinstance(one, Announced)}
                yield from _seen_again(seen, cwd=cwd, terminal=terminal)
            case Returned(card_id=card_id):
                call = open_calls.pop(card_id, None)
                execute = call is not None and call.card.kind == "execute"
                yield outcome(record, execute=execute, terminal=terminal)
            case Told(message=message, text=text):
                yield from chunk("message", message, text)
            case Titled():
                yield title(record)
            case Compacted():
                yield from compacted(record, known=compactions)
            case Planned():
                planned = record
            case _:
                pass
    for card_id in open_calls:
        yield progress(card_id, status="failed", content=content((Text(INTERRUPTED),)))
    if planned is not None and planned.steps:
        yield plan(planned)


def fitted(update: Update) -> Update:
    """The update with its longest strings cut in the middle, until it fits on a line."""
    longest = LONGEST_LINE // 8
    while len(dump(update)) > LONGEST_LINE and longest > 1:
        update = cut(update, longest)
        longest //= 2
    return update


def aside(text: str) -> str:
    """A text that is not what matters, without its middle where it is long."""
    return cut(text, _LONGEST_ASIDE)


def _unrepeated(arguments: Mapping[str, object], blocks: Iterable[Update]) -> Update:
    """The arguments, without the middle of long ones that stand whole in one of the blocks."""
    shown = [
        text
        for block in blocks
        for text in (*block.values(), *block.get("content", {}).values())
        if isinstance(text, str)
    ]
    return {
        name: cut(value, _LONGEST_REPEATED)
        if isinstance(value, str) and any(value in text for text in shown)
        else value
        for name, value in arguments.items()
    }


def _seen_again(
    seen: Iterable[SaidText | Announced | Hosted], *, cwd: str, terminal: bool
) -> Iterator[Update]:
    for one in seen:
        match one:
            case SaidText():
                yield from chunk(one.role, one.message, one.text)
            case Announced():
                yield announcement(one, cwd=cwd, terminal=terminal)
            case Hosted():  # pragma: no branch (every kind has its case)
                yield hosted_begin(one.call)
                yield hosted_end(one)


def _blocks(shown: Shown) -> list[Update]:
    match shown:
        case Text(text=text):
            return [_text_block(text)]
        case Console(text=text):
            return [_text_block(fenced(text))]
        case Change():
            return _diffs(shown)
        case Attached(block=block):
            return [{"type": "content", "content": dict(block)}]


def _is_long(shown: Shown) -> bool:
    """A change that its announcement leaves out: it stands in rawInput, and comes once made."""
    return isinstance(shown, Change) and _size(shown.new) > WHOLE_DIFF


def fenced(text: str, language: str = "console") -> str:
    """The text, such as console output, as a code block whose fence nothing in it can close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _text_block(text: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _diffs(change: Change) -> list[Update]:
    old, new = change.old, change.new
    if old is None or max(_size(old), _size(new)) <= WHOLE_DIFF:
        return [_diff(change.path, old, new)]
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    return [
        _diff(change.path, "".join(before[first:last]), "".join(after[to:end]))
        for first, last, to, end in hunks(before, after, _CONTEXT_LINES)
    ]


def _diff(path: str, old: str | None, new: str) -> Update:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _location(place: Place) -> Update:
    if place.line is None:
        return {"path": place.path}
    return {"path": place.path, "line": place.line}


def _user_chunk(block: Item) -> Update:
    holder = cast("Item", block.get("resource", block))
    if max(len(str(holder.get(key, ""))) for key in ("data", "blob")) > LONGEST_LINE // 2:
        name = holder.get("uri") or holder.get("mimeType")
        line = f"[{block.get('type')} {name}, too big to show again]"
        block = {"type": "text", "text": line}
    return {"sessionUpdate": "user_message_chunk", "content": dict(block)}


def _terminal_end(card_id: str, shown: Iterable[Shown], data: Mapping[str, object]) -> Update:
    ended: Update = {"terminal_id": card_id}
    for ours, theirs in (("exitCode", "exit_code"), ("signal", "signal")):
        if ours in data:
            ended[theirs] = data[ours]
    text = "\n".join(one.text for one in shown if isinstance(one, Text | Console))
    printed: Update = {"terminal_output": {"terminal_id": card_id, "data": text}} if text else {}
    return {**printed, "terminal_exit": ended}
