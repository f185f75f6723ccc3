"""What became of a call that never ended, because the process did.

Rule 1: the model is told what can be seen now, and never that something was done or not done
without having looked.
Rule 2: a file that the call left beside the one it changed is removed, if nothing is lost with it.
"""

from contextlib import suppress

from bridge.core.changes import OpenCall
from bridge.core.history import INTERRUPTED
from bridge.core.records import Changing, Returned
from tools import regular
from tools.base import NotRegular
from tools.commit import leftovers
from tools.seen import Stamp, digest

_EMPTY = digest(b"")


def interrupted(call: OpenCall) -> Returned:
    """The end of such a call; looks at the file that it was about to change."""
    text = INTERRUPTED if call.change is None else _finding(call.change)
    if call.change is not None:
        _tidy(call.change)
    return Returned(call.card_id, call.call_id, call.custom, text, ok=False)


def _finding(change: Changing) -> str:
    now = present(change.path)
    held = None if now is None else now.digest
    if held == change.after:
        found = f"its change of {change.path} was made"
    elif held == change.before:
        found = f"its change of {change.path} was not made"
    else:
        found = f"{change.path} holds something else by now, so read it first"
    return f"Error: the call was interrupted before it ended; {found}."


def _tidy(change: Changing) -> None:
    """Remove what was to take the file's place, or gave it up, or was not written yet."""
    with suppress(OSError):
        for name in leftovers(change.path):
            left = present(str(name))
            if left is not None and left.digest in (change.before, change.after, _EMPTY):
                name.unlink()


def present(path: str) -> Stamp | None:
    """What a file holds now; None where none can be read."""
    try:
        return regular.scan(path, lambda _: None)
    except (OSError, NotRegular):
        return None
