"""The shell tool: one bash command line, run to its end.

It knows neither how commands are started nor what may run: the port and the policy do.

Rule 1: a command that ran is a success whatever its exit code; the text tells the code.
Rule 2: the model gets the output as it is, the person the same without the final line ends.
"""

import re
import stat
from dataclasses import replace
from glob import glob

import anyio
import anyio.to_thread
from pydantic import Field

from tools import paths
from tools.base import (
    Access,
    Arguments,
    Card,
    Console,
    Context,
    Ended,
    Prepared,
    Result,
    Text,
    Tool,
)
from tools.output import one_line
from tools.shell_line import Word, commands, is_harmless

_DEFAULT_TIMEOUT = 120_000
_LONGEST_TIMEOUT = 600_000
"""Milliseconds."""


class ShellArguments(Arguments):
    """What the model passes to run a command."""

    command: str = Field(description="The bash command line.")
    description: str = Field(description="What it does, in 5 to 10 words, for the user.")
    timeout_ms: int | None = Field(
        default=None,
        alias="timeoutMs",
        ge=1,
        le=_LONGEST_TIMEOUT,
        description=f"Default {_DEFAULT_TIMEOUT}, at most {_LONGEST_TIMEOUT}.",
    )
    workdir: str | None = Field(
        default=None, description="Where it runs; relative to the session's folder, the default."
    )


def _card(arguments: ShellArguments, _cwd: str) -> Card:
    return Card(
        title=one_line(arguments.command),
        kind="execute",
        shown=(Text(arguments.description),),
    )


_WANDERERS = frozenset({"cd", "rg"})
"""After one of these, or by it, other files are read than those that are named."""
_TREE_READERS = frozenset({"grep", "egrep", "fgrep"})
_RECURSIVE = re.compile(r"-[A-Za-z]*[rRd]|--(?:recursive|dereference-recursive|directories)")


async def _prepare(arguments: ShellArguments, context: Context) -> Prepared | Result:
    command = arguments.command
    if problem := _fault(command):
        return _failure(f"command {problem}")
    folder = await _folder(arguments.workdir, context)
    if isinstance(folder, Result):
        return folder
    access = Access(
        "run",
        subject=command,
        outside=not any(paths.is_inside(folder, root) for root in context.roots),
        harmless=is_harmless(command) and await _stays_inside(command, folder, context),
    )
    milliseconds = arguments.timeout_ms or _DEFAULT_TIMEOUT

    async def run() -> Result:
        try:
            ended = await context.shell.run(
                command, cwd=folder, timeout=milliseconds / 1000, output=context.output
            )
        except OSError as error:
            return _failure(f"the command could not be started: {error}")
        return _result(ended, milliseconds)

    return Prepared(access, run)


async def _stays_inside(command: str, folder: str, context: Context) -> bool:
    """Whether a command that only reads does so where `read` would need no permission either.

    What cannot be told is a no: folders that it enters, options that name files, whole trees.
    """
    for name, *arguments in commands(command):
        if name.text in _WANDERERS:
            return False
        for word in arguments:
            if word.text.startswith("-"):
                if "/" in word.text or (name.text in _TREE_READERS and _RECURSIVE.match(word.text)):
                    return False
            elif not await _is_open(word, folder, context):
                return False
    return True


async def _is_open(word: Word, folder: str, context: Context) -> bool:
    """Whether a word, if it is the name of files, names only such as anyone may read."""
    if word.text.startswith("~"):
        return False
    named = paths.absolute(word.text, folder)
    found = await anyio.to_thread.run_sync(glob, named) if word.pattern else []
    for path in (named, *found):
        resolved = await context.files.resolve(path)
        inside = any(paths.is_inside(resolved, root) for root in context.roots)
        if not inside or paths.is_secret(path) or paths.is_secret(resolved):
            return False
    return True


async def _folder(workdir: str | None, context: Context) -> str | Result:
    """Where the command runs, resolved; or what is wrong with it."""
    if workdir is None:
        return await context.files.resolve(context.cwd)
    if problem := _fault(workdir):
        return _failure(f"workdir {problem}")
    path = paths.absolute(workdir, context.cwd)
    try:
        path = await context.files.resolve(path)
        found = await anyio.Path(path).stat()
    except OSError as error:
        return _failure(f'workdir "{path}" cannot be used: {error.strerror}')
    return path if stat.S_ISDIR(found.st_mode) else _failure(f'workdir "{path}" is not a folder')


def _fault(text: str) -> str:
    """Why the system cannot take this text; nothing, if it can."""
    if not text.strip():
        return "is empty"
    if "\0" in text:
        return "holds a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds a lone surrogate, which is not text"
    return ""


def _failure(text: str) -> Result:
    result = Result.error(text)
    return replace(result, shown=(Console(result.text),))


def _result(ended: Ended, milliseconds: int) -> Result:
    text = _lines(_body(ended), *_markers(ended, milliseconds))
    data = {
        "exitCode": ended.code,
        "signal": ended.signal,
        "stdout": ended.stdout,
        "stderr": ended.stderr,
        "truncated": ended.truncated,
    }
    return Result(
        text,
        shown=(Console(text.rstrip("\n")),),
        data={name: value for name, value in data.items() if value is not None},
    )


def _body(ended: Ended) -> str:
    errors = [f"[stderr]\n{ended.stderr}"] if ended.stderr else []
    printed = [ended.stdout] if ended.stdout else []
    return _lines(*printed, *errors) or "(no output)"


def _lines(*texts: str) -> str:
    """The texts, each beginning on a line of its own; nothing is added at the end."""
    joined = ""
    for text in texts:
        joined += text if not joined or joined.endswith("\n") else f"\n{text}"
    return joined


def _markers(ended: Ended, milliseconds: int) -> list[str]:
    """How the command ended, where that is worth a word."""
    markers: list[str] = []
    if ended.timed_out:
        markers.append(f"[timed out after {milliseconds}ms]")
    if ended.signal is not None:
        markers.append(f"[killed by signal: {ended.signal}]")
    elif ended.code:
        markers.append(f"[exit code: {ended.code}]")
    return markers


SHELL = Tool(
    name="shell",
    description=(
        "Run a command in bash and get its output. Each call is a fresh shell: the working "
        "directory and variables do not persist, standard input is empty, there is no terminal. "
        "What a command leaves in the background ends with the call. To look at or change files, "
        "use read, edit and write: the output of cat does not count as reading."
    ),
    arguments=ShellArguments,
    card=_card,
    prepare=_prepare,
)
