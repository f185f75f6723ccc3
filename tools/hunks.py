"""Which lines of a text became which others, found in a time that grows with the texts.

Pure: lines in, ranges out. The changes it finds are correct, but not always the fewest: nobody
should have to wait for the best way to show a change.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import eq
from typing import TypeAlias

Lines: TypeAlias = Sequence[Hashable]
"""The lines themselves, or what stands for them."""

Hunk: TypeAlias = tuple[int, int, int, int]
"""From and up to which line before, and the same after."""

_WINDOW = 64
_SMALL = _WINDOW * _WINDOW
"""Lines before times lines after: so many are compared in every way."""
_CONTEXT = 3
"""Lines around what changed in a unified diff."""
_DEEPEST = 20
"""How often what lies between two unique lines is divided again."""


def hunks(before: Lines, after: Lines, context: int) -> list[Hunk]:
    """What changed, with so many lines around; changes that are near to each other are one."""
    return [_around(group, before, after, context) for group in _groups(before, after, context)]


def unified(before: Sequence[str], after: Sequence[str], name: str, new_name: str) -> Iterator[str]:
    """The same as the lines of a unified diff; nothing where nothing changed."""
    for number, group in enumerate(_groups(before, after, _CONTEXT)):
        first, last, to, end = _around(group, before, after, _CONTEXT)
        if not number:
            yield from (f"--- {name}", f"+++ {new_name}")
        yield f"@@ -{_range(first, last)} +{_range(to, end)} @@"
        for one, two, three, four in group:
            yield from (f" {line}" for line in before[first:one])
            yield from (f"-{line}" for line in before[one:two])
            yield from (f"+{line}" for line in after[three:four])
            first = two
        yield from (f" {line}" for line in before[first:last])


def _range(first: int, last: int) -> str:
    """As a unified diff has it: an empty range is named by the line before it."""
    count = last - first
    return f"{first + 1}" if count == 1 else f"{first + (count > 0)},{count}"


def _groups(before: Lines, after: Lines, context: int) -> list[list[Hunk]]:
    """Changes, and which of them are near to each other."""
    groups: list[list[Hunk]] = []
    for change in _changes(before, after):
        if groups and change[0] - groups[-1][-1][1] <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _around(group: Sequence[Hunk], before: Lines, after: Lines, context: int) -> Hunk:
    (first, _, to, _), (_, last, _, end) = group[0], group[-1]
    return (
        max(first - context, 0),
        min(last + context, len(before)),
        max(to - context, 0),
        min(end + context, len(after)),
    )


def _changes(before: Lines, after: Lines) -> Iterator[Hunk]:
    """The ranges that differ, in order."""
    pending = [(0, (0, len(before), 0, len(after)))]
    while pending:
        depth, whole = pending.pop()
        part = _trimmed(before, after, whole)
        first, last, to, end = part
        if first == last and to == end:
            continue
        if (last - first) * (end - to) <= _SMALL:
            yield from _compared(before, after, part)
        elif _are_alike(before, after, part):
            yield from _line_by_line(before, after, part)
        elif depth < _DEEPEST and (anchors := _anchors(before, after, part)):
            pending += [(depth + 1, piece) for piece in reversed(_between(part, anchors))]
        elif set(before[first:last]).isdisjoint(after[to:end]):
            yield part
        else:
            yield from _by_windows(before, after, part)


def _trimmed(before: Lines, after: Lines, part: Hunk) -> Hunk:
    """Without what both begin and end with."""
    first, last, to, end = part
    while first < last and to < end and before[first] == after[to]:
        first, to = first + 1, to + 1
    while first < last and to < end and before[last - 1] == after[end - 1]:
        last, end = last - 1, end - 1
    return first, last, to, end


def _compared(before: Lines, after: Lines, part: Hunk) -> Iterator[Hunk]:
    from difflib import SequenceMatcher  # noqa: PLC0415 (it loads slowly, and no start needs it)

    first, last, to, end = part
    matcher = SequenceMatcher(None, before[first:last], after[to:end], autojunk=False)
    for kind, one, two, three, four in matcher.get_opcodes():
        if kind != "equal":
            yield first + one, first + two, to + three, to + four


def _are_alike(before: Lines, after: Lines, part: Hunk) -> bool:
    """They have as many lines, and most are the same."""
    first, last, to, end = part
    same = sum(map(eq, before[first:last], after[to:end]))
    return last - first == end - to and 2 * same >= last - first


def _line_by_line(before: Lines, after: Lines, part: Hunk) -> Iterator[Hunk]:
    first, last, to, _ = part
    begun: int | None = None
    for line in range(last - first + 1):
        differs = line < last - first and before[first + line] != after[to + line]
        if differs and begun is None:
            begun = line
        elif not differs and begun is not None:
            yield first + begun, first + line, to + begun, to + line
            begun = None


def _by_windows(before: Lines, after: Lines, part: Hunk) -> Iterator[Hunk]:
    """Some lines of either side after the other: what is moved farther is not found again."""
    first, last, to, end = part
    while first < last or to < end:
        stop, halt = min(first + _WINDOW, last), min(to + _WINDOW, end)
        found = list(_compared(before, after, (first, stop, to, halt)))
        start = (found[-1][0], found[-1][2]) if found else (first, to)
        reaches = bool(found) and (found[-1][1], found[-1][3]) == (stop, halt)
        if reaches and start != (first, to) and (stop, halt) != (last, end):
            # What the next lines are may stand behind it: it is compared again, with more of them.
            found.pop()
            first, to = start
        else:
            first, to = stop, halt
        yield from found


def _anchors(before: Lines, after: Lines, part: Hunk) -> list[tuple[int, int]]:
    """Lines that stand once on either side, as many as are in the same order."""
    first, last, to, end = part
    common = set(before[first:last]).intersection(after[to:end])
    sides = ((before, first, last), (after, to, end))
    one, other = (
        _once((side[line], line) for line in range(begin, stop) if side[line] in common)
        for side, begin, stop in sides
    )
    return _rising([(line, other[text]) for text, line in one.items() if text in other])


def _once(lines: Iterable[tuple[Hashable, int]]) -> dict[Hashable, int]:
    """The lines that stand there once, and where."""
    found: dict[Hashable, int] = {}
    more: set[Hashable] = set()
    for text, line in lines:
        if text in found:
            more.add(text)
        found[text] = line
    return {text: line for text, line in found.items() if text not in more}


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs, whose first halves rise, in which the second ones do too."""
    ends: list[int] = []
    """The least second half with which a part of this length can end."""
    last: list[int] = []
    """Where the pair is that does so."""
    before: list[int] = []
    """Of each pair: which one comes before it."""
    for index, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1], last[length : length + 1] = [second], [index]
    found: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        found.append(pairs[index])
        index = before[index]
    return found[::-1]


def _between(part: Hunk, anchors: Sequence[tuple[int, int]]) -> list[Hunk]:
    """What lies before, between and behind lines that stay."""
    first, last, to, end = part
    starts = [(first, to), *((line + 1, place + 1) for line, place in anchors)]
    stops = [*anchors, (last, end)]
    return [
        (one, two, three, four) for (one, three), (two, four) in zip(starts, stops, strict=True)
    ]
