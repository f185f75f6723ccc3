"""The edit tool: one exact text of a file becomes another."""

from functools import partial

from anyio.to_thread import run_sync
from pydantic import Field

from tools import paths
from tools.base import Arguments, Card, Change, Context, Prepared, Result, Tool
from tools.hint import hint
from tools.known import Known, known, listed, look, outcome, unfitting, unparsable, unwritable
from tools.notebook import AS_JSON, is_notebook
from tools.seen import digest
from tools.splice import BOM, Ambiguous, Spliced, Unmatched, decode, splice
from tools.target import locate
from tools.trace import trace

_MOST_LISTED = 20
"""Line numbers in one text."""
_QUICK = 256 * 1024
"""Bytes that are edited in a few milliseconds."""


class EditArguments(Arguments):
    """What the model passes to edit."""

    file_path: str = Field(description="Absolute, or relative to the working directory.")
    old_string: str = Field(description="The exact text to replace, without line numbers.")
    new_string: str = Field(description="The text to put there.")
    replace_all: bool | None = Field(None, description="Replace every occurrence.")


def _card(arguments: EditArguments, cwd: str) -> Card:
    path = arguments.file_path
    change = Change(paths.absolute(path, cwd), arguments.old_string, arguments.new_string)
    return Card(f"Edit {paths.shown(path, cwd)}", "edit", paths.places(path, cwd), (change,))


async def _prepare(arguments: EditArguments, context: Context) -> Prepared | Result:
    file = _fault(arguments) or await _find(arguments, context)
    if isinstance(file, Result):
        return file
    every = arguments.replace_all is True
    spliced = await _spliced(arguments, file.present.data, every=every)
    if not isinstance(spliced, Spliced):
        return _unmade(arguments.old_string, file, spliced)
    if spliced.data == file.present.data:
        return Result.error("old_string and new_string must differ in more than line endings")
    if refused := unfitting(file, arguments.new_string) or unparsable(file.target, spliced.data):
        return refused
    change = file.change(spliced.data)

    async def run() -> Result:
        stamp = await file.replace(spliced.data, context)
        if isinstance(stamp, Result):
            return stamp
        if stamp.digest == digest(spliced.data):
            context.seen.edited(file.target.resolved, stamp, file.sight, spliced.edited)
            context.seen.traces.keep(stamp.digest, trace(spliced.data))
        text = _text(file, spliced, every=every) + outcome(stamp, spliced.data)
        return Result(text, shown=(change,), title=_card(arguments, context.cwd).title)

    return Prepared(file.target.access, run, (change,), file.rewrite(spliced.data))


def _fault(arguments: EditArguments) -> Result | None:
    """What is wrong with the arguments, whatever the file holds."""
    if not arguments.old_string:
        return Result.error("old_string must not be empty; use write to make a new file")
    if arguments.old_string == arguments.new_string:
        return Result.error("old_string and new_string must differ")
    return unwritable("old_string", arguments.old_string) or unwritable(
        "new_string", arguments.new_string
    )


async def _find(arguments: EditArguments, context: Context) -> Known | Result:
    """The file, if the model may edit it."""
    target = await locate("edit", arguments.file_path, context)
    if isinstance(target, Result):
        return target
    present = await look(target, context)
    if isinstance(present, Result):
        return present
    unread = f'edit requires reading "{target.path}" first'
    if present is None:
        gone = context.seen.knows(target.resolved)
        return target.refusal("not found") if gone else Result.error(unread)
    return known(target, present, context, unread)


async def _spliced(
    arguments: EditArguments, data: bytes, *, every: bool
) -> Spliced | Unmatched | Ambiguous:
    """The edit of these bytes; of many of them beside everything else that goes on."""
    work = partial(splice, data, arguments.old_string, arguments.new_string, every=every)
    return work() if len(data) <= _QUICK else await run_sync(work)


def _unmade(wanted: str, file: Known, found: Unmatched | Ambiguous) -> Result:
    """Why nothing was replaced."""
    path = file.target.path
    if isinstance(found, Ambiguous):
        return Result.error(
            f'old_string matched {len(found.lines)} times in "{path}"; provide a more specific '
            f"old_string or set replace_all to true (lines {_listed(found.lines)})"
        )
    text = decode(file.present.data.removeprefix(BOM)).replace("\r\n", "\n")
    near = hint(text, wanted.replace("\r\n", "\n"))
    advice = "; ".join(filter(None, (near, AS_JSON * is_notebook(path))))
    return Result.error(f'old_string was not found in "{path}"' + f"; {advice}" * bool(advice))


def _text(file: Known, spliced: Spliced, *, every: bool) -> str:
    """What the model reads; it is told of places it has not seen itself."""
    if not every:
        return f"The file {file.target.path} has been updated successfully."
    text = (
        f"The file {file.target.path} has been updated. All occurrences were successfully replaced."
    )
    blind = not file.sight.covers(spliced.edited.old)
    return text + (f" Lines: {_listed(spliced.lines)}." if blind else "")


def _listed(lines: tuple[int, ...]) -> str:
    return listed([*map(str, lines)], _MOST_LISTED)


EDIT = Tool(
    "edit",
    "Replace old_string, which must occur exactly once unless replace_all is set, by new_string "
    "in a file that was read before. It must match exactly, blanks and indentation included.",
    EditArguments,
    _card,
    _prepare,
    mutates=True,
)
