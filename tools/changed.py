"""Which lines of a file are not what they were when the model saw it, as text for the model.

It knows nothing of files: a trace and bytes in, text out.

Rule 1: changed lines are shown as they are now, the first of them, each as far as a look needs.
Rule 2: what is gone the model has read: it is told where, and how much.
"""

from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice
from typing import TypeAlias

from tools.splice import decode, visible
from tools.trace import Trace, trace

MOST_SHOWN = 20
_MOST_CHARACTERS = 200
"""Of one line."""
_MOST_COMPARED = 100_000
"""Pairs of equal lines. Where there would be more, all from the first change to the last is one."""

Change: TypeAlias = tuple[int, int, int, int]
"""Lines that were there, and lines that are there now, each from and to, counted from 0."""


def told(before: "Trace | None", data: bytes) -> str:
    """What is other in these bytes than before, to be read behind the words that something is."""
    now = trace(data)
    if before is None or now is None:
        return "; which lines is not known, read it again"
    rows = (row for change in _changes(before, now) for row in _rows(change, data.split(b"\n")))
    shown = [*islice(rows, MOST_SHOWN)]
    left = sum(1 for _ in rows)
    more = [f"… and {left} more line{'s' * (left > 1)}"] if left else []
    return "\n".join(["; read it again, these lines are other now:", *shown, *more])


def _rows(change: Change, lines: list[bytes]) -> Iterator[str]:
    old, old_end, new, new_end = change
    yield from (_row(number, lines[number]) for number in range(new, new_end))
    gone = (old_end - old) - (new_end - new)
    if gone > 0:
        yield f"({gone} line{'s' * (gone > 1)} gone before line {new_end + 1})"


def _changes(before: Trace, now: Trace) -> Iterator[Change]:
    """Where lines differ, from the top."""
    head, tail = _common(before, now)
    old, new = before[head : len(before) - tail], now[head : len(now) - tail]
    if _pairs(old, new) > _MOST_COMPARED:
        yield head, head + len(old), head, head + len(new)
        return
    for kind, start, end, new_start, new_end in SequenceMatcher(None, old, new).get_opcodes():
        if kind != "equal":
            yield head + start, head + end, head + new_start, head + new_end


def _pairs(old: Trace, new: Trace) -> int:
    """How many pairs of equal lines have to be looked at; difflib passes frequent lines over."""
    times = Counter(new)
    frequent = len(new) // 100 + 1
    return sum(times[line] for line in old if times[line] <= frequent)


def _common(before: Trace, now: Trace) -> tuple[int, int]:
    """How many lines are the same at the top, and how many of the others at the bottom."""
    most = min(len(before), len(now))
    head = next((n for n in range(most) if before[n] != now[n]), most)
    rest = most - head
    tail = next((n for n in range(rest) if before[-1 - n] != now[-1 - n]), rest)
    return head, tail


def _row(number: int, line: bytes) -> str:
    text = decode(line.removesuffix(b"\r"))
    cut = text[:_MOST_CHARACTERS]
    return f"{number + 1}: {visible(cut)}" + "…" * (len(cut) < len(text))
