"""A folder on disk with one session in it, whose model calls the file tools."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tools.base import (
    Access,
    Answers,
    Approved,
    Change,
    Command,
    Context,
    Ended,
    Files,
    Filled,
    Hold,
    NoAnswer,
    Prepared,
    Question,
    Rejected,
    Result,
    Shell,
)
from tools.edit import EDIT
from tools.glob import GLOB
from tools.grep import GREP
from tools.local import LocalFiles
from tools.read import READ
from tools.seen import Seen
from tools.shell import SHELL
from tools.write import WRITE

TOOLS = {"read": READ, "edit": EDIT, "write": WRITE, "glob": GLOB, "grep": GREP, "shell": SHELL}

FIRST = {"glob": "pattern", "grep": "pattern", "shell": "command"}
"""What the argument that always stands first is called, where it is no file_path."""


@dataclass
class Nobody:
    """Neither a person nor a shell is there."""

    tmp: str = field(default="", kw_only=True)
    """What commands would see as /tmp."""

    async def review(self, plan: str) -> Approved | Rejected | NoAnswer:
        return NoAnswer("nobody is there")

    async def ask(
        self, title: str, message: str, questions: tuple[Question, ...]
    ) -> Answers | NoAnswer:
        return NoAnswer("nobody is there")

    async def hold(self) -> Hold:
        return Hold(tmp=self.tmp)

    async def fill(self, message: str, form: Mapping[str, object]) -> Filled:
        return Filled("cancel")

    async def run(self, command: Command, output: Callable[[str], None]) -> Ended:
        raise OSError("no shell")


def context(cwd: str, **given: Any) -> Context:
    """What a call may use in a folder: this is given, and else nobody is there."""
    nobody = Nobody()
    alone = Context(
        cwd=cwd,
        roots=(cwd,),
        files=LocalFiles(),
        shell=nobody,
        seen=Seen(),
        person=nobody,
        planning=False,
        output=lambda _: None,
    )
    return replace(alone, **given)


@dataclass(slots=True)
class Workspace:
    """Files by their names; calls as the model makes them."""

    root: Path
    files: Files = field(default_factory=LocalFiles)
    seen: Seen = field(default_factory=Seen)
    tmp: str = ""
    takes: frozenset[str] = frozenset()
    barred: bool = False
    """A rule keeps every file from being read."""
    private: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    shell: Shell | None = None

    def __post_init__(self) -> None:
        self.root = self.root.resolve()

    def put(self, name: str, data: bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def is_barred(self, _path: str) -> bool:
        return self.barred

    def names(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir())

    async def prepare(self, tool: str, file_path: str, **arguments: Any) -> Prepared | Result:
        named = {FIRST.get(tool, "file_path"): file_path}
        bound = TOOLS[tool].bind({**named, **arguments}, str(self.root))
        if isinstance(bound, Result):
            return bound
        return await bound.prepare(
            context(
                str(self.root),
                files=self.files,
                shell=self.shell or Nobody(tmp=self.tmp),
                seen=self.seen,
                takes=self.takes,
                is_barred=self.is_barred,
                private=self.private,
                readable=self.readable,
            )
        )

    async def call(self, tool: str, file_path: str, **arguments: Any) -> Result:
        """The call's result."""
        prepared = await self.prepare(tool, file_path, **arguments)
        return await prepared.run() if isinstance(prepared, Prepared) else prepared

    async def said(self, tool: str, file_path: str, **arguments: Any) -> str:
        """What the model is told, with the workspace's path as ~."""
        result = await self.call(tool, file_path, **arguments)
        assert result.text.startswith("Error: ") != result.ok
        return self.told(result)

    def told(self, result: Result) -> str:
        """What the model reads of a result, with the workspace's path as ~."""
        return result.text.replace(str(self.root), "~")

    async def access(self, tool: str, file_path: str, **arguments: Any) -> Access:
        prepared = await self.prepare(tool, file_path, **arguments)
        assert isinstance(prepared, Prepared)
        return prepared.access


def change(result: Result | Prepared) -> Change:
    assert result.shown is not None
    (shown,) = result.shown
    assert isinstance(shown, Change)
    return shown
