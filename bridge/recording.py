"""Writes down what happens on both wires, and what tools found: one file is a report of a fault.

One JSON object per line: `who`, `t` (milliseconds since the start) and
  start   version, system, the configuration or what is wrong with it
  editor  message (or text, where it was none), as it came
  agent   message, as it was sent
  ask     the request number and its body
  model   the number again, and status with headers, one event, a body that is no stream, or the end
  tool    the call's number: name and arguments, what it would touch, its result
  end     the agent ended in order

Rule 1: nothing is written but through core/recorded.py, which takes out secrets. Headers of
requests are never even looked at.
Rule 2: the file is made new, for its owner alone.
Rule 3: a file that cannot be written to any more ends the recording, and nothing else.
"""

import json
import os
import platform
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, Protocol, cast

from bridge import __version__, log
from bridge.acp.editor import SessionEditor
from bridge.config import Config
from bridge.core.recorded import FORMAT, Lines, message, take_server_secrets
from bridge.core.records import Item, Learned
from bridge.core.scrub import SCRUBBED, scrubbed
from bridge.core.wire import load_object
from bridge.errors import BridgeError, ConfigError, ModelError
from bridge.responses.answer import Reply
from bridge.responses.upstream import HEADERS
from bridge.session import Session
from bridge.workbench import Load, Workbench
from tools.base import Context, Prepared, Result, Tool

LIVE = frozenset({"exit_plan_mode", "request_user_input", "todo_write", "update_goal"})
"""Tools that look at nothing but their arguments and the person: they need no record."""

_TELLING = frozenset({
    *HEADERS, "content-type", "x-should-retry", "retry-after", "retry-after-ms", "x-request-id",
    "x-oai-request-id", "apim-request-id", "cf-ray",
})  # fmt: skip
"""The headers of answers that the agent heeds."""

_MOST_BODY = 64 * 1024
_SECRET_TABLES = ("headers", "env")
_FREE_TABLES = (*_SECRET_TABLES, "query")
"""Tables of the configuration whose values may be secrets whatever they are called."""


class Wire(Protocol):
    """The editor's two descriptors."""

    on_read: Callable[[bytes], None] | None
    on_write: Callable[[bytes], None] | None


def begin(path: str) -> "Recording":
    """A recording in a new file; OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    return Recording(os.open(path, flags, 0o600))


class Recording:
    """The file that is written to, and the taps; owner of the descriptor."""

    def __init__(self, descriptor: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._descriptor: int | None = descriptor
        self._clock = clock
        self._begun = clock()
        self._lines = Lines()
        self._halves = {"editor": b"", "agent": b""}
        self._asks = self._calls = 0
        self._times: dict[tuple[str, str], int] = {}

    def write(self, who: str, **what: object) -> None:
        """Note one line; what is given is given away."""
        if self._descriptor is not None:
            milliseconds = round((self._clock() - self._begun) * 1000, 1)
            self._put(self._lines.feed({"who": who, "t": milliseconds, **what}))

    def end(self) -> None:
        """The agent ends in order."""
        for who in self._halves:
            self._take(who, b"\n")
        self.write("end")
        self._put(self._lines.end())
        self._close()

    # -- keys and configuration

    def hide(self, values: Iterable[str]) -> None:
        """Keep these out of all that is written from now on."""
        self._lines.hide(values)

    def record(
        self, line: Wire, load: Callable[[], Config], environment: Mapping[str, str]
    ) -> Callable[[], Config]:
        """Begin; gives the same way to the configuration, whose secrets are known from now on."""
        line.on_read, line.on_write = partial(self._take, "editor"), partial(self._take, "agent")

        def loaded() -> Config:
            config = load()
            self.hide(config.secrets(environment))
            self.hide(_free_values(config.model_dump(mode="json")))
            return config

        self._start(loaded, environment)
        return loaded

    def _start(self, load: Callable[[], Config], environment: Mapping[str, str]) -> None:
        """Write the first line."""
        known: dict[str, object] = {"format": FORMAT, "version": __version__}
        known["system"] = platform.system()
        try:
            config = load()
        except ConfigError as error:
            known["complaint"] = str(error)
        else:
            table = config.model_dump(mode="json", by_alias=True, exclude_unset=True)
            # What takes no part in a replay; the prompt would be taken for the name of its file.
            table.pop("mcp", None)
            for model in table["models"].values():
                model.pop("system_prompt_file", None)
            known["config"] = _plain_config(table)
            known["keyless"] = _keyless(config, environment)
        self.write("start", **known)

    # -- the editor's side

    def _take(self, who: str, data: bytes) -> None:
        """Bytes of the editor's or the agent's, cut anywhere."""
        *lines, self._halves[who] = (self._halves[who] + data).split(b"\n")
        for line in lines:
            if not line.strip():
                continue
            what = message(line.decode("utf-8", "replace"))
            if who == "editor" and "message" in what:
                self.hide(take_server_secrets(what["message"]))
            self.write(who, **what)

    # -- the model's side

    def tap(
        self, content: bytes, opening: Callable[[], Awaitable[Reply]]
    ) -> Callable[[], Awaitable[Reply]]:
        """The same way to an answer; the request, the answer and how it ends are noted."""

        async def opened() -> Reply:
            self._asks += 1
            number = self._asks
            self.write("ask", ask=number, body=load_object(content))
            try:
                reply = await opening()
            except BridgeError as error:
                self.write("model", ask=number, **_failure(error))
                raise
            told = {name: text for name, text in reply.headers.items() if name.lower() in _TELLING}
            self.write("model", ask=number, status=reply.status, headers=told)
            return _Tapped(reply, partial(self.write, "model", ask=number))

        return opened

    # -- this machine's side

    def taped(self, bench: Workbench) -> Workbench:
        """The same workbench; what it tells the model is noted."""

        def learn(session: Session, user_folder: str | None) -> Iterator[Learned]:
            learned = list(bench.learn(session, user_folder))
            self._told("knowledge", session, learned)
            return iter(learned)

        async def follow(
            blocks: Sequence[Item], session: Session, editor: SessionEditor, load: Load
        ) -> tuple[Item, ...]:
            shown = await bench.follow(blocks, session, editor, load)
            self._told("links", session, shown if len(shown) != len(blocks) else ())
            return shown

        return replace(bench, learn=learn, follow=follow)

    def tools(self, tools: Mapping[str, Tool[Any]]) -> Mapping[str, Tool[Any]]:
        """The same tools; what they find is noted."""
        return {
            name: tool if name in LIVE else replace(tool, prepare=partial(self._prepare, tool))
            for name, tool in tools.items()
        }

    def _told(self, name: str, session: Session, result: Sequence[object]) -> None:
        """Note what a session was told beside what its tools found, and which time it was."""
        time = self._times[name, session.id] = self._times.get((name, session.id), 0) + 1
        if result:
            self.write("tool", name=name, session=session.id, time=time, result=_plain(result))

    async def _prepare(
        self, tool: Tool[Any], arguments: Any, context: Context
    ) -> Prepared | Result:
        self._calls += 1
        note = partial(self.write, "tool", call=self._calls)
        note(name=tool.name, arguments=arguments.model_dump(mode="json", exclude_defaults=True))
        prepared = await tool.prepare(arguments, context)
        if isinstance(prepared, Result):
            note(result=_plain(prepared))
            return prepared
        note(
            access=_plain(prepared.access),
            shown=_plain(prepared.shown),
            declined=prepared.declined,
        )

        async def run() -> Result:
            result = await prepared.run()
            note(result=_plain(result))
            return result

        return replace(prepared, run=run)

    # -- the file

    def _put(self, lines: Iterator[bytes]) -> None:
        for line in lines:
            if self._descriptor is None:
                return
            try:
                left = memoryview(line)
                while left:
                    left = left[os.write(self._descriptor, left) :]
            except OSError as error:
                log.say(f"the recording ended, its file cannot be written: {error.strerror}")
                self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)


class _Tapped:
    """An answer that is read as the one inside, and noted."""

    def __init__(self, inner: Reply, note: Callable[..., None]) -> None:
        self._inner = inner
        self._note = note
        self.status = inner.status
        self.headers = inner.headers
        self._body: bytes | None = b""
        """What has come while it was no stream."""
        self._over = False

    async def read(self) -> bytes | None:
        """As that of the answer."""
        try:
            data = await self._inner.read()
        except ModelError as error:
            self._finish(**_failure(error))
            raise
        if data is None:
            self._finish(end="over")
        elif self._body is not None:
            self._body = (self._body + data)[:_MOST_BODY]
        return data

    def frames(self, whole: bytes) -> Iterator[tuple[str, str]]:
        """As those of the answer."""
        for name, text in self._inner.frames(whole):
            self._body = None
            self._note(**_frame(name, text))
            yield name, text

    async def close(self) -> None:
        """As that of the answer."""
        self._finish(end="closed")
        await self._inner.close()

    def _finish(self, **how: object) -> None:
        if self._over:
            return
        self._over = True
        if self._body:
            self._note(body=self._body.decode("utf-8", "replace"))
        self._note(**how)


def _frame(name: str, text: str) -> dict[str, object]:
    try:
        event = load_object(text)
    except ValueError:
        return {"name": name, "data": text}
    return {"event": event} if name in ("message", event.get("type")) else {
        "name": name, "event": event,
    }  # fmt: skip


def _failure(error: BridgeError) -> dict[str, object]:
    if isinstance(error, ModelError):
        return {"fault": _plain(error.fault)}
    return {"complaint": scrubbed(str(error))}


def _plain(value: object) -> Any:
    """Plain data as JSON, the caller's own."""

    def parts(one: object) -> object:
        if is_dataclass(one):
            return {field.name: getattr(one, field.name) for field in fields(one)}
        return dict(cast("Mapping[str, object]", one))

    return json.loads(json.dumps(value, default=parts))


def _plain_config(table: dict[str, Any]) -> dict[str, Any]:
    """The configuration without what may be a secret whatever it is called."""
    for name, value in table.items():
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            table[name] = (
                dict.fromkeys(inner, SCRUBBED) if name in _FREE_TABLES else _plain_config(inner)
            )
        elif name == "base_url" and isinstance(value, str):
            scheme, _, rest = value.partition("://")
            host, slash, path = rest.partition("/")
            table[name] = f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    return table


def _keyless(config: Config, environment: Mapping[str, str]) -> dict[str, str]:
    """The servers whose key is missing, and what is said of that."""
    missing: dict[str, str] = {}
    for name, provider in config.providers.items():
        try:
            provider.credentials(environment)
        except BridgeError as error:
            missing[name] = str(error)
    return missing


def _free_values(table: Mapping[str, Any]) -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            yield from map(str, inner.values()) if name in _SECRET_TABLES else _free_values(inner)
