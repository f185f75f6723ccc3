"""The shell tool: one bash command line, run to its end.

It knows neither how commands are started nor what may run: the port and the policy do.

Rule 1: a command that ran is a success whatever its exit code; the text tells the code.
Rule 2: the model gets the output as it is, the person the same without the final line ends.
"""

import math
import stat
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import anyio
from pydantic import Field

from tools import paths, told
from tools.aftermath import watched
from tools.argv import Line
from tools.base import (
    REACHES,
    Access,
    Arguments,
    Card,
    Command,
    Console,
    Context,
    Ended,
    Hold,
    Prepared,
    Reach,
    Result,
    Run,
    Shown,
    Text,
    Tool,
    Wider,
)
from tools.reads import reads
from tools.shell_job import report
from tools.shell_line import is_disguised, look
from tools.spelling import holds_unseen, one_line, spelled
from tools.target import meant

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
    run_in_background: bool | None = Field(
        default=None,
        description="Let it run on, a server say, and go on at once: its id is for shell_job.",
    )


class ConfinedArguments(ShellArguments):
    """What the model passes where commands run in a sandbox."""

    sandbox_permissions: Wider | None = Field(
        default=None,
        description="Only to repeat a command that the sandbox denied something it must have: "
        "the limits it needs instead. The user is asked.",
    )
    justification: str | None = Field(
        default=None, description="With sandbox_permissions: why, in a sentence for the user."
    )


def _card(arguments: ShellArguments, _cwd: str) -> Card:
    return Card(
        title=one_line(arguments.command),
        kind="execute",
        shown=(Text(arguments.description),),
    )


async def _prepare(arguments: ShellArguments, context: Context) -> Prepared | Result:
    command = arguments.command
    if problem := _fault(command):
        return _failure(f"command {problem}")
    found = await _folder(arguments.workdir, context)
    if isinstance(found, Result):
        return found
    folder, own = found
    hold = await context.shell.hold()
    line = look(command)
    wanted = _wanted(arguments, hold, line)
    if refused := hold.refusal or _not_wider(wanted, hold):
        return _failure(refused)
    line = replace(line, reads=await reads(line.plain, folder, context))
    outside = not paths.is_inside(folder, *context.roots, *own)
    beside, reach = arguments.run_in_background, _reach_of(wanted)
    milliseconds = arguments.timeout_ms or (None if beside else _DEFAULT_TIMEOUT)

    run = partial(
        context.shell.run,
        Command(
            command,
            folder,
            math.inf if milliseconds is None else milliseconds / 1000,
            reach,
            git=line.git or wanted == "git-write",
        ),
    )

    deed = partial(_to_its_end, context, run, milliseconds)
    if beside:
        deed = partial(_beside, context, run, reach or hold.reach)
    access = _access(command, line, hold, wanted, outside=outside)
    return Prepared(access, deed, _shown(arguments, hold, wanted), declined=_declined(wanted))


def _access(command: str, line: Line, hold: Hold, wanted: Wider | None, *, outside: bool) -> Access:
    is_full, disguised = hold.strength == "full", is_disguised(command)
    unheld = "It holds characters that cannot be seen." if is_full and disguised else ""
    return Access(
        "run",
        subject=command,
        outside=outside,
        harmless=wanted is None and line.reads != () and all(line.reads),
        held=is_full and wanted is None and not disguised,
        unheld="The sandbox has gaps here." if hold.strength == "partial" else unheld,
        wider=wanted is not None,
        line=line,
    )


async def _to_its_end(context: Context, run: Run, milliseconds: int | None) -> Result:
    """Run a command, and look what it did to files that the model has seen."""
    try:
        async with watched(context) as changes:
            ended = await run(context.output)
        return _result(ended, milliseconds, changes)
    except OSError as error:
        return _failure(f"the command could not be started: {error}")


_FIRST_LOOK = 0.5
"""Seconds: what fails at once says so in the answer."""


async def _beside(context: Context, run: Run, reach: Reach) -> Result:
    """Let a command run on beside the conversation."""
    if context.jobs is None:
        return _failure("nothing can run in the background here")
    try:
        job = await context.jobs.start(run, reach)
    except OSError as error:
        return _failure(str(error))
    await job.end_within(_FIRST_LOOK)
    return report(job, f"Started {job.id}; follow it with shell_job.")


_SHOWN = {
    None: "Without a sandbox: it can do what you can do.",
    "git-write": "In the sandbox, with changes in the workspace and in its .git.",
    "workspace-write": "In the sandbox, with changes in the workspace.",
    "danger-full-access": "Outside the sandbox: it can do what you can do.",
}
"""What a person is told of a command that is to run with these limits instead of others."""


def _wanted(arguments: ShellArguments, hold: Hold, line: Line) -> Wider | None:
    """The wider limits that the model asks for; `.git` need not be asked for where it is open."""
    wanted = arguments.sandbox_permissions if isinstance(arguments, ConfinedArguments) else None
    if wanted != "git-write" or hold.reach == "read-only":
        return wanted
    is_open = hold.git == "always" or (hold.git == "commands" and line.git)
    return None if is_open or hold.strength != "full" else wanted


def _reach_of(wanted: Wider | None) -> Reach | None:
    return "workspace-write" if wanted == "git-write" else wanted


def _not_wider(wanted: Wider | None, hold: Hold) -> str:
    """Why these limits cannot be asked for; nothing, if they can."""
    if wanted is None:
        return ""
    if wanted == "git-write" and hold.git == "never":
        return 'sandbox_permissions "git-write" is not to be had: the user keeps .git as it is'
    if wanted == "git-write" and hold.reach == "workspace-write":
        return ""
    if REACHES.index(_reach_of(wanted) or hold.reach) > REACHES.index(hold.reach):
        return ""
    return (
        f'sandbox_permissions "{wanted}" is not wider than "{hold.reach}", which is in force; '
        "leave it out"
    )


def _shown(arguments: ShellArguments, hold: Hold, wanted: Wider | None) -> tuple[Shown, ...] | None:
    """What a person is told who is asked: what for, with which limits, and the whole command."""
    limits, whole = _limits(arguments, hold, wanted), _whole(arguments.command)
    if not limits and not whole:
        return None
    return (Text(arguments.description), *([Text(told.lines(*limits))] if limits else []), *whole)


def _limits(arguments: ShellArguments, hold: Hold, wanted: Wider | None) -> tuple[str, ...]:
    """How the command would be held, where that is worth a word, and the model's reason."""
    if wanted is None and (hold.strength == "full" or hold.reach == "danger-full-access"):
        return ()
    limits = _SHOWN[wanted]
    if wanted is None and hold.strength == "partial":
        limits = f"In a sandbox with gaps: {'; '.join(hold.gaps)}."
    reason = arguments.justification if isinstance(arguments, ConfinedArguments) else None
    return tuple(filter(None, (limits, reason)))


def _whole(command: str) -> tuple[Shown, ...]:
    """The command with all its characters, where its title does not show them."""
    shown = spelled(command)
    if holds_unseen(command):
        return Text("It holds characters that cannot be seen:"), Console(shown)
    if (
        len(one_line(command, len(command) * 8)) > len(one_line(command))
        or shown != command.strip()
    ):
        return Text("The whole command:"), Console(shown)
    return ()


def _declined(wanted: Wider | None) -> str | None:
    return None if wanted is None else f'the user rejected escalating this command to "{wanted}"'


async def _folder(workdir: str | None, context: Context) -> tuple[str, tuple[str, ...]] | Result:
    """Where the command runs, resolved, and what the session has there; or what is wrong."""
    if workdir is None:
        return await context.files.resolve(context.cwd), ()
    if problem := _fault(workdir):
        return _failure(f"workdir {problem}")
    path, own = await meant(paths.absolute(workdir, context.cwd), context)
    try:
        path = await context.files.resolve(path)
        found = await anyio.Path(path).stat()
    except OSError as error:
        return _failure(f'workdir "{path}" cannot be used: {error.strerror}')
    if not stat.S_ISDIR(found.st_mode):
        return _failure(f'workdir "{path}" is not a folder')
    return path, own


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


def _result(ended: Ended, milliseconds: int | None, changes: Iterable[str]) -> Result:
    text = told.lines(told.output(ended), *told.markers(ended, milliseconds), *changes)
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


SHELL: Tool[ShellArguments] = Tool(
    name="shell",
    description=(
        "Run a command in bash and get its output. Each call is a fresh shell: the working "
        "directory and variables do not persist, standard input is empty, there is no terminal. "
        "What a command leaves running ends with the call, unless run_in_background is set. To "
        "look at or change files, use read, edit and write: the output of cat does not count as "
        "reading."
    ),
    arguments=ShellArguments,
    card=_card,
    prepare=_prepare,
)

CONFINED_SHELL: Tool[ConfinedArguments] = Tool(
    name=SHELL.name,
    description=SHELL.description
    + " Commands run in a sandbox: they change files in the workspace and in /tmp only, without "
    "a network unless the user allowed one. .git changes only by lines that run git; its hooks and "
    "settings stay as they are.",
    arguments=ConfinedArguments,
    card=_card,
    prepare=_prepare,
)
"""The same tool, where this machine has a sandbox."""
