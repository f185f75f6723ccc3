"""What a command did to files that the model has seen: it is told at once, not at its next edit.

Rule 1: a file counts as changed by the command if it looked otherwise before, and other bytes than
the model has seen are there now.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tools import paths
from tools.base import Context

_MOST_LOOKED_AT = 50
"""Files that are read again after one command."""
_MOST_LISTED = 10


@asynccontextmanager
async def watched(context: Context) -> AsyncGenerator[list[str]]:
    """While a command runs; afterwards the list holds what the model is to be told."""
    told: list[str] = []
    known = context.seen.paths()
    before = await context.files.versions(known) if known else {}
    yield told
    after = await context.files.versions(known) if known else {}
    touched = [path for path in known if before[path] != after[path]]
    changed = [path for path in touched[:_MOST_LOOKED_AT] if await _is_other(path, context)]
    context.seen.overtaken(changed)
    if changed:
        listed = ", ".join(paths.shown(path, context.cwd) for path in changed[:_MOST_LISTED])
        more = f" and {len(changed) - _MOST_LISTED} more" * (len(changed) > _MOST_LISTED)
        told.append(f"[changed since you read it: {listed}{more}]")


async def _is_other(path: str, context: Context) -> bool:
    try:
        stamp = await context.files.scan(path, lambda _: None)
    except OSError:
        return True
    sight = None if stamp is None else context.seen.find(path, stamp)
    return stamp is None or sight is None or sight.stamp.digest != stamp.digest
