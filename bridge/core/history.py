"""What the model is sent of the conversation: records in, Responses input items out.

Rule 1: input() is a function of the records added and of the dialect. While the dialect stays, an
earlier input is a prefix of a later one, so that the provider's prompt cache holds.
Rule 2: every call in an input has exactly one output after it, every output its call, and no
reasoning stands without what it led to: servers refuse the whole request otherwise.
Rule 3: what enters is never changed in place.
"""

import hashlib
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, cast

from bridge.core.records import Forgotten, Item, Noted, Prompted, Record, Responded, Returned
from tools.frozen import frozen

INTERRUPTED = "Error: the call was interrupted before it ended; it may have had effects."

_LONGEST_CALL_ID = 64
_CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_OUTPUTS = frozenset(_CALLS.values())

# What of an item another request may carry. Ids and statuses are looked up by servers that keep
# nothing, and not found. A compaction's ciphertext is bound to its id, so it stays whole.
_PORTABLE: dict[str, tuple[str, ...]] = {
    "reasoning": ("type", "summary", "content", "encrypted_content", "signature", "format"),
    "message": ("type", "role", "content", "phase"),
    "function_call": ("type", "call_id", "name", "arguments", "namespace", "caller"),
    "custom_tool_call": ("type", "call_id", "name", "input"),
}


@frozen
class Dialect:
    """How the server at hand wants its own items back."""

    maker: str
    """Provider and model: encrypted reasoning of another maker is left out."""
    replay: Literal["portable", "verbatim"] = "portable"
    reasoning: Literal["encrypted", "content", "both", "none"] = "encrypted"


@frozen
class _Entry:
    prompt: int
    item: Item
    maker: str | None
    """None: ours, not a model's."""


class History:
    """The conversation as the model knows it; owned by one session."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._prompt = 0

    def add(self, record: Record) -> None:
        """Take one more record; kinds that the model does not see change nothing."""
        match record:
            case Prompted(prompt=number, content=content, forwarded=True):
                self._prompt = number
                self._append({"type": "message", "role": "user", "content": list(content)})
            case Noted(text=text):
                part = {"type": "input_text", "text": text}
                self._append({"type": "message", "role": "user", "content": [part]})
            case Responded(items=items, maker=maker):
                for item in items:
                    self._append(item, maker)
            case Returned(call_id=call_id, custom=custom, text=text):
                kind = _CALLS["custom_tool_call" if custom else "function_call"]
                self._append({"type": kind, "call_id": call_id, "output": text})
            case Forgotten(prompt=number):
                self._entries = [entry for entry in self._entries if entry.prompt < number]
            case _:
                pass

    def input(self, dialect: Dialect) -> list[Item]:
        """The conversation so far as input items for a server of this dialect."""
        shaped = (_shape(entry, dialect) for entry in self._entries)
        return list(_paired(_led_on([item for item in shaped if item is not None])))

    def _append(self, item: Item, maker: str | None = None) -> None:
        self._entries.append(_Entry(self._prompt, item, maker))


def user_content(blocks: Iterable[Item]) -> tuple[Item, ...]:
    """The content blocks of a prompt as input parts; neighbouring texts are one part."""
    parts: list[Item] = []
    text = ""
    for block in blocks:
        piece = _part(block)
        if isinstance(piece, str):
            text += piece
            continue
        if text:
            parts.append({"type": "input_text", "text": text})
            text = ""
        parts.append(piece)
    if text:
        parts.append({"type": "input_text", "text": text})
    return tuple(parts)


def plain_text(content: Iterable[Item]) -> str:
    """The text of input parts, for titles and slash commands."""
    return "".join(str(part["text"]) for part in content if part.get("type") == "input_text")


def _part(block: Item) -> str | Item:
    """One content block: text to be joined with its neighbours, or a part of its own."""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "resource_link":
            return f'\n[resource_link name="{block.get("name")}" uri="{block.get("uri")}"]\n'
        case "image":
            return _image(block.get("mimeType"), block.get("data"))
        case "resource":
            return _resource(cast("Item", block.get("resource")))
        case _:
            return ""


def _resource(resource: Item) -> str | Item:
    uri, mime = resource.get("uri"), str(resource.get("mimeType") or "")
    text, blob = resource.get("text"), str(resource.get("blob", ""))
    if text is None and mime.startswith("image/"):
        return _image(mime, blob)
    try:
        text = b64decode(blob, validate=True).decode("utf-8") if text is None else text
    except ValueError:
        return f'\n[resource uri="{uri}" holds data of type {mime or "unknown"}, not text]\n'
    return f'\n<resource uri="{uri}">\n{text}\n</resource>\n'


def _image(mime: object, data: object) -> Item:
    return {"type": "input_image", "image_url": f"data:{mime};base64,{data}", "detail": "auto"}


def _shape(entry: _Entry, dialect: Dialect) -> Item | None:
    """The item as this server may see it, or None where it must not."""
    item, kind = entry.item, str(entry.item.get("type", "message"))
    if entry.maker is not None:
        own = entry.maker == dialect.maker
        if kind == "reasoning":
            return _reasoning(item, dialect, own=own)
        if kind not in _PORTABLE:
            return item if own else None
        if dialect.replay == "portable":
            item = _picked(item, kind)
    return _with_short_id(item)


def _reasoning(item: Item, dialect: Dialect, *, own: bool) -> Item | None:
    wanted = dialect.reasoning
    if wanted == "none":
        return None
    shaped = dict(item if dialect.replay == "verbatim" else _picked(item, "reasoning"))
    shaped.setdefault("summary", [])
    if not own or wanted == "content" or not shaped.get("encrypted_content"):
        shaped.pop("encrypted_content", None)
    if wanted == "encrypted" or not shaped.get("content"):
        shaped.pop("content", None)
    # Some routers sign a thought: the signature holds for its text, and only where it was made.
    if not own or "content" not in shaped:
        shaped.pop("signature", None)
    if not own:
        shaped.pop("format", None)
    said = ("summary", "content", "encrypted_content")
    return shaped if any(shaped.get(key) for key in said) else None


def _picked(item: Item, kind: str) -> Item:
    picked = {key: item[key] for key in _PORTABLE[kind] if key in item}
    content = picked.get("content")
    if kind == "message" and isinstance(content, list):
        picked["content"] = [_without_logprobs(part) for part in cast("list[object]", content)]
    return picked


def _without_logprobs(part: object) -> object:
    if not isinstance(part, dict):
        return part
    return {key: value for key, value in cast("Item", part).items() if key != "logprobs"}


def _with_short_id(item: Item) -> Item:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or len(call_id) <= _LONGEST_CALL_ID:
        return item
    digest = hashlib.blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=16)
    return {**item, "call_id": f"call_{digest.hexdigest()}"}


def _led_on(items: Sequence[Item]) -> Iterator[Item]:
    """Leaves out reasoning that is not followed by a message or call of the model's."""
    followed = False
    kept: list[Item] = []
    for item in reversed(items):
        if item.get("type") != "reasoning":
            followed = item.get("role") != "user" and item.get("type") not in _OUTPUTS
        if followed or item.get("type") != "reasoning":
            kept.append(item)
    return reversed(kept)


def _paired(items: Iterable[Item]) -> Iterator[Item]:
    """Gives every call one output, before the next user message at the latest."""
    open_calls: dict[object, str] = {}

    def closing() -> Iterator[Item]:
        for call_id, kind in open_calls.items():
            yield {"type": kind, "call_id": call_id, "output": INTERRUPTED}
        open_calls.clear()

    for item in items:
        kind = str(item.get("type"))
        if kind in _CALLS:
            open_calls[item.get("call_id")] = _CALLS[kind]
        elif kind in _OUTPUTS:
            if open_calls.pop(item.get("call_id"), None) is None:
                continue
        elif item.get("role") == "user":
            yield from closing()
        yield item
    yield from closing()
