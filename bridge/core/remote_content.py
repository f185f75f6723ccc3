"""What a tool of an MCP server answered: content blocks in; text for the model, blocks for cards.

The blocks of MCP and of ACP have the same form (ACP, Content), so that most go through as they are.

Rule 1: of each block only the keys that both protocols name go on.
Rule 2: what is too big for a line of the editor's, or for the model, is named instead, or cut.
Rule 3: the model gets the pictures that it takes; of others, and of sound, it is told that the
person sees them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from bridge.core.content import decoded, link_told, plain, resource_told
from bridge.core.records import Item
from bridge.core.wire import ends
from tools import filetype
from tools.base import Attached, Media, Result, Shown, Text
from tools.frozen import frozen

MOST_DATA = 600_000
"""Characters of pictures, sound and files on one card: a line of the editor's has to hold them."""

MOST_PICTURE = 8_000_000
"""Characters of one picture that the model gets."""

MOST_TEXT = 64 * 1024
"""Characters of one answer that the model gets."""

_LINK = ("uri", "name", "title", "description", "mimeType", "size")


@frozen
class Output:
    """What a server answered to a call."""

    blocks: tuple[Item, ...] = ()
    structured: object = None
    """The same as JSON data, from servers that give it."""
    failed: bool = False


def result(output: Output, takes: frozenset[str] = frozenset()) -> Result:
    """The answer as the result of the call; takes: what the model takes beside text."""
    media = [one for block in output.blocks if (one := _media(block, takes)) is not None]
    text = "\n".join(filter(None, (_told(block, takes) for block in output.blocks)))
    if not text and output.structured is not None:
        text = json.dumps(output.structured, ensure_ascii=False)
    text = cut(text or ("(see the picture)" if media else "(no output)"))
    shown = tuple(_shown(output.blocks)) or (Text(text),)
    only_text = shown == (Text(text),)
    return Result(
        text, ok=not output.failed, shown=None if only_text else shown, media=tuple(media)
    )


def cut(text: str) -> str:
    """The text, or its beginning and its end with a mark between them."""
    if len(text) <= MOST_TEXT:
        return text
    head, tail = MOST_TEXT * 3 // 8, MOST_TEXT * 5 // 8
    return ends(text, head, tail)


def _media(block: Item, takes: frozenset[str]) -> Media | None:
    """The picture that a block is, if the model takes it."""
    if block.get("type") != "image" or len(str(block.get("data"))) > MOST_PICTURE:
        return None
    data = decoded(block.get("data"))
    kind = None if data is None else filetype.kind(data)
    return None if kind is None or kind not in takes else Media(kind, plain(block["data"]))


def _told(block: Item, takes: frozenset[str]) -> str:
    """The block as the model reads it."""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "resource_link":
            return link_told(block)
        case "resource":
            return resource_told(_mapping(block.get("resource")))
        case "image" if _media(block, takes) is not None:
            return ""
        case kind:
            return f"[{kind} of type {block.get('mimeType', 'unknown')}, shown to the user]"


def _shown(blocks: Iterable[Item]) -> Iterable[Shown]:
    """The blocks as the card shows them; neighbouring texts stay apart."""
    room = MOST_DATA
    for block in blocks:
        clean = _clean(block)
        size = len(json.dumps(clean))
        if clean.get("type") == "text":
            yield Text(cut(str(clean["text"])))
        elif not clean or size > room:
            yield Text(_unshown(block))
        else:
            room -= size
            yield Attached(clean)


def _clean(block: Item) -> dict[str, object]:
    """The block in the form that the editor's protocol wants; empty where it has none."""
    match block.get("type"):
        case "text":
            return {"type": "text", "text": str(block.get("text", ""))}
        case "image" | "audio":
            return _picked(block, str(block["type"]), ("data", "mimeType"), needed=2)
        case "resource_link":
            return _picked(block, "resource_link", _LINK, needed=2)
        case "resource":
            inner = _mapping(block.get("resource"))
            content = "text" if "text" in inner else "blob"
            resource = _picked(inner, "", ("uri", content, "mimeType"), needed=2)
            return {"type": "resource", "resource": resource} if resource else {}
        case _:
            return {}


def _picked(block: Item, kind: str, keys: Sequence[str], *, needed: int) -> dict[str, object]:
    """These keys; nothing where one of the first `needed` is missing."""
    picked = {key: block[key] for key in keys if block.get(key) is not None}
    if any(key not in picked for key in keys[:needed]):
        return {}
    return {"type": kind, **picked} if kind else picked


def _unshown(block: Item) -> str:
    inner = _mapping(block.get("resource"))
    name = block.get("uri") or inner.get("uri") or block.get("mimeType") or "unknown"
    return f"[{block.get('type')} {name}, too big or too strange to be shown]"


def _mapping(value: object) -> Item:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
