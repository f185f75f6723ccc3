"""The grep tool: the lines that hold a pattern, file by file.

Rule 1: what git ignores is not searched, nor are .git, symbolic links, files that are no text, and
files that usually hold credentials unless they were named themselves.
Rule 2: what grep shows of a file does not count as reading it.
"""

import re
import warnings
from collections.abc import Iterator
from functools import partial

from pydantic import Field

from tools import globs, paths
from tools.base import Arguments, Card, Console, Context, Found, Prepared, Query, Result, Tool
from tools.seek import MORE, Summary, counted, fitting, place, prepared, title

_LONGEST_PATTERN = 10_000


class GrepArguments(Arguments):
    """What the model passes to grep."""

    pattern: str = Field(description="Regular expression, matched within each line.")
    path: str | None = Field(None, description="Folder or file (default: working directory).")
    glob: str | None = Field(None, description="Only files like *.py or src/**/*.{ts,tsx}.")
    ignore_case: bool | None = None
    files_only: bool | None = Field(None, description="Only paths, each with its count of lines.")


def _card(arguments: GrepArguments, cwd: str) -> Card:
    return Card(title("Grep", arguments.pattern, arguments.path, cwd), "search")


async def _prepare(arguments: GrepArguments, context: Context) -> Prepared | Result:
    glob = arguments.glob.strip() if arguments.glob else ""
    if wrong := _fault(arguments.pattern):
        return Result.error(wrong)
    if glob and (wrong := globs.fault(glob)):
        return Result.error(f"glob is invalid: {wrong}")
    target = await place(arguments.path, context)
    if isinstance(target, Result):
        return target
    query = Query(
        target.resolved,
        arguments.pattern,
        bool(arguments.ignore_case),
        glob.removeprefix(f"{target.resolved}/") or None,
        context.roots,
    )
    return prepared(target, query, context, partial(_told, arguments, context.cwd))


def _fault(pattern: str) -> str:
    """What is wrong with a pattern; nothing, if it can be searched for."""
    if not pattern or len(pattern) > _LONGEST_PATTERN or re.search("[\0\n\ud800-\udfff]", pattern):
        return "pattern is empty, too long, or holds a line end or a NUL"
    with warnings.catch_warnings():
        # Python warns where sets inside sets, as in [[:alpha:]], mean something else elsewhere.
        warnings.simplefilter("error", FutureWarning)
        try:
            re.compile(pattern)
        except FutureWarning:
            return r"pattern is ambiguous: inside [...] write \[ for a bracket, and no [:alpha:]"
        except (re.error, OverflowError, RecursionError) as error:
            return f"pattern is no regular expression: {error}; \\ before a sign makes it plain"
    return ""


def _told(arguments: GrepArguments, cwd: str, found: Summary) -> Result:
    if not found.files:
        return Result(f"No lines match; files of secrets are searched only by name.{found.rest}")
    if arguments.files_only:
        rows = fitting(f"{paths.shown(one.path, cwd)}: {one.hits}" for one in found.first)
        whole = found.files
    else:
        rows = fitting(_rows(found.first, cwd))
        whole = found.hits
    total = f"{counted(found.hits, 'match', 'matches')} in {counted(found.files, 'file')}"
    if len(rows) < whole:
        total = f"Showing {len(rows)} of {total}. {MORE}"
    text = "\n".join([*rows, "", f"({total}){found.rest}"])
    return Result(text, shown=(Console(text),))


def _rows(files: tuple[Found, ...], cwd: str) -> Iterator[str]:
    """One row per line that matched; the first of a file comes after the file's name."""
    between = ""
    for one in files:
        heading = f"{between}{paths.shown(one.path, cwd)}\n"
        for number, line in one.lines:
            yield f"{heading}{number}: {line}"
            heading, between = "", "\n"


GREP = Tool(
    "grep",
    "Search lines of text files. What git ignores, binary files and files of secrets are left out.",
    GrepArguments,
    _card,
    _prepare,
    parallel=True,
)
