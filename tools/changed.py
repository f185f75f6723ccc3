"""Which lines of a file are not what they were when the model saw it, as text for the model.

It knows nothing of files: a trace and bytes in, text out.

Rule 1: changed lines are shown as they are now, the first of them, each as far as a look needs.
Rule 2: what is gone the model has read: it is told where, and how much.
"""

from collections.abc import Iterator
from itertools import islice

from tools.hunks import Hunk, hunks
from tools.splice import decode, visible
from tools.trace import Trace, trace

MOST_SHOWN = 20
_MOST_CHARACTERS = 200
"""Of one line."""


def told(before: "Trace | None", data: bytes) -> str:
    """What is other in these bytes than before, to be read behind the words that something is."""
    now = trace(data)
    if before is None or now is None:
        return "; which lines is not known, read it again"
    lines = data.split(b"\n")
    rows = (row for hunk in hunks(before, now, 0) for row in _rows(hunk, lines))
    shown = [*islice(rows, MOST_SHOWN)]
    left = sum(1 for _ in rows)
    more = [f"… and {left} more line{'s' * (left > 1)}"] if left else []
    return "\n".join(["; read it again, these lines are other now:", *shown, *more])


def _rows(hunk: Hunk, lines: list[bytes]) -> Iterator[str]:
    old, old_end, new, new_end = hunk
    yield from (_row(number, lines[number]) for number in range(new, new_end))
    gone = (old_end - old) - (new_end - new)
    if gone > 0:
        yield f"({gone} line{'s' * (gone > 1)} gone before line {new_end + 1})"


def _row(number: int, line: bytes) -> str:
    text = decode(line.removesuffix(b"\r"))
    cut = text[:_MOST_CHARACTERS]
    return f"{number + 1}: {visible(cut)}" + "…" * (len(cut) < len(text))
