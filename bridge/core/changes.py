"""What a session changed in files, and which of its calls never ended: records in, facts out.

Rule 1: it says what was to happen. Whether it did is for whoever looks at the file to find out.
Rule 2: a change that was taken back is forgotten.
"""

from collections.abc import Iterable
from dataclasses import replace

from bridge.core.records import Announced, Changing, Prompted, Record, Responded, Returned, Undone
from tools.frozen import frozen


@frozen
class FileChange:
    """One file, from before the first change to after any of them."""

    path: str
    before: str | None
    after: tuple[str, ...]
    """What it held after each change, in order."""


@frozen
class OpenCall:
    """A call that has no end yet."""

    card_id: str
    call_id: str
    custom: bool
    change: Changing | None = None
    """What it was about to do, if it was about to."""


class Changes:
    """The changes of one session; the session owns it."""

    def __init__(self) -> None:
        self._prompt = 0
        self._made: dict[int, list[Changing]] = {}
        self._open: dict[str, OpenCall] = {}

    def add(self, record: Record) -> None:
        """Take one more record; most kinds change nothing."""
        match record:
            case Prompted(prompt=number):
                self._prompt = number
            case Responded():
                self._open |= _opened(record)
            case Changing():
                self._made.setdefault(self._prompt, []).append(record)
                call = self._open.get(record.card_id)
                if call is not None:
                    self._open[record.card_id] = replace(call, change=record)
            case Returned(card_id=card_id):
                self._open.pop(card_id, None)
            case Undone(prompt=number):
                self._made.pop(number, None)
            case _:
                pass

    def open_calls(self) -> list[OpenCall]:
        """The calls that never ended, in order."""
        return list(self._open.values())

    def last(self) -> tuple[int, list[FileChange]] | None:
        """The last prompt that changed files, and what it changed; None if there is none."""
        number = max(self._made, default=None)
        return None if number is None else (number, _by_file(self._made[number]))

    def all(self) -> list[FileChange]:
        """What the whole session changed."""
        return _by_file(change for number in sorted(self._made) for change in self._made[number])


def _opened(answer: Responded) -> dict[str, OpenCall]:
    custom = {
        item.get("call_id") for item in answer.items if item.get("type") == "custom_tool_call"
    }
    return {
        one.card_id: OpenCall(one.card_id, one.call_id, one.call_id in custom)
        for one in answer.seen
        if isinstance(one, Announced)
    }


def _by_file(changes: Iterable[Changing]) -> list[FileChange]:
    found: dict[str, FileChange] = {}
    for change in changes:
        known = found.get(change.path, FileChange(change.path, change.before, ()))
        found[change.path] = replace(known, after=(*known.after, change.after))
    return list(found.values())
