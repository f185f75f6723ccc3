"""The model's context window: how full it is, and when the conversation must become shorter.

Rule 1: servers count tokens; we estimate only what came after they last did. A token for three
bytes is more than most texts have, so that we err on the early side.
"""

from collections.abc import Iterable

from bridge.core.content import media_of, without_media
from bridge.core.records import Item
from bridge.core.wire import cut, dump

_BYTES_PER_TOKEN = 3
_IMAGE_TOKENS = 1500
_BYTES_PER_FILE_TOKEN = 30
"""Of a PDF: a page takes some 2000 tokens and 60 KB."""
_LARGEST_ANSWER = 32_000
"""Tokens kept free for an answer where the configuration does not say how long it may be."""

_SHORTENED = 2000
"""Characters that are left of a text where the whole does not fit."""

PLAIN = frozenset(
    {"message", "function_call", "function_call_output"}
    | {"custom_tool_call", "custom_tool_call_output"}
)
"""What every server takes, but for pictures in messages."""


def tokens(item: Item) -> int:
    """About how many tokens an input item takes."""
    media = sum(map(_media_tokens, media_of(item)))
    return media + len(dump(without_media(item) if media else item)) // _BYTES_PER_TOKEN


def _media_tokens(part: Item) -> int:
    is_image = part["type"] == "input_image"
    return _IMAGE_TOKENS if is_image else len(str(part["file_data"])) // _BYTES_PER_FILE_TOKEN


def limit(window: int, max_output_tokens: int | None) -> int:
    """Tokens from which on the conversation leaves too little room for an answer."""
    answer = min(window // 8, _LARGEST_ANSWER) if max_output_tokens is None else max_output_tokens
    return window - min(answer, window // 2) - window // 20


def shortened(items: Iterable[Item]) -> list[Item]:
    """Texts, calls and outputs alone, with all that is long cut in the middle."""
    return [_shortened(item) for item in items if item.get("type") in PLAIN]


def _shortened(item: Item) -> Item:
    arguments = item.get("arguments")
    if isinstance(arguments, str) and len(arguments) > _SHORTENED:
        item = {**item, "arguments": f'{{"left_out":"{len(arguments)} characters"}}'}
    return cut(without_media(item), _SHORTENED)
