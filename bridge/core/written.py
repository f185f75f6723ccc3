"""What the person wrote in a prompt, apart from what came along: for commands, and for titles.

Editors put files beside the text by themselves, as links or whole (ACP, Slash Commands: other
content may accompany a command). None of that may change what a command is told to do.

Rule 1: what is embedded is never written; a link is, where the text has a place for it.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence

from bridge.core.link import spots
from bridge.core.records import Item

_TITLE_WORDS, _TITLE_BYTES = 5, 40
_USER_REQUEST = r"(?s)<user_request>(.*?)</user_request>"
"""How one client marks what the person wrote, behind instructions of its own."""
_UNPRINTABLE = (
    r"\x1b\[[0-9;?]*[ -/]*[@-~]"
    r"|[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


def typed(blocks: Iterable[Item]) -> str:
    """The text alone."""
    return "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


def with_places(blocks: Sequence[Item]) -> str:
    """The text from its first piece on, each link being the place that it leads to."""
    kinds = [block.get("type") for block in blocks]
    begun = blocks[kinds.index("text") :] if "text" in kinds else ()
    return _joined(begun, lambda link: _place(str(link.get("uri", ""))))


def with_names(blocks: Iterable[Item]) -> str:
    """The text, each link being its name."""
    return _joined(blocks, lambda link: str(link.get("name", "")))


def company(blocks: Iterable[Item], written: Sequence[Item]) -> tuple[Item, ...]:
    """The blocks without the texts that were written."""
    return tuple(block for block in blocks if block.get("type") != "text" or block not in written)


def title_of(text: str) -> str:
    """A short title: the first words of what the user asked, printable and cut at a character."""
    request_part = re.search(_USER_REQUEST, text)
    words = re.sub(_UNPRINTABLE, "", request_part[1] if request_part else text).split()
    title = " ".join(words[:_TITLE_WORDS])
    return title.encode("utf-8", "replace")[:_TITLE_BYTES].decode("utf-8", "ignore").strip()


def _joined(blocks: Iterable[Item], told: Callable[[Item], str]) -> str:
    text = ""
    for block in blocks:
        match block.get("type"):
            case "text":
                text += str(block.get("text", ""))
            case "resource_link":
                blank = " " if text and not text[-1].isspace() else ""
                text += f"{blank}{told(block)}"
            case _:
                pass
    return text


def _place(uri: str) -> str:
    """The path, with the lines that are meant, as one word; any other address as it is."""
    spot = next(spots(uri), None)
    if spot is None:
        return uri
    lines = "" if spot.first is None else f":{spot.first}-{spot.first + (spot.count or 1) - 1}"
    return shlex.quote(f"{spot.path}{lines}")
