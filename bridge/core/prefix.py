"""How much of one request the next one begins with: all that a provider's cache can save.

It must not know how requests are made, nor what a cache did.

Rule 1: what counts is what a prompt is made of, in this order: instructions, tools, input. Other
parameters are no part of it.
Rule 2: it is measured on bytes, as they are sent.
Rule 3: another model begins anew: it reads nobody else's cache.
"""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import cast

from bridge.core.wire import dump, list_pieces, written
from tools.frozen import frozen


@frozen
class Kept:
    """What a request has of the one before it."""

    of: int
    """Bytes of the earlier one."""
    bytes: int
    """Those that the later one begins with."""
    broke: str = ""
    """The part in which the later one differs first; none where the earlier one is its prefix."""


class Prefix:
    """The last request of one session; owned by the session."""

    def __init__(self) -> None:
        self._maker = ""
        self._parts: list[tuple[str, bytes]] = []

    def feed(self, maker: str, body: Mapping[str, object]) -> Kept | None:
        """Take the body of a request; None for the first one to a model.

        maker: provider and model.
        """
        before, self._parts = self._parts, list(_parts(body))
        known, self._maker = self._maker == maker, maker
        return _kept(before, self._parts) if known else None


def _parts(body: Mapping[str, object]) -> Iterator[tuple[str, bytes]]:
    yield "instructions", dump(body.get("instructions", ""))
    yield "tools", b"".join(list_pieces(cast("list[object]", body.get("tools", ()))))
    for item in cast("list[object]", body.get("input", ())):
        yield "input", written(item)


def _kept(before: list[tuple[str, bytes]], after: list[tuple[str, bytes]]) -> Kept:
    of, same = sum(len(part) for _, part in before), 0
    for (name, old), (_, new) in zip_longest(before, after[: len(before)], fillvalue=("", b"")):
        if old != new:
            return Kept(of, same + _common(old, new), name)
        same += len(old)
    return Kept(of, same)


def _common(old: bytes, new: bytes) -> int:
    """How many bytes both begin with."""
    least, most = 0, min(len(old), len(new))
    while least < most:
        middle = (least + most + 1) // 2
        if old[least:middle] == new[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least
