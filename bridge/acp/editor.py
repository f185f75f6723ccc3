"""What we show the editor and what we ask of it, for one session.

Rule 1: only what the client advertised is used; a person who cannot be asked has not agreed.
Rule 2: only an answer that was offered counts. Anything else, errors included, is a refusal.
Rule 3: a wait for a person has no deadline; it ends with an answer, a cancel or the connection.
"""

import json
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Literal, cast

from bridge.acp.connection import Connection
from bridge.core import updates
from bridge.core.handshake import Capabilities
from bridge.core.rule import Offer
from bridge.core.updates import Update
from bridge.core.wire import dump, encode, quoted
from bridge.errors import EditorError
from tools.base import Filled


class SessionEditor:
    """The editor, as one session sees it."""

    def __init__(self, connection: Connection, can: Capabilities, session: str) -> None:
        self.can = can
        self._connection = connection
        self._session = session
        named = json.dumps(session)
        self._chunk_head = {
            role: f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":{named},'
            f'"update":{{"sessionUpdate":"agent_{role}_chunk","messageId":"'
            for role in ("message", "thought")
        }

    def update(self, update: Update) -> None:
        """Show one update."""
        line = self._line(update)
        if len(line) > updates.LONGEST_LINE:
            line = self._line(updates.fitted(update))
        self._connection.raw(line)

    def text(self, role: Literal["message", "thought"], message: str, text: str) -> None:
        """Show text that streams; the hot path: built without a detour over dictionaries."""
        if len(text) > updates.LONGEST_CHUNK:
            for update in updates.chunk(role, message, text):
                self.update(update)
            return
        line = (
            f'{self._chunk_head[role]}{message}","content":{{"type":"text","text":'
            f"{quoted(text)}}}}}}}}}\n"
        )
        self._connection.raw(encode(line))

    def notice(self, severity: Literal["info", "warning", "error"], text: str) -> None:
        """Say something beside the conversation, to clients that take it."""
        if self.can.notices:
            self.update(updates.notice(severity, text))

    def room(self) -> Awaitable[None]:
        """Wait while the editor is far behind in reading."""
        return self._connection.room()

    async def permission(self, call: Update, offers: Sequence[Offer], reason: str) -> Offer | None:
        """Ask whether a call may run; the answer that was chosen, None for anything else."""
        options: list[Update] = [
            {"optionId": offer.id, "name": offer.label, "kind": offer.kind} for offer in offers
        ]
        # The rule of an exact command is all of it, which the call shows already.
        lasting = {
            offer.id: updates.aside(offer.rule.text) for offer in offers if offer.rule is not None
        }
        told: Update = {"reason": updates.aside(reason), **({"rules": lasting} if lasting else {})}
        chosen = await self._choose(call, options, {"responses-acp": told})
        return next((offer for offer in offers if offer.id == chosen), None)

    async def fill(self, card_id: str, message: str, schema: Mapping[str, Any]) -> Filled:
        """What became of a form; an odd answer is one that was dismissed."""
        params: Update = {
            "sessionId": self._session,
            "toolCallId": card_id,
            "mode": "form",
            "message": message,
            "requestedSchema": dict(schema),
        }
        answer = await self._ask("elicitation/create", updates.fitted(params))
        action, content = answer.get("action"), answer.get("content")
        if action == "accept" and isinstance(content, dict):
            return Filled("accept", _object(answer["content"]))
        return Filled("decline" if action == "decline" else "cancel")

    async def pick(self, card_id: str, title: str, labels: Sequence[str]) -> str | None:
        """One of a few labels, chosen in a permission dialog; the last one is the refusal."""
        kinds = ["allow_once"] * (len(labels) - 1) + ["reject_once"]
        options = [
            {"optionId": label, "name": label, "kind": kind}
            for label, kind in zip(labels, kinds, strict=True)
        ]
        call = {"toolCallId": card_id, "title": title, "kind": "other", "status": "pending"}
        return await self._choose(updates.fitted(call), options)

    async def buffer(self, path: str) -> str | None:
        """The text of a file as the editor has it, saved or not; None where it does not say."""
        content = (await self._ask("fs/read_text_file", self._about(path))).get("content")
        return content if isinstance(content, str) else None

    async def set_buffer(self, path: str, text: str) -> bool:
        """Let the editor have a whole new text of a file; whether it said that it took it."""
        if not self.can.fs_write:
            return False
        params = {**self._about(path), "content": text}
        try:
            await self._connection.request("fs/write_text_file", params)
        except EditorError:
            return False
        return True

    def _about(self, path: str) -> Update:
        return {"sessionId": self._session, "path": path}

    async def _choose(
        self, call: Update, options: list[Update], meta: Update | None = None
    ) -> str | None:
        params: Update = {"sessionId": self._session, "toolCall": call, "options": options}
        if meta is not None:
            params["_meta"] = meta
        outcome = _object((await self._ask("session/request_permission", params)).get("outcome"))
        chosen = outcome.get("optionId") if outcome.get("outcome") == "selected" else None
        return next((one["optionId"] for one in options if one["optionId"] == chosen), None)

    async def _ask(self, method: str, params: Update) -> Mapping[str, Any]:
        """The answer; nothing where the editor refused."""
        try:
            return _object(await self._connection.request(method, params))
        except EditorError:
            return {}

    def _line(self, update: Update) -> bytes:
        params = {"sessionId": self._session, "update": update}
        return dump({"jsonrpc": "2.0", "method": "session/update", "params": params}) + b"\n"


def _object(value: object) -> Mapping[str, Any]:
    """The value, or an empty object in the place of what is none."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
