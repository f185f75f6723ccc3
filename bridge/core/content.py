"""What the user's side says, as Responses input: content blocks of the editor's in, parts out.

Rule 1: what a block holds is told by its bytes: the type that a client names may be wrong.
Rule 2: the parts do not depend on the model. What a model does not take is a note in its place
when a request to it is made.
"""

import re
from base64 import b64decode
from collections.abc import Iterable
from contextlib import suppress
from typing import cast
from urllib.parse import unquote

from bridge.core.records import Item
from tools import filetype
from tools.base import Media

MOST_DATA = 20 * 1024 * 1024
"""Bytes of one picture or PDF of the user's."""

_NO_IMAGE = "[An image stood here, which the model's server does not take.]"
_NO_FILE = "[The file {} stood here, which the model's server does not take.]"

_BEGINNING = 64
"""Characters of base64 that tell the type of a file."""

_MEDIA = frozenset({"input_image", "input_file"})
"""Types of parts that are no text."""


def unfit(block: Item, *, images: bool) -> str | None:
    """Why a block must not be sent to a model that takes images, or takes none; None: it may."""
    match block.get("type"):
        case "text" | "resource_link":
            return None
        case "image":
            return _unfit_image(decoded(block.get("data")), images=images)
        case "resource":
            data = decoded(cast("Item", block["resource"]).get("blob"))
            is_image = data is not None and filetype.kind(data) in filetype.PICTURES
            return _unfit_image(data, images=images) if is_image else None
        case _:
            return "not supported"


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
            parts.append(_text(text))
            text = ""
        parts.append(piece)
    if text:
        parts.append(_text(text))
    return tuple(parts)


def message(text: str, *more: Item) -> Item:
    """A message of the user's side that holds this text, and more parts."""
    return {"type": "message", "role": "user", "content": [_text(text), *more]}


def output(text: str, media: Iterable[Item]) -> str | list[Item]:
    """What a call gave; without media it is plain text, which every server takes."""
    parts = list(media)
    return [_text(text), *parts] if parts else text


def attached(media: Media) -> Item:
    """A picture or a PDF as an input part."""
    data = f"data:{media.kind};base64,{media.data}"
    if media.kind in filetype.PICTURES:
        return {"type": "input_image", "image_url": data, "detail": "auto"}
    return {"type": "input_file", "filename": media.name, "file_data": data}


def attachments(content: Iterable[Item]) -> tuple[Item, ...]:
    """The input parts that are no text."""
    return tuple(part for part in content if part.get("type") in _MEDIA)


def media_of(item: Item) -> tuple[Item, ...]:
    """The pictures and files in a message of the user's side, or in the output of a call."""
    return attachments(_parts_of(item)[1])


def without_media(item: Item, *, images: bool = False, files: bool = False) -> Item:
    """The item with notes in the place of pictures and files, as far as they are not taken."""
    kept = {"input_image": images, "input_file": files}
    key, parts = _parts_of(item)
    if all(kept.get(str(part["type"]), True) for part in parts):
        return item
    left = [part if kept.get(str(part["type"]), True) else _note(part) for part in parts]
    if key == "output" and not attachments(left):
        return {**item, key: "\n".join(str(part["text"]) for part in left)}
    return {**item, key: left}


def link_told(block: Item) -> str:
    """A link as the model reads it."""
    return f'[resource_link name="{block.get("name")}" uri="{block.get("uri")}"]'


def resource_told(resource: Item) -> str:
    """What is embedded as the model reads it: text, also where it came as bytes."""
    uri, text = resource.get("uri"), resource.get("text")
    data = decoded(resource.get("blob")) if text is None else None
    if data is not None:
        with suppress(UnicodeDecodeError):
            text = data.decode("utf-8")
    if text is None:
        mime = resource.get("mimeType") or "unknown"
        return f'[resource uri="{uri}" holds data of type {mime}, not text]'
    return f'<resource uri="{uri}">\n{text}\n</resource>'


def decoded(data: object) -> bytes | None:
    """The bytes of base64; None for what is none."""
    if not isinstance(data, str):
        return None
    try:
        return b64decode(plain(data), validate=True)
    except ValueError:
        return None


def plain(data: object) -> str:
    """Base64 without the blanks and line ends that some clients and servers put into it."""
    return "".join(str(data).split())


def _parts_of(item: Item) -> tuple[str, list[Item]]:
    """The parts of an item that we made, and where they are."""
    key = "content" if item.get("role") == "user" else "output"
    parts = item.get(key)
    return key, cast("list[Item]", parts) if isinstance(parts, list) else []


def _note(part: Item) -> Item:
    return _text(_NO_FILE.format(part["filename"]) if part["type"] == "input_file" else _NO_IMAGE)


def _text(text: str) -> Item:
    return {"type": "input_text", "text": text}


def _part(block: Item) -> str | Item:
    """One content block: text to be joined with its neighbours, or a part of its own."""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "resource_link":
            return f"\n{link_told(block)}\n"
        case "image":
            data = plain(block.get("data"))
            kind = filetype.kind(decoded(data[:_BEGINNING]) or b"")
            return attached(Media(kind or str(block.get("mimeType")), data))
        case "resource":
            return _resource(cast("Item", block.get("resource")))
        case _:
            return ""


def _resource(resource: Item) -> str | Item:
    blob = resource.get("blob")
    data = decoded(blob) if resource.get("text") is None else None
    kind = None if data is None else filetype.kind(data)
    if data is not None and kind is not None and len(data) <= MOST_DATA:
        return attached(Media(kind, plain(blob), _name(str(resource.get("uri")))))
    return f"\n{resource_told(resource)}\n"


def _unfit_image(data: bytes | None, *, images: bool) -> str | None:
    if not images:
        return "the model in use takes no images"
    if data is None:
        return "its data is not base64"
    if len(data) > MOST_DATA:
        return f"it has more than {MOST_DATA >> 20} MB"
    if filetype.kind(data) not in filetype.PICTURES:
        return "it is no PNG, JPEG, GIF or WebP"
    return None


def _name(uri: str) -> str:
    """What a file is called; servers tell its type by the end of its name."""
    path = re.split(r"[#?]", uri, maxsplit=1)[0].rstrip("/")
    name = unquote(path.rpartition("/")[2]) or "file"
    return name if name.lower().endswith(".pdf") else f"{name}.pdf"
