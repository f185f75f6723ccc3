"""The glob tool: the files whose paths fit a pattern.

Rule 1: what git ignores is not listed, nor are .git and symbolic links.
"""

from collections.abc import Sequence

from pydantic import Field

from tools import paths
from tools.base import Arguments, Card, Console, Context, Prepared, Query, Result, Tool
from tools.globs import wanted
from tools.seek import MORE, Summary, counted, fitting, place, prepared, title


class GlobArguments(Arguments):
    """What the model passes to glob."""

    pattern: str = Field(description="Such as *.py (at any depth), src/**/*.{ts,tsx} or /*.toml.")
    path: str | None = Field(None, description="Folder to look in (default: working directory).")


def _card(arguments: GlobArguments, cwd: str) -> Card:
    return Card(title("Glob", arguments.pattern, arguments.path, cwd), "search")


async def _prepare(arguments: GlobArguments, context: Context) -> Prepared | Result:
    target = await place(arguments.path, context)
    if isinstance(target, Result):
        return target
    pattern = arguments.pattern.strip().removeprefix(f"{target.resolved}/")
    try:
        wanted(pattern)
    except ValueError as error:
        return Result.error(f"pattern is invalid: {error}")
    query = Query(target.resolved, glob=pattern, distrusted=context.roots)

    def tell(found: Summary) -> Result:
        return _told(arguments, found, context.cwd)

    return prepared(target, query, context, tell)


def _told(arguments: GlobArguments, found: Summary, cwd: str) -> Result:
    if not found.files:
        return Result(f'No files fit "{arguments.pattern}".{found.rest}')
    rows = fitting(paths.shown(one.path, cwd) for one in found.first)
    text = "\n".join([*rows, "", _footer(rows, found)])
    return Result(text, shown=(Console(text),))


def _footer(rows: Sequence[str], found: Summary) -> str:
    if len(rows) < found.files:
        return f"(Showing {len(rows)} of {found.files} files. {MORE}){found.rest}"
    return f"({counted(found.files, 'file')}){found.rest}"


GLOB = Tool(
    "glob",
    "List files by a pattern of their paths. What git ignores is left out.",
    GlobArguments,
    _card,
    _prepare,
    parallel=True,
)
