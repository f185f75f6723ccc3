"""What the agent meets in a replay in the place of the world: answers, tools, nothing else.

Rule 1: what has not come yet is waited for: it comes as the recording is played.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import anyio

from bridge.config import Config, Provider
from bridge.core.likeness import Line
from bridge.core.wire import dump, load_object
from bridge.errors import ConfigError, LoginRequired, model_error
from bridge.responses.transport import frames_in
from tools.base import Bytes, Command, Ended, Found, Hold, Query, Result
from tools.frozen import frozen
from tools.seen import Stamp, Version


@dataclass(eq=False, slots=True)
class Gate:
    """One recorded call of a tool; its parts come as the recording is played."""

    access: Line | None = None
    result: Result | None = None
    moved: anyio.Event = field(default_factory=anyio.Event)

    def add(self, line: Line) -> None:
        if "access" in line:
            self.access = line
        if "result" in line:
            self.result = line["result"]
        self.moved.set()
        self.moved = anyio.Event()

    async def part(self, name: str) -> Any:
        """The access, or the result where there is none; or the result: when it has come."""
        while getattr(self, name) is None and self.result is None:
            await self.moved.wait()
        return getattr(self, name) or self.result


class Recorded:
    """A recorded answer of the model's, as responses/answer.py reads it."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.failure: Exception | None = None
        self._lines: deque[Line] = deque()
        self.moved = anyio.Event()

    def add(self, line: Line) -> None:
        if "status" in line:
            self.status, self.headers = line["status"], line.get("headers", {})
        elif "fault" in line:
            self.failure = model_error(line["fault"])
        elif "complaint" in line:
            self.failure = ConfigError(str(line["complaint"]))
        else:
            self._lines.append(line)
        self.moved.set()
        self.moved = anyio.Event()

    async def begun(self) -> "Recorded":
        """It, when its head has come; raises what failed."""
        while not self.status and self.failure is None:
            await self.moved.wait()
        if not self.status and self.failure is not None:
            raise self.failure
        return self

    async def read(self) -> bytes | None:
        """The next piece; what failed is raised after the last."""
        while not self._lines and self.failure is None:
            await self.moved.wait()
        if not self._lines and self.failure is not None:
            raise self.failure
        line = self._lines.popleft()
        return await anyio.sleep_forever() if line.get("end") == "closed" else _piece(line)

    def frames(self, whole: bytes) -> list[tuple[str, str]]:
        """As those of an answer that comes over the network."""
        return frames_in(whole)

    async def close(self) -> None:
        """Nobody hears of it."""


def _piece(line: Line) -> bytes | None:
    if "end" in line:
        return None
    if "body" in line:
        return str(line["body"]).encode("utf-8", "replace")
    data = dump(line["event"]) if "event" in line else str(line.get("data", "")).encode()
    rows = b"\n".join(b"data: " + row for row in data.split(b"\n"))
    return b"event: " + str(line.get("name", "message")).encode() + b"\n" + rows + b"\n\n"


class NoFiles:
    """The files of a machine that has none."""

    async def resolve(self, path: str) -> str:
        return path

    async def versions(self, paths: Iterable[str]) -> dict[str, Version | None]:
        return dict.fromkeys(paths)

    async def scan(self, path: str, feed: Callable[[bytes], None]) -> Stamp | None: ...

    async def read(self, path: str, most: int) -> Bytes | None: ...

    async def replace(self, path: str, data: bytes, expected: Stamp) -> Stamp:  # noqa: ARG002 (the port has it so)
        raise _untouched()

    async def create(self, path: str, data: bytes) -> Stamp:  # noqa: ARG002 (the port has it so)
        raise _untouched()

    async def remove(self, path: str, expected: Stamp) -> None:  # noqa: ARG002 (the port has it so)
        raise _untouched()

    async def search(self, query: Query, take: Callable[[Found], None]) -> str:  # noqa: ARG002 (the port has it so)
        return ""

    async def confirmed(self, found: Sequence[Found]) -> list[Found]:
        return list(found)


class NoShell:
    """The commands of a machine that runs none."""

    async def hold(self) -> Hold:
        return Hold()

    async def run(self, command: Command, output: Callable[[str], None]) -> Ended:  # noqa: ARG002 (as above)
        raise _untouched()


def _untouched() -> OSError:
    return OSError("a replay touches nothing")


@frozen
class NoKeys:
    """Knows of every server only whether its key was missing."""

    missing: Mapping[str, str]
    """By URL, what was said of that."""

    async def key(self, provider: Provider) -> None:
        if provider.base_url in self.missing:
            raise LoginRequired(self.missing[provider.base_url])

    async def instead(self, provider: Provider, refused: str | None) -> None: ...

    def secrets(self, config: Config) -> tuple[str, ...]:  # noqa: ARG002 (the port has it so)
        return ()


class Stdout:
    """What the agent writes, line by line."""

    def __init__(self, say: Callable[[Line], None]) -> None:
        self._say = say
        self._half = b""

    def write(self, data: bytes) -> None:
        *lines, self._half = (self._half + data).split(b"\n")
        for line in lines:
            self._say(load_object(line))

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def room(self) -> None:
        await anyio.lowlevel.checkpoint()
