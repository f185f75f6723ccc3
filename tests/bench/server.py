"""A Responses server that is never the slow part: a process of its own, a thread per connection.

Rule 1: the last prompt says what is to be answered, as `[[scene number]]`; see SCENES.
Rule 2: after a call's output comes a text with how long the client took for it: `gap NANOSECONDS;`,
from the last byte of the answer with the call to the request with the output.
Rule 3: paced text carries the moment it was sent, by the clock that all processes share: `@NS;`.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]
Scene: TypeAlias = Callable[[int], Iterator[bytes]]
"""An answer in pieces, each of which is one write."""

_SCENE = re.compile(r"\[\[(\w+) (\d+)\]\]")
_LENGTH = re.compile(rb"(?i)content-length: *(\d+)")
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
_END = b"0\r\n\r\n"
_PACE = 0.005
_AT = {"item_id": "item_0", "output_index": 0}
_USAGE = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
_CALLS = {
    "read": {"file_path": "hello.txt"},
    "shell": {"command": "true", "description": "Do nothing"},
}
_PIECE = 40
"""Characters of arguments in one delta."""


def _frame(kind: str, **members: Any) -> bytes:
    """One event in one chunk, as most servers send them."""
    event = f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(event), event)


def _opened(item: Event) -> bytes:
    begun: Event = {"id": "resp_1", "status": "in_progress", "output": []}
    created = _frame("response.created", response=begun)
    return created + _frame("response.output_item.added", output_index=0, item=item)


def _closed(item: Event) -> bytes:
    ended = {"id": "resp_1", "status": "completed", "output": [item], "usage": _USAGE}
    done = _frame("response.output_item.done", output_index=0, item=item)
    return done + _frame("response.completed", response=ended)


def _message(*content: Event) -> Event:
    return {"id": "item_0", "type": "message", "role": "assistant", "content": list(content)}


def _delta(text: str) -> bytes:
    return _frame("response.output_text.delta", **_AT, content_index=0, delta=text)


def _said(text: str) -> bytes:
    part: Event = {"type": "output_text", "text": text, "annotations": []}
    return _closed(_message(part))


@cache
def _burst(number: int) -> bytes:
    words = [f"word {at} " for at in range(number)]
    return _opened(_message()) + b"".join(map(_delta, words)) + _said("".join(words))


def _text(number: int) -> Iterator[bytes]:
    """So many deltas at once."""
    yield _burst(number)


def _paced(number: int) -> Iterator[bytes]:
    """So many deltas, one every few milliseconds."""
    yield _opened(_message())
    said: list[str] = []
    due = time.monotonic()
    for _ in range(number):
        due += _PACE
        time.sleep(max(0.0, due - time.monotonic()))
        said.append(f"@{time.monotonic_ns()};")
        yield _delta(said[-1])
    yield _said("".join(said))


@cache
def _called(name: str, arguments: str) -> bytes:
    call = {"id": "item_0", "type": "function_call", "call_id": "call_1", "name": name}
    family = "response.function_call_arguments"
    pieces = (arguments[at : at + _PIECE] for at in range(0, len(arguments), _PIECE))
    deltas = (_frame(f"{family}.delta", **_AT, delta=piece) for piece in pieces)
    done = _frame(f"{family}.done", **_AT, arguments=arguments)
    opened = _opened({**call, "arguments": ""})
    return opened + b"".join(deltas) + done + _closed({**call, "arguments": arguments})


def _call(name: str) -> Scene:
    def scene(_: int) -> Iterator[bytes]:
        yield _called(name, json.dumps(_CALLS[name]))

    return scene


def _arguments(number: int) -> Iterator[bytes]:
    """A call that writes a file of so many bytes."""
    content = ("0123456789" * 7 + "\n") * (number // 71)
    yield _called("write", json.dumps({"file_path": "long.txt", "content": content}))


SCENES: dict[str, Scene] = {
    "text": _text,
    "paced": _paced,
    "read": _call("read"),
    "shell": _call("shell"),
    "arguments": _arguments,
}


class Conversation(StreamRequestHandler):
    """The requests of one connection."""

    ended = 0
    """When the last answer was sent."""
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with suppress(ConnectionError):
            while head := self._head():
                length = _LENGTH.search(head)
                body = self.rfile.read(int(length[1]) if length else 0)
                if head.startswith(b"POST") and b"/responses" in head:
                    self._answer(body, time.monotonic_ns())
                else:
                    self.wfile.write(_NOT_FOUND)

    def _head(self) -> bytes:
        lines: list[bytes] = []
        while (line := self.rfile.readline()).strip():
            lines.append(line)
        return b"".join(lines)

    def _answer(self, body: bytes, now: int) -> None:
        last = json.loads(body)["input"][-1]
        if last["type"] == "function_call_output":
            text = f"gap {now - self.ended};"
            pieces = iter([_opened(_message()) + _delta(text) + _said(text)])
        else:
            found = _SCENE.search(json.dumps(last["content"]))
            assert found is not None
            pieces = SCENES[found[1]](int(found[2]))
        self.wfile.write(_HEAD)
        for piece in pieces:
            self.wfile.write(piece)
        self.wfile.write(_END)
        Conversation.ended = time.monotonic_ns()


class _Server(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64


def main() -> None:
    """Tell the port, and serve until the process is ended."""
    with _Server(("127.0.0.1", 0), Conversation) as server:
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
