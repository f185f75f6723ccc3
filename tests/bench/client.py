"""An editor for one process under measure: it sends, reads in large gulps and notes the moments.

Moments are nanoseconds of the clock that all processes share.
"""

import json
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

DEADLINE = 60.0
"""Seconds for one wait: what takes longer has failed."""
_GULP = 1024 * 1024
_STAMP = re.compile(r"@(\d+);")
_CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}


class Failed(Exception):
    """The process did not do what is measured."""


class Client:
    """One process and what it said; use it as a context manager."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self.cwd = cwd
        self.begun = time.monotonic_ns()
        self.process = subprocess.Popen(
            command, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN | select.POLLHUP)
        self._rest = b""
        self._ids = 0
        self.answers: dict[int, tuple[int, Any]] = {}
        """When each answer came, and what it was."""
        self.first_text: dict[str, int] = {}
        """When each session first said something since it was asked."""
        self.said: dict[str, list[str]] = {}
        self.delays: list[int] = []
        """How long each stamped delta took."""
        self.bytes = 0

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._stdout.close()
        with suppress(OSError):
            self._stdin.close()

    # -- what an editor asks

    def initialize(self) -> int:
        """Greet; gives when that was answered."""
        params = {"protocolVersion": 1, "clientCapabilities": _CAPABILITIES}
        return self.call("initialize", **params)[0]

    def new(self) -> tuple[str, int]:
        """A new session, and when it was there."""
        moment, result = self.call("session/new", cwd=str(self.cwd), mcpServers=[])
        return str(result["sessionId"]), moment

    def begin(self, session: str, text: str) -> int:
        """Send a prompt; gives its id."""
        self.first_text.pop(session, None)
        self.said[session] = []
        prompt = [{"type": "text", "text": text}]
        return self.send("session/prompt", sessionId=session, prompt=prompt)

    def finish(self, number: int) -> tuple[int, Any]:
        """Wait for an answer: when it came, and its result."""
        self.until(lambda: number in self.answers)
        moment, message = self.answers.pop(number)
        if "result" not in message:
            raise Failed(str(message)[:300])
        return moment, message["result"]

    def prompt(self, session: str, text: str) -> int:
        """How many nanoseconds a whole turn took."""
        begun = time.monotonic_ns()
        return self.finish(self.begin(session, text))[0] - begun

    def call(self, method: str, **params: Any) -> tuple[int, Any]:
        return self.finish(self.send(method, **params))

    def leave(self) -> int:
        """Close the line; gives how long the process took to be gone."""
        begun = time.monotonic_ns()
        self._stdin.close()
        self.process.wait(DEADLINE)
        return time.monotonic_ns() - begun

    # -- the line

    def send(self, method: str, **params: Any) -> int:
        self._ids += 1
        self._write({"id": self._ids, "method": method, "params": params})
        return self._ids

    def notify(self, method: str, **params: Any) -> None:
        self._write({"method": method, "params": params})

    def until(self, done: Callable[[], bool]) -> None:
        """Read until this holds."""
        limit = time.monotonic() + DEADLINE
        while not done():
            if time.monotonic() > limit:
                raise Failed(f"nothing came of it in {DEADLINE:.0f} s")
            if self._poll.poll(50):
                self._hear(os.read(self._stdout.fileno(), _GULP))

    def _write(self, members: Mapping[str, Any]) -> None:
        self._stdin.write(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")
        self._stdin.flush()

    def _hear(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if not data:
            raise Failed(f"the process ended with {self.process.wait()}")
        self.bytes += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line), now)

    def _take(self, message: Any, now: int) -> None:
        match message:
            case {"method": "session/update", "params": {"sessionId": session, "update": update}}:
                if update["sessionUpdate"] == "agent_message_chunk":
                    self._listen(session, update["content"]["text"], now)
            case {"method": "session/request_permission", "id": number}:
                options = message["params"]["options"]
                allowed = next(one for one in options if one["kind"] == "allow_once")
                outcome = {"outcome": "selected", "optionId": allowed["optionId"]}
                self._write({"id": number, "result": {"outcome": outcome}})
            case {"id": number}:
                self.answers[number] = now, message
            case _:
                pass

    def _listen(self, session: str, text: str, now: int) -> None:
        self.first_text.setdefault(session, now)
        self.said.setdefault(session, []).append(text)
        self.delays += [now - int(stamp) for stamp in _STAMP.findall(text)]
