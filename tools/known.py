"""What edit and write share: only a file the model knows, as it is now, is changed.

Rule 1: the whole new file is made before anyone is asked, and put in place of exactly the bytes
it was made from: whatever changed in between makes the call fail.
Rule 2: texts of refusals are those that models recover from; they say what to do next.
"""

import re
from collections.abc import Sequence

from tools.base import Bytes, Change, Context, FileTooLarge, Result, Rewrite, StaleFile
from tools.changed import told
from tools.charset import charset
from tools.frozen import frozen
from tools.notebook import AS_JSON, is_broken, is_notebook
from tools.seen import Sight, Stamp, digest
from tools.splice import UNDECODABLE, decode
from tools.target import Target
from tools.trace import Trace, trace

MOST_BYTES = 10 * 1024 * 1024

_CHANGED = "file changed since it was read"

_READ_AGAIN = "; read it again"

_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


@frozen
class Known:
    """A file as it is now, which is as the model saw it."""

    target: Target
    present: Bytes
    sight: Sight

    def change(self, data: bytes) -> Change:
        """The whole file before and after, byte for byte."""
        return Change(self.target.path, decode(self.present.data), decode(data))

    def rewrite(self, data: bytes) -> Rewrite:
        """The same for whoever writes down what happens."""
        return Rewrite(self.target.resolved, self.present.data, data)

    async def replace(self, data: bytes, context: Context) -> Stamp | Result:
        """Put new bytes in the file's place, if it is still the same; the stamp is of the outcome.

        Where the outcome is other bytes, nothing is known of the file any more.
        """
        if moved := await self.target.moved(context.files):
            return moved
        try:
            return await context.files.replace(self.target.resolved, data, self.present.stamp)
        except StaleFile:
            now = await look(self.target, context)
            if not isinstance(now, Bytes):
                return self.target.refusal(_CHANGED)
            return _stale(self.target, trace(self.present.data), now, context)
        except OSError as error:
            return self.target.refusal(error)


def listed(names: Sequence[str], most: int) -> str:
    """The first of some names, and a sign that there are more."""
    return ", ".join(names[:most]) + ", …" * (len(names) > most)


def outcome(stamp: Stamp, data: bytes) -> str:
    """What became of a change in the editor, as a sentence; nothing where the disk has it."""
    if stamp.digest != digest(data):
        return " The editor changed the text once more, as formatters do: read it before you go on."
    return " It is unsaved in the editor; commands see what is on disk." * stamp.unsaved


async def look(target: Target, context: Context) -> Bytes | Result | None:
    """The file as it is now; None if there is none; a Result if it can never be changed."""
    try:
        present = await context.files.read(target.resolved, MOST_BYTES)
    except FileTooLarge as error:
        return target.refusal(
            f"the file has {error.size} bytes, the most is {MOST_BYTES}; use a command instead"
        )
    except OSError as error:
        return target.refusal(error)
    if present is None:
        return None
    if declared := charset(present.data):
        return target.refusal(
            f"the file is {declared}, which only read understands; change it with a command that "
            "converts it and back, such as iconv"
        )
    return target.refusal("binary file") if b"\0" in present.data else present


def known(target: Target, present: Bytes, context: Context, unread: str) -> Known | Result:
    """The file, if the model has seen these bytes of it; unread is the text if it has not."""
    sight = context.seen.find(target.resolved, present.stamp)
    if sight is None:
        return Result.error(unread)
    if sight.stamp.digest != present.stamp.digest:
        return _stale(target, context.seen.traces.find(sight.stamp.digest), present, context)
    return Known(target, present, sight)


def _stale(target: Target, before: "Trace | None", present: Bytes, context: Context) -> Result:
    """The refusal to change a file that is not what it was: who did it, and what is other now.

    Its lines are shown only where `read` would show them unasked.
    """
    by = " by a command of yours" * context.seen.is_overtaken(target.resolved)
    access = target.access
    private = access.outside or access.secret or context.is_barred(target.resolved)
    return target.refusal(_CHANGED + by + (_READ_AGAIN if private else told(before, present.data)))


def unwritable(name: str, text: str) -> Result | None:
    """A Result if no text file can hold the text of this argument."""
    if _UNWRITABLE.search(text):
        return Result.error(f"{name} holds a NUL or half a surrogate pair, which is not text")
    return None


def unparsable(target: Target, data: bytes) -> Result | None:
    """A Result if a notebook would be none any more with these bytes."""
    if is_notebook(target.resolved) and is_broken(data):
        return target.refusal(f"that would be no valid JSON; {AS_JSON}")
    return None


def unfitting(file: Known, text: str) -> Result | None:
    """A Result if the text cannot be put into the file, whose encoding is not known."""
    if text.isascii() or not UNDECODABLE.search(decode(file.present.data)):
        return None
    return file.target.refusal(
        "the file is not UTF-8 and its encoding is unknown, so only ASCII can be put into it"
    )
