"""What the user's side says, as Responses input: content blocks of the editor's in, parts out."""

from base64 import b64decode
from collections.abc import Iterable
from typing import cast

from bridge.core.records import Item

_NO_IMAGE = "[An image stood here, which the model's server does not take.]"


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


def message(text: str, *more: Item) -> Item:
    """A message of the user's side that holds this text, and more parts."""
    part = {"type": "input_text", "text": text}
    return {"type": "message", "role": "user", "content": [part, *more]}


def pictures(content: Iterable[Item]) -> tuple[Item, ...]:
    """The input parts that are pictures."""
    return tuple(part for part in content if part.get("type") == "input_image")


def without_images(item: Item) -> Item:
    """A message of the user's side with a note in the place of every picture."""
    if item.get("role") != "user":
        return item
    parts = cast("list[Item]", item["content"])
    if not any(part["type"] == "input_image" for part in parts):
        return item
    note: Item = {"type": "input_text", "text": _NO_IMAGE}
    return {**item, "content": [note if part["type"] == "input_image" else part for part in parts]}


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
