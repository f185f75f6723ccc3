"""The least Python process that does an agent's work: what no agent in Python can be faster than.

It knows one client and one server, asks nobody, holds nothing back from anybody and keeps no
promise. Standard library alone; `floor.py PORT FOLDER`.
"""

import json
import os
import sys
from typing import Any

_CHUNK = (
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":'
    '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}}\n'
)


def send(**members: Any) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")


def update(session: str, **members: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": members})


def say(session: str, text: str) -> bytes:
    return (_CHUNK % (session, json.dumps(text))).encode()


def file(path: str, text: str | None = None) -> str:
    """What a file holds, after this was written into it."""
    if text is not None:
        Path(path).write_text(text, "utf-8")
    return Path(path).read_text("utf-8")


def greeted() -> bytes:
    """Answer the first line; what was read behind it."""
    data = b""
    while b"\n" not in data:
        data += os.read(0, 65536)
    line, _, rest = data.partition(b"\n")
    send(id=json.loads(line)["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
    return rest


class Floor:
    """The sessions, and what runs in them."""

    def __init__(self, port: int, folder: str) -> None:
        self.port, self.folder = port, Path(folder)
        self.sessions: dict[str, list[Any]] = {}
        self.running: dict[str, Any] = {}
        self.lines: dict[str, Any] = {}
        self.inbox = b""
        self.left = asyncio.Event()

    async def serve(self, data: bytes) -> None:
        """Hear the client to its end."""
        self.inbox = data
        loop = asyncio.get_running_loop()
        loop.add_reader(0, self.hear_client)
        self.handle()
        await self.left.wait()
        for task in self.running.values():
            task.cancel()

    def hear_client(self) -> None:
        data = os.read(0, 65536)
        if not data:
            self.left.set()
            asyncio.get_running_loop().remove_reader(0)
        self.inbox += data
        self.handle()

    def handle(self) -> None:
        *lines, self.inbox = self.inbox.split(b"\n")
        for line in lines:
            self.take(json.loads(line))

    def take(self, message: Any) -> None:
        params, number = message["params"], message.get("id")
        match message["method"]:
            case "session/new":
                session = f"s{os.getpid()}-{len(self.sessions)}"
                self.sessions[session] = []
                send(id=number, result={"sessionId": session})
            case "session/load":
                self.load(params["sessionId"])
                send(id=number, result={})
            case "session/prompt":
                session = params["sessionId"]
                turn = self.prompt(session, params["prompt"][0]["text"], number)
                self.running[session] = asyncio.create_task(turn)
            case "session/cancel":
                self.running[params["sessionId"]].cancel()
            case _:
                pass

    def load(self, session: str) -> None:
        lines = (self.folder / session).read_text("utf-8").splitlines()
        items = self.sessions[session] = [json.loads(line) for line in lines]
        for item in items:
            text = {"type": "text", "text": item["content"]}
            update(session, sessionUpdate=f"{item['role']}_message_chunk", content=text)

    async def prompt(self, session: str, text: str, number: int) -> None:
        items, begun = self.sessions[session], len(self.sessions[session])
        items.append({"type": "message", "role": "user", "content": text})
        try:
            while call := await self.ask(session, items):
                items += [call, await self.run(session, call)]
            reason = "end_turn"
        except asyncio.CancelledError:
            reason = "cancelled"
        self.store(session, items[begun:])
        send(id=number, result={"stopReason": reason})

    def store(self, session: str, items: list[Any]) -> None:
        with (self.folder / session).open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(item)}\n" for item in items)

    async def ask(self, session: str, items: list[Any]) -> Any:
        """One answer, shown; its call, if it makes one."""
        if session not in self.lines:
            self.lines[session] = await asyncio.open_connection("127.0.0.1", self.port, limit=2**20)
        reader, writer = self.lines[session]
        body = json.dumps({"model": "m", "stream": True, "input": items}).encode()
        writer.write(b"POST /v1/responses HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body))
        writer.write(body)
        try:
            await reader.readuntil(b"\r\n\r\n")
            return await self.hear(session, reader, items)
        except asyncio.CancelledError:
            self.lines.pop(session)
            writer.close()
            raise

    async def hear(self, session: str, reader: Any, items: list[Any]) -> Any:
        data, call, is_over = b"", None, False
        said: list[str] = []
        while not is_over:
            data += await reader.read(2**18)
            shown: list[bytes] = []
            start = 0
            while (end := data.find(b"\r\n", start)) >= 0:
                size = int(data[start:end], 16)
                if len(data) < end + 4 + size:
                    break
                if size == 0:
                    is_over = True
                    break
                frame = data[end + 2 : end + 2 + size]
                start = end + 4 + size
                event = json.loads(frame[frame.index(b"data: ") + 6 :])
                if event["type"] == "response.output_text.delta":
                    said.append(event["delta"])
                    shown.append(say(session, event["delta"]))
                elif event["type"] == "response.output_item.done":
                    call = event["item"] if event["item"]["type"] == "function_call" else None
            data = data[start:]
            if shown:
                os.write(1, b"".join(shown))
        if said:
            items.append({"type": "message", "role": "assistant", "content": "".join(said)})
        return call

    async def run(self, session: str, call: Any) -> Any:
        """Make a call, and its output."""
        given = json.loads(call["arguments"])
        update(session, sessionUpdate="tool_call", toolCallId=call["call_id"], rawInput=given)
        text = ""
        match call["name"]:
            case "read":
                text = file(given["file_path"])
            case "write":
                file(given["file_path"], given["content"])
            case _:
                pipe = asyncio.subprocess.PIPE
                command = ("bash", "-c", given["command"])
                process = await asyncio.create_subprocess_exec(*command, stdout=pipe)
                text = (await process.communicate())[0].decode()
        shown = {"sessionUpdate": "tool_call_update", "toolCallId": call["call_id"]}
        update(session, **shown, status="completed", rawOutput={"output": text})
        return {"type": "function_call_output", "call_id": call["call_id"], "output": text}


if __name__ == "__main__":
    rest = greeted()
    import asyncio
    from pathlib import Path

    asyncio.run(Floor(int(sys.argv[1]), sys.argv[2]).serve(rest))
