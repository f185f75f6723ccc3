"""What the tests with the official SDKs share: a model that calls the shell, and its config."""

import json
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bridge.demo.script import MENDED, NOTES, PROMPT
from tests.recorder import play

HOME = Path(__file__).parent.parent
COMMAND = "echo allowed > made.txt"


_WAITING = "echo started > started.txt; sleep 600"
_WISHES: dict[str, tuple[str, dict[str, str]]] = {
    "Write it": ("write", {"file_path": "new.txt", "content": "new\n"}),
    "Wait": ("shell", {"command": _WAITING, "description": "Waits"}),
}
"""What is called for these prompts: name and arguments."""


class _Model(BaseHTTPRequestHandler):
    """Calls what is wished for, or the shell once, then says that it is done."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        item = _wished(body["input"]) or _once(body["input"])
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in _events(item):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Say nothing."""


def _wished(items: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The call that the last item wishes for, if it is a prompt that does."""
    prompt = json.dumps(items[-1].get("content"))
    wish = next((wish for wish in _WISHES if f'"{wish}"' in prompt), None)
    return None if wish is None else _call(*_WISHES[wish], number=len(items))


def _once(items: list[dict[str, Any]]) -> dict[str, Any]:
    if any(item.get("type") == "function_call_output" for item in items):
        return _message()
    return _call("shell", {"command": COMMAND, "description": "Makes a file"})


def _call(name: str, arguments: dict[str, str], number: int = 1) -> dict[str, Any]:
    called = {"name": name, "arguments": json.dumps(arguments)}
    return {"type": "function_call", "call_id": f"c{number}", **called}


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


# -- the demo's agent, with a record of what is said ----------------------------------------------


def demo(folder: Path) -> list[str]:
    """The command line of the demo's agent, whose workspace holds the file that it mends."""
    for name in ("work", "home", "temporary"):
        (folder / name).mkdir()
    (folder / "work" / "notes.txt").write_bytes(NOTES)
    recorder = [sys.executable, "-m", "tests.recorder", str(folder / "record")]
    return [
        *recorder,
        sys.executable,
        "-I",
        str(HOME / "bridge" / "__main__.py"),
        "demo",
        "--agent",
    ]


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of that command line."""
    return {
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "temporary"),
        "PYTHONPATH": str(HOME),
    }


def check_demo(folder: Path, prompts: list[str]) -> None:
    """The file is mended, these prompts were made, one was cancelled, and every law was kept."""
    assert (folder / "work" / "notes.txt").read_bytes() == MENDED
    sent = play(folder / "record")
    made = [one["params"]["prompt"][0]["text"] for one in sent if one.get("method") == _PROMPT]
    assert made == prompts
    assert [one["method"] for one in sent if one.get("method", "").endswith("/cancel")] == [
        "session/cancel"
    ]


_PROMPT = "session/prompt"
TURNS = [PROMPT, "hello", "hello"]
"""Mends the file; is cancelled while its command waits for a permission; goes to its end."""
