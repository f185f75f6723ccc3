"""What a turn works with: what the model is offered, and the way to the tools behind it.

Rule 1: what is offered is data. The tools themselves load when a call, a link or a command first
needs them, or soon after a session has begun: the first request does not wait for them.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Protocol, TypeAlias

from bridge import knowledge
from bridge.acp.editor import SessionEditor
from bridge.core.effects import FunctionCall
from bridge.core.records import Announced, Item, Learned
from bridge.responses.request import function_tool
from bridge.session import Session
from tools.base import AnyTool, Files, Offer, Shell, Signal
from tools.frozen import frozen


class Running(Protocol):
    """The calls of one answer."""

    @property
    def signals(self) -> list[Signal]:
        """What the results mean beyond their text, in order."""
        ...

    async def run(self) -> None:
        """Run all of them; what a cancellation leaves open is ended as aborted."""
        ...


class ToolPort(Protocol):
    """The tools, and this machine's files and processes."""

    def tools_of(self, session: Session, /) -> Mapping[str, AnyTool]:
        """All that calls of this session may name."""
        ...

    def files_of(self, session: Session, editor: SessionEditor, /) -> Files:
        """The files as this session sees them."""
        ...

    def shell(self, session: Session, /) -> Shell:
        """How commands of this session run."""
        ...

    async def followed(
        self, blocks: Sequence[Item], session: Session, editor: SessionEditor, /
    ) -> tuple[Item, ...]:
        """The blocks of a prompt, with what its links to files show."""
        ...

    def calls(
        self,
        session: Session,
        editor: SessionEditor,
        calls: Sequence[tuple[FunctionCall, Announced]],
        /,
    ) -> Running:
        """The calls of one answer, to be run."""
        ...


Load: TypeAlias = Callable[[], Awaitable[ToolPort]]
"""Gives the tools, which may have to be loaded first."""


async def followed(
    blocks: Sequence[Item], session: Session, editor: SessionEditor, load: Load
) -> tuple[Item, ...]:
    """The blocks of a prompt, with what its links to files show."""
    if not any(block.get("type") == "resource_link" for block in blocks):
        return tuple(blocks)
    return await (await load()).followed(blocks, session, editor)


@frozen
class Workbench:
    """What is offered, and how to get at it."""

    offers: Iterable[Offer]
    load: Load
    user_folder: str | None = None
    """Where the user's own instructions and skills are."""
    learn: Callable[[Session, str | None], Iterator[Learned]] = knowledge.due
    """What the model is to be told of the project now."""
    follow: Callable[
        [Sequence[Item], Session, SessionEditor, Load], Awaitable[tuple[Item, ...]]
    ] = followed
    """A prompt with what its links to files show."""
    _offered: dict[bool, list[dict[str, object]]] = field(
        default_factory=dict[bool, list[dict[str, object]]]
    )

    def offered(self, *, strict: bool) -> list[dict[str, object]]:
        """The tools as a request names them; the same list every time."""
        if strict not in self._offered:
            self._offered[strict] = [
                function_tool(offer.name, offer.description, offer.parameters, strict=strict)
                for offer in self.offers
            ]
        return self._offered[strict]
