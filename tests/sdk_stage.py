"""What the tests with the official SDKs share: a model that calls the shell, and its config."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMAND = "echo allowed > made.txt"


class _Model(BaseHTTPRequestHandler):
    """Calls the shell once, then says that it is done."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        called = any(item.get("type") == "function_call_output" for item in body["input"])
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in _events(_message() if called else _call()):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Say nothing."""


def _call() -> dict[str, Any]:
    arguments = json.dumps({"command": COMMAND, "description": "Makes a file"})
    return {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": arguments}


def _message() -> dict[str, Any]:
    content = [{"type": "output_text", "text": "Done."}]
    return {"type": "message", "role": "assistant", "content": content}


def _events(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
    ]


@contextmanager
def stage(folder: Path) -> Generator[str]:
    """A workspace, and a config.toml whose model runs as long as the context; gives its path."""
    (folder / "work").mkdir()
    (folder / "home").mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    config = folder / "config.toml"
    config.write_text(
        f'permission = "ask"\n[providers.p]\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\n'
        '[models.m]\nprovider = "p"\n',
        encoding="utf-8",
    )
    try:
        yield str(config)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
