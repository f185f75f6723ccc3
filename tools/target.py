"""The file a call is about: found once, judged for the policy, and found again before the deed."""

import os
from typing import Literal

from anyio.to_thread import run_sync

from tools import paths
from tools.base import Access, Context, Files, FileTooLarge, NotRegular, Result
from tools.frozen import frozen
from tools.regular import LED_AWAY
from tools.repository import kept

Verb = Literal["read", "edit", "write", "search"]

_TMP = "/tmp"  # noqa: S108 (the name that programs know)


@frozen
class Target:
    """A file the model named."""

    verb: Verb
    """What the model wants to do, for the texts it reads."""
    path: str
    """Absolute, as the model means it."""
    resolved: str
    """Where that leads, symbolic links followed."""
    access: Access

    def refusal(self, why: OSError | str) -> Result:
        """The call cannot be made, and why."""
        return Result.error(f'cannot {self.verb} "{self.path}": {_reason(why)}')

    async def moved(self, files: Files) -> Result | None:
        """The refusal, where the path leads elsewhere than when it was judged."""
        here = await files.resolve(self.path) == self.resolved
        return None if here else self.refusal(LED_AWAY)

    def envelope(self, kind: str, text: str) -> str:
        """A text about the file for the model, after the file's path and kind."""
        return f"<path>{self.path}</path>\n<type>{kind}</type>\n{text}"


async def locate(verb: Verb, file_path: str, context: Context) -> Target | Result:
    """The file or folder that a call names, or a Result that says why it can be none."""
    if wrong := paths.fault(file_path):
        return Result.error(wrong)
    path, own = await meant(paths.absolute(file_path, context.cwd), context)
    resolved = await context.files.resolve(path)
    changes = verb in ("edit", "write")
    roots = (*context.roots, *own, *(context.readable if verb == "read" else ()))
    of_git = await run_sync(kept, context.roots) if changes else ()
    # A delicate name counts before and after links are followed.
    access = Access(
        "edit" if changes else "read",
        subject=resolved,
        outside=not paths.is_inside(resolved, *roots),
        secret=paths.is_secret(path) or is_hidden(resolved, context),
        protected=paths.is_protected(path)
        or paths.is_protected(resolved)
        or paths.is_inside(resolved, *context.private, *of_git),
        named="" if path == resolved else path,
    )
    target = Target(verb, path, resolved, access)
    if paths.is_off_limits(resolved):
        return target.refusal("not a regular file")
    return target


def is_hidden(resolved: str, context: Context) -> bool:
    """The file is one to ask about wherever it lies: it may hold credentials, or is our own."""
    ours = paths.is_inside(resolved, *context.private)
    readable = paths.is_inside(resolved, *context.readable)
    return paths.is_secret(resolved) or (ours and not readable)


async def meant(path: str, context: Context) -> tuple[str, tuple[str, ...]]:
    """The path that the model means, and the folder that the session has for itself there.

    While commands see a folder of the session's as /tmp, what they put there is what is meant.
    """
    if not paths.is_inside(path, _TMP) or paths.is_inside(path, *context.roots):
        return path, ()
    tmp = (await context.shell.hold()).tmp
    if not tmp or paths.is_inside(path, tmp):
        return path, (tmp,) if tmp else ()
    seen = tmp + path.removeprefix(_TMP)
    if not await run_sync(os.path.lexists, seen) and await run_sync(os.path.lexists, path):
        return path, ()
    return seen, (tmp,)


def _reason(why: OSError | str) -> str:
    match why:
        case str():
            return why
        case FileNotFoundError():
            return "not found"
        case FileTooLarge(size=size):
            return f"too large ({size} bytes)"
        case NotRegular():
            return f"not a regular file ({why})"
        case _:
            return (why.strerror or str(why)).lower()
