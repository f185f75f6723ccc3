"""What became of a call that never ended, because the process did.

Rule 1: the model is told what can be seen now, and never that something was done or not done
without having looked.
"""

from bridge.core.changes import OpenCall
from bridge.core.history import INTERRUPTED
from bridge.core.records import Changing, Returned
from tools import regular
from tools.base import NotRegular
from tools.seen import Stamp


def interrupted(call: OpenCall) -> Returned:
    """The end of such a call; looks at the file that it was about to change."""
    text = INTERRUPTED if call.change is None else _finding(call.change)
    return Returned(call.card_id, call.call_id, call.custom, text, ok=False)


def _finding(change: Changing) -> str:
    now = present(change.path)
    digest = None if now is None else now.digest
    if digest == change.after:
        found = f"its change of {change.path} was made"
    elif digest == change.before:
        found = f"its change of {change.path} was not made"
    else:
        found = f"{change.path} holds something else by now, so read it first"
    return f"Error: the call was interrupted before it ended; {found}."


def present(path: str) -> Stamp | None:
    """What a file holds now; None where none can be read."""
    try:
        return regular.scan(path, lambda _: None)
    except (OSError, NotRegular):
        return None
