"""A small ACP client: starts an agent, sends it one prompt and shows what comes.

It must not know which agent it is, nor which model is behind it.

Rule 1: one thing at a time: while an answer is awaited, what the agent asks is answered at once.
Rule 2: an agent that dies, is silent for too long or breaks the protocol is an AgentFailed.
Rule 3: whatever happens, the agent is gone at the end.
"""

import os
import select
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, cast

from bridge.core.wire import dump, load_object
from bridge.demo.screen import Screen

Message: TypeAlias = dict[str, Any]

_END_SECONDS = 2.0
"""How long an agent may take to end once its input has."""
_CAN: Message = {"elicitation": {"form": {}}}


class AgentFailed(Exception):
    """The agent did not do its part; the text says what it did instead."""


class Client:
    """One agent process and its conversation.

    ask puts a question to the person and gives "yes", "no", or what to do instead.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        screen: Screen,
        ask: Callable[[str], str],
        *,
        patience: float = 60.0,
    ) -> None:
        self._screen = screen
        self._ask = ask
        self._patience = patience
        self._received = b""
        self._requests = 0
        self._session = ""
        # A session of its own: Ctrl-C is ours to handle.
        self._process = subprocess.Popen(  # noqa: S603 (the agent that we are the demo of)
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self._to_agent = self._pipe(self._process.stdin)
        self._from_agent = self._pipe(self._process.stdout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._process.stdin, self._process.stdout):
            if end is not None:
                end.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def open(self, folder: str, mode: str) -> None:
        """Start a session in this folder and this mode."""
        version = self._request("initialize", {"protocolVersion": 1, "clientCapabilities": _CAN})
        if version.get("protocolVersion") != 1:
            raise AgentFailed("the agent speaks another version of the protocol")
        opened = self._request("session/new", {"cwd": folder, "mcpServers": []})
        self._session = str(opened.get("sessionId"))
        self._request("session/set_mode", {"sessionId": self._session, "modeId": mode})

    def prompt(self, text: str) -> str:
        """Send a prompt and show the turn to its end; gives the stop reason."""
        content = [{"type": "text", "text": text}]
        result = self._request("session/prompt", {"sessionId": self._session, "prompt": content})
        self._screen.end()
        return str(result.get("stopReason"))

    def _request(self, method: str, params: Message) -> Message:
        self._requests += 1
        call = self._requests
        self._send({"jsonrpc": "2.0", "id": call, "method": method, "params": params})
        while True:
            message = self._next()
            given = _object(message.get("params"))
            match message:
                case {"method": str(asked), "id": number}:
                    self._answer(number, asked, given)
                case {"method": "session/update"}:
                    self._screen.update(_object(given.get("update")))
                case {"id": number, "error": error} if number == call:
                    raise AgentFailed(str(_object(error).get("message")))
                case {"id": number, "result": result} if number == call:
                    return _object(result)
                case _:
                    pass

    def _answer(self, number: object, method: str, params: Message) -> None:
        match method:
            case "elicitation/create":
                result = self._review(params)
            case "session/request_permission":
                result = self._permit(params)
            case _:
                error = {"code": -32601, "message": f"this client has no {method}"}
                self._send({"jsonrpc": "2.0", "id": number, "error": error})
                return
        self._send({"jsonrpc": "2.0", "id": number, "result": result})

    def _review(self, params: Message) -> Message:
        fields = _object(_object(params.get("requestedSchema")).get("properties"))
        if "choice" not in fields or "custom" not in fields:
            return {"action": "decline"}
        said = self._ask(str(params.get("message")).partition("\n")[0])
        content = {
            "yes": {"choice": "Approve"},
            "no": {"choice": "Keep planning"},
        }.get(said, {"custom": said})
        return {"action": "accept", "content": content}

    def _permit(self, params: Message) -> Message:
        title = _object(params.get("toolCall")).get("title")
        agreed = self._ask(f"Allow “{title}”?") == "yes"
        wanted = "allow_once" if agreed else "reject_once"
        for option in map(_object, params.get("options") or []):
            if option.get("kind") == wanted:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
        return {"outcome": {"outcome": "cancelled"}}

    def _send(self, message: Message) -> None:
        data = dump(message) + b"\n"
        try:
            while data:
                data = data[os.write(self._to_agent, data) :]
        except BrokenPipeError:
            raise AgentFailed("the agent ended before the conversation did") from None

    def _next(self) -> Message:
        while b"\n" not in self._received:
            self._receive()
        line, _, self._received = self._received.partition(b"\n")
        try:
            return load_object(line)
        except ValueError:
            raise AgentFailed("the agent sent a line that is not JSON") from None

    def _receive(self) -> None:
        if not select.select([self._from_agent], [], [], self._patience)[0]:
            raise AgentFailed(f"the agent was silent for {self._patience:.0f} s")
        data = os.read(self._from_agent, 65536)
        if not data:
            raise AgentFailed("the agent ended before the conversation did")
        self._received += data

    @staticmethod
    def _pipe(end: Any) -> int:
        return end.fileno()


def _object(value: object) -> Message:
    return cast("Message", value) if isinstance(value, dict) else {}
