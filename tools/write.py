"""The write tool: a file gets a whole new content, or comes to be.

Rule 1: what is there already is overwritten only if every line of it was shown.
Rule 2: a new file never replaces one that came to be in the meantime.
"""

from pydantic import Field

from tools import paths
from tools.base import Arguments, Card, Change, Context, Prepared, Result, Rewrite, Tool
from tools.frozen import frozen
from tools.known import Known, known, listed, look, outcome, unfitting, unparsable, unwritable
from tools.seen import Span, Stamp, digest
from tools.splice import BOM, count_lines, decode, overwrite
from tools.target import Target, locate
from tools.trace import trace

_MOST_LISTED = 10
"""Ranges of lines in one text."""


class WriteArguments(Arguments):
    """What the model passes to write."""

    file_path: str = Field(description="Absolute, or relative to the working directory.")
    content: str = Field(description="The whole new content.")


def _card(arguments: WriteArguments, cwd: str) -> Card:
    path = arguments.file_path
    change = Change(paths.absolute(path, cwd), None, arguments.content)
    return Card(f"Write {paths.shown(path, cwd)}", "edit", paths.places(path, cwd), (change,))


@frozen
class _New:
    """A file that is yet to be made, for whoever changes what is Known."""

    target: Target

    def change(self, data: bytes) -> Change:
        return Change(self.target.path, None, decode(data))

    def rewrite(self, data: bytes) -> Rewrite:
        return Rewrite(self.target.resolved, None, data)

    async def replace(self, data: bytes, context: Context) -> Stamp | Result:
        if moved := await self.target.moved(context.files):
            return moved
        try:
            return await context.files.create(self.target.resolved, data)
        except FileExistsError:
            return Result.error(_unread(self.target))
        except OSError as error:
            return self.target.refusal(error)


async def _prepare(arguments: WriteArguments, context: Context) -> Prepared | Result:
    refused = unwritable("content", arguments.content)
    target = refused or await locate("write", arguments.file_path, context)
    if isinstance(target, Result):
        return target
    present = await look(target, context)
    if isinstance(present, Result):
        return present
    if broken := unparsable(target, arguments.content.encode()):
        return broken
    if present is None:
        return _prepared(arguments, _New(target), arguments.content.encode(), context)
    file = known(target, present, context, _unread(target))
    if isinstance(file, Result):
        return file
    if refused := _unseen(file) or unfitting(file, arguments.content):
        return refused
    return _prepared(arguments, file, overwrite(present.data, arguments.content), context)


def _prepared(
    arguments: WriteArguments, file: Known | _New, data: bytes, context: Context
) -> Prepared:
    """The call that lets a file hold these bytes."""
    change = file.change(data)
    verb = "Created" if isinstance(file, _New) else "Updated"
    deed = f"{verb} file {_facts(arguments.content, data)}"

    async def run() -> Result:
        stamp = await file.replace(data, context)
        if isinstance(stamp, Result):
            return stamp
        if stamp.digest == digest(data):
            context.seen.wrote(file.target.resolved, stamp, lines=count_lines(data))
            context.seen.traces.keep(stamp.digest, trace(data))
        text = file.target.envelope("file", deed + outcome(stamp, data))
        return Result(text, shown=(change,), title=_card(arguments, context.cwd).title)

    return Prepared(file.target.access, run, (change,), file.rewrite(data))


def _unread(target: Target) -> str:
    return f'cannot overwrite existing "{target.path}" without reading it first'


def _unseen(file: Known) -> Result | None:
    """A Result that names the lines the model has not seen."""
    missing = [*map(_lines, file.sight.missing())]
    if not missing:
        return None
    lines = listed(missing, _MOST_LISTED)
    return Result.error(f"{_unread(file.target)}: not shown yet: lines {lines}")


def _lines(span: Span) -> str:
    first, last = span
    return f"{first}-{last}" if first < last else f"{first}"


def _facts(content: str, data: bytes) -> str:
    """How many lines there are now, and what was kept of the file though it was not in content."""
    given = content.encode()
    facts = {
        f"{count_lines(data)} lines": True,
        "CRLF line endings kept": data.count(b"\r\n") > given.count(b"\r\n"),
        "BOM kept": data.startswith(BOM) and not given.startswith(BOM),
    }
    return f"({', '.join(text for text, holds in facts.items() if holds)})"


WRITE = Tool(
    "write",
    "Create a file, or replace the whole content of one that was read whole before. Prefer edit "
    "for changes.",
    WriteArguments,
    _card,
    _prepare,
    mutates=True,
)
