"""The write tool: a file gets a whole new content, or comes to be.

Rule 1: what is there already is overwritten only if every line of it was shown.
Rule 2: a new file never replaces one that came to be in the meantime.
"""

from pydantic import Field

from tools import paths
from tools.base import Arguments, Card, Change, Context, Prepared, Result, Rewrite, Tool
from tools.known import Known, known, look, outcome, unfitting, unparsable, unwritable
from tools.seen import Span, Stamp, digest
from tools.splice import BOM, count_lines, overwrite
from tools.target import Target, locate
from tools.trace import trace

_MOST_LISTED = 10
"""Ranges of lines in one text."""


class WriteArguments(Arguments):
    """What the model passes to write."""

    file_path: str = Field(description="Absolute, or relative to the working directory.")
    content: str = Field(description="The whole new content.")


def _title(arguments: WriteArguments, cwd: str) -> str:
    return f"Write {paths.shown(arguments.file_path, cwd)}"


def _card(arguments: WriteArguments, cwd: str) -> Card:
    path = arguments.file_path
    change = Change(paths.absolute(path, cwd), None, arguments.content)
    return Card(_title(arguments, cwd), "edit", paths.places(path, cwd), (change,))


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
        return _prepared(arguments, target, None, context)
    file = known(target, present, context, _unread(target))
    if isinstance(file, Result):
        return file
    refused = _unseen(file) or unfitting(target, present, arguments.content)
    return refused or _prepared(arguments, target, file, context)


def _prepared(
    arguments: WriteArguments, target: Target, file: Known | None, context: Context
) -> Prepared:
    """The call for a file that is there, or for a new one."""
    content = arguments.content
    data = content.encode() if file is None else overwrite(file.present.data, content)
    change = Change(target.path, None, content) if file is None else file.change(data)

    async def run() -> Result:
        if file is None:
            stamp = await _create(target, data, context)
        else:
            stamp = await file.replace(data, context)
        if isinstance(stamp, Result):
            return stamp
        if stamp.digest == digest(data):
            context.seen.wrote(target.resolved, stamp, lines=count_lines(data))
            context.seen.traces.keep(stamp.digest, trace(data))
        deed = f"{'Created' if file is None else 'Updated'} file {_facts(content, data)}"
        text = target.envelope("file", deed + outcome(stamp, data))
        return Result(text, shown=(change,), title=_title(arguments, context.cwd))

    rewrite = Rewrite(target.resolved, None, data) if file is None else file.rewrite(data)
    return Prepared(target.access, run, (change,), rewrite)


async def _create(target: Target, data: bytes, context: Context) -> Stamp | Result:
    if moved := await target.moved(context.files):
        return moved
    try:
        return await context.files.create(target.resolved, data)
    except FileExistsError:
        return Result.error(_unread(target))
    except OSError as error:
        return target.refusal(error)


def _unread(target: Target) -> str:
    return f'cannot overwrite existing "{target.path}" without reading it first'


def _unseen(file: Known) -> Result | None:
    """A Result that names the lines the model has not seen."""
    missing = file.sight.missing()
    if not missing:
        return None
    more = ", …" if len(missing) > _MOST_LISTED else ""
    listed = ", ".join(map(_lines, missing[:_MOST_LISTED])) + more
    return Result.error(f"{_unread(file.target)}: not shown yet: lines {listed}")


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
