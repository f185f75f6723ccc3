"""What a tool is, and the ports through which it reaches files, processes and people.

Rule 1: a tool knows neither ACP nor Responses. It describes itself in the words of this file.
Rule 2: a tool never raises for a mistake of the model's: it answers with a Result that is not ok.
Rule 3: bind() and card() are pure, so that a stored conversation shows what the live one showed.
Rule 4: prepare() looks, run() acts. What prepare() shows is what a person is asked to allow.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tools.argv import Line
from tools.frozen import frozen
from tools.seen import Seen, Stamp, Version

Kind = Literal["read", "edit", "execute", "search", "fetch", "other"]


# -- what is shown of a call -----------------------------------------------------------------------


@frozen
class Place:
    """A file a call is about, for editors that follow along."""

    path: str
    """Absolute."""
    line: int | None = None
    """1-based."""


@frozen
class Text:
    """Markdown for the person who watches."""

    text: str
    form: Literal["text"] = "text"


@frozen
class Console:
    """What a command printed, verbatim."""

    text: str
    form: Literal["console"] = "console"


@frozen
class Change:
    """One file before and after: whole texts, or the two strings of an edit not yet made."""

    path: str
    """Absolute."""
    old: str | None
    """None: the file is new."""
    new: str
    form: Literal["change"] = "change"


@frozen
class Attached:
    """A picture, sound, link or file, in the form that MCP and the editor's protocol share."""

    block: Mapping[str, object]
    form: Literal["attached"] = "attached"


Shown: TypeAlias = Text | Console | Change | Attached


@frozen
class Card:
    """How a call looks before it has a result."""

    title: str
    kind: Kind = "other"
    places: tuple[Place, ...] = ()
    shown: tuple[Shown, ...] = ()


# -- how a call ends -------------------------------------------------------------------------------


@frozen
class PlanApproved:
    """The person approved the plan: plan mode ends before the next request."""


@frozen
class GoalReport:
    """The model says that the goal is reached, or that it cannot go on."""

    status: Literal["complete", "blocked"]
    reason: str


Signal: TypeAlias = PlanApproved | GoalReport


@frozen
class Step:
    """One step of the plan that the person sees."""

    content: str
    status: Literal["pending", "in_progress", "completed"]


@frozen
class Media:
    """A picture, or a PDF: what a model may take beside text."""

    kind: str
    """Its media type."""
    data: str = field(repr=False)
    """Base64."""
    name: str = ""
    """Of the file it comes from."""


@frozen
class Result:
    """How a call ended."""

    text: str
    """What the model is told."""
    ok: bool = True
    shown: tuple[Shown, ...] | None = None
    """What the person sees; None: the text itself."""
    title: str | None = None
    """Replaces the card's title."""
    data: Mapping[str, object] | None = None
    """The result as plain JSON data; None: the text under "output"."""
    signal: Signal | None = None
    steps: tuple[Step, ...] | None = None
    """The plan that the person sees from now on, whole; None: the one before."""
    media: tuple[Media, ...] = ()
    """What the model gets beside the text."""

    @staticmethod
    def error(text: str) -> "Result":
        """A call that failed; the text says what is wrong and what to do next."""
        return Result(f"Error: {text}", ok=False)


# -- a call that can be made -----------------------------------------------------------------------


@frozen
class Access:
    """What a call would touch: the facts a policy judges by."""

    action: Literal["none", "read", "edit", "run", "call"]
    """call: a tool of another program, which may do anything."""
    subject: str = ""
    """The resolved absolute path, the command or the tool: what a lasting permission is about."""
    outside: bool = False
    """The path, or the command's working directory, lies outside the roots."""
    secret: bool = False
    """The name is one that usually holds credentials."""
    protected: bool = False
    """Editing it could make other programs run code: .git, editor settings, our own config."""
    harmless: bool = False
    """A command that is proven to only read, or a tool that the user trusts to."""
    held: bool = False
    """A command that a sandbox keeps to what the mode and the preset allow."""
    unheld: str = ""
    """Why it is not held though there is a sandbox, as a sentence for a person."""
    wider: bool = False
    """A command that is to run with fewer limits than the others."""
    named: str = ""
    """The absolute path as it was given, before symbolic links; empty: the same."""
    line: Line | None = None
    """What a command line would run."""


@frozen
class Rewrite:
    """What a call would make of one file, byte for byte."""

    path: str
    """Absolute and resolved."""
    old: bytes | None
    """None: there is no file yet."""
    new: bytes


@frozen
class Prepared:
    """A call that can be made: what it would touch, how that looks, and the deed itself."""

    access: Access
    run: Callable[[], Awaitable[Result]]
    shown: tuple[Shown, ...] | None = None
    """For the person who is asked: the whole change. None: the card says enough."""
    rewrite: Rewrite | None = None
    """The one file it changes, for whoever writes down what happens or takes it back."""
    declined: str | None = None
    """What the model is told when the person says no; None: the usual."""
    live: bool = False
    """What it puts out is shown while it runs, as that of a command is."""


# -- the port to a person --------------------------------------------------------------------------


@frozen
class Option:
    """One choice of a question."""

    label: str
    description: str = ""


@frozen
class Question:
    """One question with its choices; without choices the answer is free text."""

    id: str
    header: str
    question: str
    options: tuple[Option, ...] = ()
    multi_select: bool = False


@frozen
class Approved:
    """The person agreed to the plan."""


@frozen
class Rejected:
    """The person did not agree to the plan."""

    feedback: str = ""


@frozen
class Answers:
    """Question id -> what was chosen or typed."""

    chosen: Mapping[str, tuple[str, ...]]


@frozen
class NoAnswer:
    """Nobody answered; the text says why, as a sentence for the model."""

    text: str


@frozen
class Filled:
    """What became of a form; content only where it was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, object] | None = None


class Person(Protocol):
    """The person in front of the editor, asked on behalf of one call."""

    async def review(self, plan: str) -> Approved | Rejected | NoAnswer:
        """Show the plan and wait for the person, for as long as it takes."""
        ...

    async def ask(
        self, title: str, message: str, questions: tuple[Question, ...]
    ) -> Answers | NoAnswer:
        """Put questions and wait for the person, for as long as it takes."""
        ...

    async def fill(self, message: str, form: Mapping[str, object]) -> Filled:
        """Show a form, given as JSON schema, and wait for the person, for as long as it takes."""
        ...


# -- the ports to files ----------------------------------------------------------------------------


@frozen
class Bytes:
    """A regular file as it was at one moment."""

    data: bytes
    stamp: Stamp


@frozen
class Query:
    """What is looked for: the files of a folder, or lines in them."""

    top: str
    """A folder, or one file; absolute and resolved."""
    pattern: str | None = None
    """A regular expression, as Python reads it, that a line must hold; None: the files as such."""
    ignore_case: bool = False
    glob: str | None = None
    """What a file's path from the folder on must fit, in the language of tools.globs."""
    distrusted: tuple[str, ...] = ()
    """Folders from which no program is run."""


@frozen
class Found:
    """A file that a search found."""

    path: str
    """Absolute."""
    hits: int = 0
    """Lines that hold the pattern."""
    lines: tuple[tuple[int, str], ...] = ()
    """The first of them, by number, each as far as it is shown."""


class Files(Protocol):
    """Regular files of one machine, for all sessions of a process.

    Paths are absolute and, but for resolve(), resolved. OSError says what failed; what is not a
    regular file is NotRegular, and is neither opened nor waited for.
    """

    async def resolve(self, path: str) -> str:
        """The path with every symbolic link followed; what does not exist is kept as written."""
        ...

    async def versions(self, paths: Iterable[str]) -> dict[str, Version | None]:
        """Which state each file is in, as far as its status tells; None: nothing can be seen."""
        ...

    async def scan(self, path: str, feed: Callable[[bytes], None]) -> Stamp | None:
        """Feed all bytes, block by block, in a worker thread; None if nothing is there.

        What feed raises ends the scan and comes out.
        """
        ...

    async def read(self, path: str, most: int) -> Bytes | None:
        """The whole file; None if nothing is there. More bytes than `most`: FileTooLarge."""
        ...

    async def replace(self, path: str, data: bytes, expected: Stamp) -> Stamp:
        """Put data in the place of the expected bytes, in the same file: mode, owner, links stay.

        Raises StaleFile if the file holds other bytes by now; those are never lost.
        """
        ...

    async def create(self, path: str, data: bytes) -> Stamp:
        """Make a new file and its folders; FileExistsError if something is there by now."""
        ...

    async def remove(self, path: str, expected: Stamp) -> None:
        """Delete a file that holds the expected bytes; StaleFile if it holds others by now."""

    async def search(self, query: Query, take: Callable[[Found], None]) -> str:
        """Give what is found, in any order; why there may be more, or nothing if that is all.

        Left out are what git ignores, .git, symbolic links, and for lines files that are no text.
        """
        ...

    async def confirmed(self, found: Sequence[Found]) -> list[Found]:
        """Those of the files that are what a search found: a look that follows no link."""
        ...


class Buffers(Protocol):
    """The texts that an editor holds, which may not be on disk yet; paths are as it names them."""

    async def buffer(self, path: str) -> str | None:
        """The text of a file as the editor has it, saved or not; None where it does not say."""
        ...

    async def set_buffer(self, path: str, text: str) -> bool:
        """Let the editor have a whole new text of a file; whether it said that it took it."""
        ...


class NotRegular(OSError):
    """Something is there that is not a regular file; the text says what."""


class FileTooLarge(OSError):
    """The file has more bytes than asked for."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.size = size


class StaleFile(OSError):
    """The file changed since it was looked at."""


# -- the ports to commands -------------------------------------------------------------------------


@frozen
class Ended:
    """How a command ended."""

    stdout: str
    stderr: str
    code: int | None
    """None: it was killed by a signal."""
    signal: str | None = None
    """Such as SIGSEGV."""
    timed_out: bool = False
    truncated: bool = False
    """Output was dropped; the texts say where and how much."""
    whole: tuple[str, ...] = ()
    """The files that hold all of such output."""
    notes: tuple[str, ...] = ()
    """What a sandbox has to say about it."""


Reach = Literal["read-only", "workspace-write", "danger-full-access"]
"""What a command may change: nothing, the roots, everything that the user may."""

Wider = Literal["git-write", "workspace-write", "danger-full-access"]
"""What may be asked for, for one command: git-write is workspace-write with `.git`."""

REACHES: tuple[Reach, ...] = ("read-only", "workspace-write", "danger-full-access")
"""The narrow ones first."""


Git = Literal["commands", "always", "never"]
"""Which commands may change the repository they run in: those of lines that run git, all, none."""


@frozen
class Hold:
    """How commands are held to what they may change."""

    reach: Reach = "danger-full-access"
    strength: Literal["full", "partial", "none"] = "none"
    gaps: tuple[str, ...] = ()
    """What it leaves open, or why there is none."""
    refusal: str = ""
    """Why no command may run at all."""
    tmp: str = ""
    """The folder that commands see as /tmp; empty: they see what everybody sees."""
    git: Git = "always"
    """Which of them may change `.git`."""


@frozen
class Command:
    """One bash command line, and how it is to run."""

    line: str
    cwd: str
    seconds: float
    """After which it is ended; may be infinite."""
    reach: Reach | None = None
    """One that the person has allowed, for this command alone."""
    git: bool = False
    """It may change `.git`, where that is not settled for all."""


class Shell(Protocol):
    """Commands of one machine."""

    async def hold(self) -> Hold:
        """How a command that starts now would be held."""
        ...

    async def run(self, command: Command, output: Callable[[str], None]) -> Ended:
        """Run one command to its end; `output` gets every piece as it comes.

        Nothing the command started is left when this returns, also when it is cancelled.
        OSError: the command could not be started.
        """
        ...


class Job(Protocol):
    """A command that goes on in the background."""

    @property
    def id(self) -> str: ...
    @property
    def ended(self) -> Ended | OSError | None:
        """How it ended, or why it could not be started; None: it runs."""
        ...

    @property
    def why(self) -> str:
        """Why it was ended, if not by the model."""
        ...

    def news(self) -> str:
        """What it printed since this was asked last."""
        ...

    async def news_within(self, seconds: float) -> None:
        """Wait until it says something or ends, or so long."""
        ...

    async def end_within(self, seconds: float) -> None:
        """Wait until it ends, or so long."""
        ...

    async def kill(self) -> None:
        """End it, with all that it started; returns when nothing is left."""
        ...


Run: TypeAlias = Callable[[Callable[[str], None]], Awaitable[Ended]]
"""Runs a command to its end; its argument takes what the command prints. Raises OSError."""


class Jobs(Protocol):
    """The commands that go on in the background of a session."""

    async def start(self, run: Run, reach: Reach) -> Job:
        """Let a command run on that may change so much; OSError: there can be no more."""
        ...

    def find(self, job: str) -> Job | None:
        """The job of this id, running or not."""
        ...


# -- a tool ----------------------------------------------------------------------------------------


@frozen
class Context:
    """All that a call may use."""

    cwd: str
    """Absolute and resolved: the base of relative paths."""
    roots: tuple[str, ...]
    """Absolute and resolved: where files may be read and written without asking."""
    files: Files
    shell: Shell
    seen: Seen
    person: Person
    planning: bool
    """Plan mode is in force."""
    output: Callable[[str], None]
    """Takes what a running call prints, piece by piece, for the person who watches."""
    readable: tuple[str, ...] = ()
    """Where files may be read without asking, besides the roots."""
    private: tuple[str, ...] = ()
    """Our own files and folders, resolved: settings, keys, sessions, answers."""
    is_barred: Callable[[str], bool] = lambda _: False
    """Whether a rule keeps the file at a resolved path from being read."""
    jobs: Jobs | None = None
    """None: nothing goes on after a call."""
    takes: frozenset[str] = frozenset()
    """The media types that the model takes beside text."""


class Arguments(BaseModel):
    """What the model may pass: the JSON schema in the request comes from the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


A = TypeVar("A", bound=Arguments)


@frozen
class Bound:
    """A tool together with arguments that are valid for it."""

    card: Card
    prepare: Callable[[Context], Awaitable[Prepared | Result]]


class AnyTool(Protocol):
    """What a call needs of a tool, be it ours or another program's."""

    @property
    def mutates(self) -> bool: ...
    @property
    def parallel(self) -> bool: ...
    def bind(self, arguments: Mapping[str, object], cwd: str) -> Bound | Result:
        """The call with these arguments, or a Result that says what is wrong with them."""
        ...


@frozen
class Offer:
    """What the model is told of a tool."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON schema of the arguments, as pydantic writes it."""


@frozen
class Tool(Generic[A]):
    """One tool the model may call."""

    name: str
    description: str
    arguments: type[A]
    card: Callable[[A, str], Card]
    """How a call looks; the text is the session's cwd."""
    prepare: Callable[[A, Context], Awaitable[Prepared | Result]]
    mutates: bool = False
    """Refused in plan mode."""
    parallel: bool = False
    """Calls may run at the same time as others of this kind."""

    @property
    def offer(self) -> Offer:
        """What the model is told of it."""
        return Offer(self.name, self.description, self.arguments.model_json_schema())

    def bind(self, arguments: Mapping[str, object], cwd: str) -> Bound | Result:
        """The call with these arguments, or a Result that says what is wrong with them."""
        try:
            valid = self.arguments.model_validate(arguments)
        except ValidationError as error:
            return Result.error(f"invalid arguments: {_complaint(error)}")
        return Bound(self.card(valid, cwd), partial(self.prepare, valid))


def _complaint(error: ValidationError) -> str:
    """The first faults, each as `field: what is wrong`; never the values."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    named = [
        f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in faults
    ]
    return "; ".join(named[:3])
