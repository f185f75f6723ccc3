"""The scripted model as a server: real HTTP on loopback, real server-sent events.

It must not know what is said; script.py decides that.

Rule 1: it listens on this machine alone, and only as long as the demo runs.
Rule 2: a client that hangs up ends its answer and nothing else.
"""

import itertools
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

from bridge.core.wire import JsonObject, dump, load_object
from bridge.demo.script import answer
from bridge.demo.stream import events

_MOST_BYTES = 64 * 1024 * 1024
_PATH = "/v1/responses"


@contextmanager
def scripted_model(pace: float = 0.0) -> Generator[str]:
    """Serve the scripted model as long as the context is open; gives its base URL.

    pace: seconds between two pieces of text.
    """
    server = _Server(("127.0.0.1", 0), _Answering)
    server.pace = pace
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.ending.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], answering: "type[_Answering]") -> None:
        super().__init__(address, answering)
        self.pace = 0.0
        self.ending = threading.Event()
        self.answers = itertools.count(1)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a connection that broke: it is the client's business."""


class _Answering(BaseHTTPRequestHandler):
    timeout = 30

    def do_POST(self) -> None:
        if self.path.partition("?")[0].rstrip("/") != _PATH:
            self._refuse(HTTPStatus.NOT_FOUND, f"there is nothing but {_PATH} here")
            return
        try:
            length = int(self.headers.get("content-length", ""))
            if not 0 <= length <= _MOST_BYTES:
                raise ValueError("body too long")  # noqa: TRY301 (one answer to all of them)
            body = load_object(self.rfile.read(length))
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the body is not a request: {error}")
            return
        with suppress(ConnectionError):
            self._stream(body)

    def _stream(self, body: JsonObject) -> None:
        server = cast("_Server", self.server)
        self.send_response(HTTPStatus.OK)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.end_headers()
        model = str(body.get("model", ""))
        for event in events(answer(body), model, next(server.answers)):
            name = str(event["type"])
            self.wfile.write(b"event: %b\ndata: %b\n\n" % (name.encode(), dump(event)))
            if name.endswith(".delta") and server.ending.wait(server.pace):
                return

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        error: JsonObject = {"message": message, "type": "invalid_request_error", "code": None}
        text = dump({"error": error})
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's name)
        """Nothing: the terminal belongs to the conversation."""
