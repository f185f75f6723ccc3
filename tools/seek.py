"""What glob and grep share: where they look, and how much of what was found is told.

Rule 1: a folder is judged like a file that is read: one outside the roots asks first.
Rule 2: what is told depends on what there is, not on the order in which it was found.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tools import paths
from tools.base import Context, Found, Prepared, Query, Result
from tools.frozen import frozen
from tools.spelling import one_line
from tools.target import Target, is_hidden, locate

MOST = 200
"""Files or lines that are told."""
MOST_BYTES = 32 * 1024
"""Of all that is told."""

MORE = "Narrow the search to see the others."

_OF_THE_KERNEL = ("/proc", "/sys", "/dev")


@frozen
class Summary:
    """What a search found: the first files, and how much there is in all."""

    first: tuple[Found, ...]
    files: int
    hits: int
    more: str
    """Why there may be more; empty: this is all."""

    @property
    def rest(self) -> str:
        """What is to be said of a search that did not come to its end."""
        return f"\n(The search is incomplete: {self.more}.)" if self.more else ""


class Shortlist:
    """Keeps the files that come first by their paths, and counts all."""

    def __init__(self) -> None:
        self.files = self.hits = 0
        self._kept: list[Found] = []

    def take(self, found: Found) -> None:
        """Take one more file."""
        self.files += 1
        self.hits += found.hits
        self._kept.append(found)
        if len(self._kept) > 2 * MOST:
            self._kept = list(self.first())

    def first(self) -> tuple[Found, ...]:
        """The first files of all that were taken."""
        return tuple(sorted(self._kept, key=lambda found: found.path)[:MOST])


def title(verb: str, wanted: str, path: str | None, cwd: str) -> str:
    """The card's title: what is looked for, and where if a place was named."""
    where = f" in {paths.shown(path, cwd)}" if path and path.strip() else ""
    return f"{verb} {one_line(wanted)}{where}"


async def place(path: str | None, context: Context) -> Target | Result:
    """The folder or file to look in; the working directory if none is named."""
    target = await locate("search", path if path and path.strip() else ".", context)
    if isinstance(target, Target) and (
        target.resolved == "/" or paths.is_inside(target.resolved, *_OF_THE_KERNEL)
    ):
        return target.refusal("it is no folder of files; name one below")
    return target


def prepared(
    target: Target, query: Query, context: Context, tell: Callable[[Summary], Result]
) -> Prepared:
    """The search, ready to be made; tell: what becomes of what it finds."""
    access = replace(target.access, secret=_secret(target), protected=False)

    async def run() -> Result:
        if moved := await target.moved(context.files):
            return moved
        found = Shortlist()

        def take(one: Found) -> None:
            # Lines of a file that usually holds credentials are shown when it was named itself.
            is_open = not one.hits or access.secret or not is_hidden(one.path, context)
            if is_open and not context.is_barred(one.path):
                found.take(one)

        try:
            more = await context.files.search(query, take)
        except OSError as error:
            return target.refusal(error)
        first = found.first()
        there = await context.files.confirmed(first)
        return tell(_summary(found, first, there, more))

    return Prepared(access, run)


def _summary(
    found: Shortlist, first: Sequence[Found], there: Sequence[Found], more: str
) -> Summary:
    """What is told: nothing of files that are others by now."""
    gone = [one for one in first if one not in there]
    hits = found.hits - sum(one.hits for one in gone)
    return Summary(
        tuple(there), found.files - len(gone), hits, more or "files changed meanwhile" * bool(gone)
    )


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things, in words."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def fitting(rows: Iterator[str]) -> list[str]:
    """The first rows, up to what may be told."""
    kept: list[str] = []
    room = MOST_BYTES
    for row in rows:
        room -= len(row.encode("utf-8", "replace")) + 1
        if len(kept) == MOST or room < 0:
            break
        kept.append(row)
    return kept


def _secret(target: Target) -> bool:
    """The folder or file itself is one that usually holds credentials."""
    return target.access.secret or paths.is_secret(f"{target.resolved}/-")
