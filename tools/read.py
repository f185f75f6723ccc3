"""The read tool: some lines of a text file, each after its number; or a picture, or a PDF.

Rule 1: what was shown, and of which bytes, is remembered: only that may be changed later.
Rule 2: a read that fails counts for nothing, and so does one of a picture or a PDF.
"""

from base64 import b64encode
from posixpath import basename

from pydantic import Field

from tools import filetype, paths
from tools.base import Arguments, Card, Context, Media, Prepared, Result, Tool
from tools.known import MOST_BYTES
from tools.notebook import cells, is_notebook
from tools.page import MOST_LINES, NotText, Page
from tools.splice import count_lines
from tools.target import Target, locate
from tools.trace import Tracer, trace

_MOST_MEDIA = 10 * 1024 * 1024
"""Bytes of a picture or PDF."""
_UNSAVED = "unsaved text of the editor; commands see what is on disk"


class ReadArguments(Arguments):
    """What the model passes to read."""

    file_path: str = Field(description="Absolute, or relative to the working directory.")
    offset: int | None = Field(None, description="First line, from 1 (default 1).")
    limit: int | None = Field(None, description=f"Lines to read (default and most {MOST_LINES}).")


def _card(arguments: ReadArguments, cwd: str) -> Card:
    first = arguments.offset or 1
    window = ""
    if arguments.limit:
        window = f" ({first} - {first + arguments.limit - 1})"
    elif arguments.offset:
        window = f" (from line {first})"
    path = arguments.file_path
    return Card(
        f"Read {paths.shown(path, cwd)}{window}", "read", paths.places(path, cwd, max(first, 1))
    )


async def _prepare(arguments: ReadArguments, context: Context) -> Prepared | Result:
    for name, number in (("offset", arguments.offset), ("limit", arguments.limit)):
        if number is not None and number < 0:
            return Result.error(f"{name} must be 1 or more")
    target = await locate("read", arguments.file_path, context)
    if isinstance(target, Result):
        return target

    async def run() -> Result:
        if is_notebook(target.resolved) and arguments.offset is None and arguments.limit is None:
            told = await _cells(target, context)
            if told is not None:
                return told
        page = Page(arguments.offset or 1, min(arguments.limit or MOST_LINES, MOST_LINES))
        return await _read(target, page, context)

    return Prepared(target.access, run)


async def _cells(target: Target, context: Context) -> Result | None:
    """A notebook as its cells; None where it is better read as text."""
    try:
        found = await context.files.read(target.resolved, MOST_BYTES)
    except OSError:
        return None
    shown = None if found is None else cells(found.data)
    if found is None or shown is None or await target.moved(context.files):
        return None
    context.seen.read(target.resolved, found.stamp, lines=count_lines(found.data), shown=())
    context.seen.traces.keep(found.stamp.digest, trace(found.data))
    return Result(_content(target, "notebook", shown, [_UNSAVED] * found.stamp.unsaved))


async def _read(target: Target, page: Page, context: Context) -> Result:
    if moved := await target.moved(context.files):
        return moved
    kinds: list[str | None] = []
    tracer = Tracer()

    def feed(block: bytes) -> None:
        if not kinds:
            kinds.append(filetype.kind(block))
        if kinds[0] in context.takes:
            raise NotText
        page.feed(block)
        tracer.feed(block)

    try:
        stamp = await context.files.scan(target.resolved, feed)
        page.close()
    except NotText:
        return await _media(target, kinds[0], context)
    except OSError as error:
        return target.refusal(error)
    if stamp is None:
        return target.refusal("not found")
    if page.first > max(page.lines, 1):
        where = f'"{target.path}" ({page.lines} lines)'
        return Result.error(f"offset {page.first} is out of range for {where}")
    context.seen.read(target.resolved, stamp, lines=page.lines, shown=page.whole)
    context.seen.traces.keep(stamp.digest, tracer.trace())
    rows = "".join(f"{row}\n" for row in page.rows) + "\n" * bool(page.rows)
    notes = [*page.notes(), *[_UNSAVED] * stamp.unsaved]
    return Result(_content(target, "file", rows + _footer(page), notes))


async def _media(target: Target, kind: str | None, context: Context) -> Result:
    """A file that is no text, if the model takes it as it is."""
    if kind not in context.takes:
        what = f" of type {kind}, which the model in use does not take" if kind else ""
        return target.refusal(f"binary file{what}")
    try:
        file = await context.files.read(target.resolved, _MOST_MEDIA)
    except OSError as error:
        return target.refusal(error)
    if file is None:
        return target.refusal("not found")
    data = b64encode(file.data).decode()
    text = target.envelope(kind, f"({len(file.data)} bytes, shown whole)")
    return Result(text, media=(Media(kind, data, basename(target.path)),))


def _content(target: Target, kind: str, shown: str, facts: list[str]) -> str:
    notes = f"\n({', '.join(facts)})" * bool(facts)
    return target.envelope(kind, f"<content>\n{shown}{notes}\n</content>")


def _footer(page: Page) -> str:
    lines = f"Showing lines {page.first}-{page.last}"
    on = f"Use offset={page.last + 1} to continue."
    if page.full:
        return f"(Output capped. {lines}. {on})"
    if page.last < page.lines:
        return f"({lines} of {page.lines}. {on})"
    return f"(End of file - total {page.lines} lines)"


READ = Tool(
    "read",
    "Read a text file; each line comes as `number: text`. A file must be read before it is "
    "edited, and read whole before it is overwritten.",
    ReadArguments,
    _card,
    _prepare,
    parallel=True,
)
