"""A tool of an MCP server, in the place of one of ours.

Rule 1: it runs without asking only if its server calls it read-only and the user trusts that.
Rule 2: a call has a limit of silence: progress begins it anew, a person who fills in a form stops
it.
Rule 3: what a server says is scrubbed of the values we gave it before anybody sees it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import anyio

from bridge.core import form, remote
from bridge.core.records import Item
from bridge.core.remote import RemoteTool
from bridge.core.remote_content import Output, result
from bridge.core.updates import fenced
from bridge.wanted import Wanted
from tools.base import Bound, Card, Console, Context, Filled, Prepared, Result, Shown, Text
from tools.frozen import frozen

_CHANGED = "The server has changed this tool since this session first saw it:"


class ServerFault(Exception):
    """A server failed us; the text is the end of a sentence about it."""


class Asked(Protocol):
    """Who made a call, for what the server has to say before it answers."""

    def progress(self, text: str) -> None:
        """The call is at work."""
        ...

    async def fill(self, message: str, schema: Mapping[str, Any]) -> Filled:
        """Have the person fill in a form."""
        ...


class Callee(Protocol):
    """Where the tool is."""

    async def call(self, tool: str, arguments: Mapping[str, object], asked: Asked) -> Output:
        """Make one call and wait for its answer; ServerFault."""
        ...


@frozen
class BoundTool:
    """One tool of one server, as calls.py takes it."""

    callee: Callee
    wanted: Wanted
    tool: RemoteTool
    former: RemoteTool | None = None
    """What it was before its server changed it."""

    @property
    def trusted(self) -> bool:
        """It is believed to change nothing."""
        return self.wanted.trust_read_only and self.tool.read_only

    @property
    def mutates(self) -> bool:
        """Refused in plan mode."""
        return not self.trusted

    @property
    def parallel(self) -> bool:
        """May run at the same time as others that change nothing."""
        return self.trusted

    def bind(self, arguments: Mapping[str, object], cwd: str) -> Bound | Result:
        """The call with these arguments; whether they are right is the server's to say."""
        del cwd
        title = f"{self.wanted.name}: {self.tool.name}"
        card = Card(title, "read" if self.trusted else "other")
        return Bound(card, partial(self._prepare, arguments))

    async def _prepare(self, arguments: Mapping[str, object], context: Context) -> Prepared:
        access = remote.access(self.wanted.name, self.tool, trusted=self.trusted)
        # Not every editor shows the arguments of a card, and they are what is to be allowed.
        shown: list[Shown] = []
        if self.former is not None and (change := remote.change(self.former, self.tool)):
            shown.append(Text(f"{_CHANGED}\n\n{fenced(change, 'diff')}"))
        if arguments:
            shown.append(Console(json.dumps(arguments, indent=2, ensure_ascii=False)))
        run = partial(self._run, arguments, context)
        return Prepared(access, run, tuple(shown) or None, live=True)

    async def _run(self, arguments: Mapping[str, object], context: Context) -> Result:
        wanted = self.wanted
        with anyio.CancelScope() as scope:
            asked = _Asked(wanted, context, scope)
            asked.begin()
            try:
                output = await self.callee.call(self.tool.name, arguments, asked)
            except ServerFault as fault:
                reason = wanted.scrubbed(str(fault))
                return Result.error(f'the call to MCP server "{wanted.name}" failed: {reason}')
            return result(_scrubbed(output, wanted), context.takes)
        return Result.error(
            f'MCP server "{wanted.name}" was silent for {wanted.call_timeout:g} s, so the call was '
            "given up; it may have had effects"
        )


@frozen
class _Asked:
    wanted: Wanted
    context: Context
    scope: anyio.CancelScope

    def begin(self) -> None:
        """The limit of silence begins anew."""
        self.scope.deadline = anyio.current_time() + self.wanted.call_timeout

    def progress(self, text: str) -> None:
        self.begin()
        self.context.output(f"{self.wanted.scrubbed(text)}\n")

    async def fill(self, message: str, schema: Mapping[str, Any]) -> Filled:
        wanted_form = form.form(schema)
        if wanted_form is None:
            return Filled("decline")
        self.scope.deadline = math.inf
        try:
            says = f'MCP server "{self.wanted.name}" asks:\n\n{self.wanted.scrubbed(message)}'
            filled = await self.context.person.fill(says, wanted_form)
        finally:
            self.begin()
        return form.checked(schema, filled.content) if filled.action == "accept" else filled


def _scrubbed(output: Output, wanted: Wanted) -> Output:
    """The answer without values of ours, wherever they stand in it."""

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return wanted.scrubbed(value)
        if isinstance(value, Mapping):
            return {key: clean(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType] (any JSON)
        if isinstance(value, list):
            return [clean(one) for one in value]  # pyright: ignore[reportUnknownVariableType] (any JSON)
        return value

    if not wanted.secrets:
        return output
    blocks: tuple[Item, ...] = tuple(clean(block) for block in output.blocks)
    return replace(output, blocks=blocks, structured=clean(output.structured))
