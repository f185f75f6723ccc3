"""The glob tool: the files whose paths fit a pattern.

Rule 1: what git ignores is not listed, nor are .git and symbolic links.
"""

from functools import partial

from pydantic import Field

from tools import globs, paths
from tools.base import Arguments, Card, Console, Context, Prepared, Query, Result, Tool
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
    if wrong := globs.fault(pattern):
        return Result.error(f"pattern is invalid: {wrong}")
    query = Query(target.resolved, glob=pattern, distrusted=context.roots)
    return prepared(target, query, context, partial(_told, arguments, context.cwd))


def _told(arguments: GlobArguments, cwd: str, found: Summary) -> Result:
    if not found.files:
        return Result(f'No files fit "{arguments.pattern}".{found.rest}')
    rows = fitting(paths.shown(one.path, cwd) for one in found.first)
    total = counted(found.files, "file")
    if len(rows) < found.files:
        total = f"Showing {len(rows)} of {total}. {MORE}"
    text = "\n".join([*rows, "", f"({total}){found.rest}"])
    return Result(text, shown=(Console(text),))


GLOB = Tool(
    "glob",
    "List files by a pattern of their paths. What git ignores is left out.",
    GlobArguments,
    _card,
    _prepare,
    parallel=True,
)
