"""The laws that hold for everything an agent sends, whatever it does.

Rule 1: Laws sees both directions, in the order in which they were sent, and raises LawBroken at
the first line of the agent's that no editor should have to bear.
Rule 2: what the protocol demands holds for every agent; what we demand of ourselves besides
(OWN_LAWS) can be left out for recordings of others.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from bridge.core.handshake import Capabilities, client_capabilities
from tests import acp_schema

Message = dict[str, Any]

LONGEST_LINE = 1024 * 1024
_ENDED = ("completed", "failed")


class LawBroken(AssertionError):
    """The agent sent what it must not send; the text says what, and shows the line."""


@dataclass(slots=True)
class _Session:
    prompts: list[Any] = field(default_factory=list[Any])
    """Ids of prompts without an answer, in order; the first runs, the others wait for it."""
    loading: bool = False
    calls: dict[str, str] = field(default_factory=dict[str, str])
    """Tool call id -> last status."""
    modes: set[str] = field(default_factory=set[str])

    @property
    def running(self) -> bool:
        return self.loading or bool(self.prompts)


class Laws:
    """One connection, watched; owner of what is open on it."""

    def __init__(self, *, own_laws: bool = True) -> None:
        self.can = Capabilities()
        self.sessions: dict[str, _Session] = {}
        self.asked: dict[tuple[type, Any], Message] = {}
        """Requests of the editor's that wait for an answer, by type and value of their id."""
        self.asking: dict[Any, Message] = {}
        """Requests of the agent's that wait for an answer or were given up."""
        self._given_up: set[Any] = set()
        self._cancelled: set[str] = set()
        """Sessions that the editor cancelled."""
        self._own_laws = own_laws
        self.schema = True
        """Hold every message to the schema too, which takes most of the time."""

    def sent(self, message: Mapping[str, Any]) -> None:
        """The editor sent this message."""
        given = dict(message)
        if "method" not in given:
            self.asking.pop(given.get("id"), None)
        elif given["method"] == "session/cancel":
            self._cancelled.add(str(_object(given.get("params")).get("sessionId")))
        elif "id" in given:
            self._sent_request(given["id"], given)

    def _sent_request(self, call: Any, given: Message) -> None:
        params = _object(given.get("params"))
        self.asked[_key(call)] = given
        match given["method"]:
            case "initialize":
                self.can = client_capabilities(params)
            case "session/load":
                session = self.sessions.setdefault(str(params.get("sessionId")), _Session())
                session.loading = True
                session.calls.clear()
            case "session/prompt" if params.get("sessionId") in self.sessions:
                self.sessions[params["sessionId"]].prompts.append(call)
            case _:
                pass

    def take(self, line: bytes | Mapping[str, Any]) -> Message:
        """The agent sent this line; gives it as a message, or raises LawBroken."""
        shown = line if isinstance(line, bytes) else json.dumps(line).encode()
        try:
            message = _parsed(line) if isinstance(line, bytes) else dict(line)
            self._message(message)
            if self._own_laws:
                for law in OWN_LAWS:
                    law(message, len(shown))
        except LawBroken as broken:
            raise LawBroken(f"{broken}\n  in {shown[:2000]!r}") from None
        return message

    def end(self) -> None:
        """The connection is over: nothing may be open."""
        open_requests = [message["method"] for message in self.asked.values()]
        _hold(not open_requests, f"never answered: {open_requests}")

    def _message(self, message: Message) -> None:
        _hold(message.get("jsonrpc") == "2.0", "not JSON-RPC 2.0")
        known = {"jsonrpc", "id", "method", "params", "result", "error"}
        _hold(message.keys() <= known, f"unknown keys {message.keys() - known}")
        if "method" not in message:
            self._answer(message)
            return
        _hold(not message.keys() & {"result", "error"}, "a call with a result")
        params = message.get("params", {})
        if self.schema:
            _keep_schema(message["method"], "client", "params", params)
        if "id" in message:
            self._request(message["id"], message["method"], params)
        elif message["method"] == "session/update":
            self._update(params["sessionId"], params["update"])
        elif message["method"] == "$/cancel_request":
            _hold(params["requestId"] in self.asking, "gives up a request that is not open")
            self._given_up.add(params["requestId"])

    # -- answers

    def _answer(self, message: Message) -> None:
        _hold("id" in message, "neither a call nor an answer")
        _hold(("result" in message) != ("error" in message), "needs one of result and error")
        call = message["id"]
        request = self.asked.pop(_key(call), None)
        if "error" in message:
            _error(message["error"])
            _hold(request is not None or call is None, f"answers {call!r}, which is not open")
            self._close(request, {})
            return
        if request is None:
            raise LawBroken(f"answers {call!r}, which is not open")
        if self.schema:
            _keep_schema(request["method"], "agent", "result", message["result"])
        self._close(request, message["result"])

    def _close(self, request: Message | None, result: Message) -> None:
        params = {} if request is None else _object(request.get("params"))
        session = self.sessions.get(str(params.get("sessionId")))
        match None if request is None else request["method"]:
            case "session/new" if "sessionId" in result:
                _hold(result["sessionId"] not in self.sessions, "a session id is given twice")
                session = self.sessions[result["sessionId"]] = _Session()
            case "session/resume" if request is not None and "modes" in result:
                self.sessions.setdefault(str(params["sessionId"]), _Session())
            case "session/close" | "session/delete" if session is not None:
                _hold(not session.prompts, f"ends before its prompts {session.prompts}")
                self._nothing_open(session)
                del self.sessions[str(params["sessionId"])]
                return
            case "session/load" if session is not None:
                session.loading = False
                self._nothing_open(session)
            case "session/prompt" if session is not None and request is not None:
                ran = session.prompts[:1] == [request["id"]]
                session.prompts = [one for one in session.prompts if one != request["id"]]
                if ran:
                    self._nothing_open(session)
                    self._nothing_asked(str(params["sessionId"]))
            case _:
                pass
        if session is not None:
            self._state(session, result)

    def _nothing_open(self, session: _Session) -> None:
        still = [call for call, status in session.calls.items() if status not in _ENDED]
        _hold(not still, f"ends with open tool calls {still}")

    def _nothing_asked(self, session: str) -> None:
        for call, request in list(self.asking.items()):
            if request["params"].get("sessionId") == session:
                # ACP, Cancellation: a client that cancels answers what is open by itself.
                excused = call in self._given_up or session in self._cancelled
                _hold(excused, f"ends while {request['method']} is open")

    def _state(self, session: _Session, result: Message) -> None:
        modes = result.get("modes")
        if modes is not None:
            session.modes = {mode["id"] for mode in modes["availableModes"]}
            _hold(modes["currentModeId"] in session.modes, "the current mode is not available")
        self._options(result.get("configOptions") or [])

    def _options(self, options: list[Message]) -> None:
        _hold(len({option["id"] for option in options}) == len(options), "an option is given twice")
        for option in options:
            if option["type"] == "boolean":
                _hold(self.can.boolean_options, "the client takes no boolean options")
                continue
            choices = [
                choice["value"]
                for entry in option["options"]
                for choice in (entry["options"] if "group" in entry else [entry])
            ]
            current = option["currentValue"]
            _hold(current in choices, f"option {option['id']}: {current!r} is not among its values")

    # -- requests

    def _request(self, call: Any, method: str, params: Message) -> None:
        _hold(call is not None and call not in self.asking, f"request id {call!r} is in use")
        gate = _GATES.get(method)
        _hold(gate is None or gate(self.can), f"the client does not offer {method}")
        session = params.get("sessionId")
        _hold(session is None or session in self.sessions, f"unknown session {session!r}")
        if method == "elicitation/create":
            _hold(params["mode"] == "form" and self.can.form, "the client shows no such forms")
        if method == "session/request_permission":
            self._permission(self.sessions[params["sessionId"]], params)
        self.asking[call] = {"method": method, "params": params}

    def _permission(self, session: _Session, params: Message) -> None:
        call = params["toolCall"]["toolCallId"]
        _hold(call in session.calls, f"asks about {call!r} before it was announced")
        _hold(session.calls[call] not in _ENDED, f"asks about {call!r} after its end")
        options = params["options"]
        ids = [option["optionId"] for option in options]
        _hold(len(set(ids)) == len(ids), f"option ids occur twice: {ids}")
        kinds = {str(option["kind"]).partition("_")[0] for option in options}
        _hold(kinds == {"allow", "reject"}, "needs a way to allow and a way to refuse")

    # -- updates

    def _update(self, session_id: str, update: Message) -> None:
        _hold(session_id in self.sessions, f"an update for {session_id!r}, which is not open yet")
        session, kind = self.sessions[session_id], update["sessionUpdate"]
        gate = _GATES.get(kind)
        _hold(gate is None or gate(self.can), f"the client does not take {kind}")
        if kind in _TURN_ONLY:
            _hold(session.running, f"{kind} while no prompt runs")
        match kind:
            case "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk":
                _hold(update["content"].get("text") != "", "an empty chunk")
            case "tool_call":
                call = update["toolCallId"]
                _hold(call not in session.calls, f"{call!r} is announced twice")
                session.calls[call] = update.get("status", "pending")
            case "tool_call_update":
                self._progress(session, update)
            case "current_mode_update":
                mode = update["currentModeId"]
                known = not session.modes or mode in session.modes
                _hold(known, f"{mode!r} is not an available mode")
            case "config_option_update":
                self._options(update["configOptions"])
            case _:
                pass

    def _progress(self, session: _Session, update: Message) -> None:
        call = update["toolCallId"]
        _hold(call in session.calls, f"{call!r} was never announced")
        _hold(session.calls[call] not in _ENDED, f"{call!r} has ended already")
        status = update.get("status", session.calls[call])
        backwards = session.calls[call] == "in_progress" and status == "pending"
        _hold(not backwards, f"{call!r} goes back from in_progress to pending")
        session.calls[call] = status


_GATES: dict[str, Callable[[Capabilities], bool]] = {
    "fs/read_text_file": lambda can: can.fs_read,
    "fs/write_text_file": lambda can: can.fs_write,
    "terminal/create": lambda can: can.terminal,
    "terminal/output": lambda can: can.terminal,
    "terminal/wait_for_exit": lambda can: can.terminal,
    "terminal/kill": lambda can: can.terminal,
    "terminal/release": lambda can: can.terminal,
    "notice": lambda can: can.notices,
    "compaction_update": lambda can: can.compaction,
    "compaction_summary_chunk": lambda can: can.compaction,
}

_TURN_ONLY = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call"}
    | {"tool_call_update", "plan", "compaction_summary_chunk"}
)


def _object(value: object) -> Message:
    return cast("Message", value) if isinstance(value, dict) else {}


def _key(call: Any) -> tuple[type, Any]:
    """Ids are equal if their types are: 1 is not "1"."""
    return type(call), call  # pyright: ignore[reportUnknownVariableType] (of anything)


def _hold(law: bool, broken: str) -> None:
    if not law:
        raise LawBroken(broken)


def _keep_schema(method: str, side: Any, part: Any, value: object) -> None:
    wrong = acp_schema.faults(method, side, part, value)
    _hold(not wrong, "; ".join(wrong))


def _error(error: Any) -> None:
    _hold(isinstance(error, dict), "an error that is not an object")
    _hold(type(error.get("code")) is int, "an error without a code")
    _hold(isinstance(error.get("message"), str), "an error without a message")
    _hold(bool(error["message"].strip()), "an error with an empty message")


def _parsed(line: bytes) -> Message:
    _hold(line.endswith(b"\n") and line.count(b"\n") == 1, "not one line")
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # a lone surrogate fails here
    except ValueError as error:
        raise LawBroken(f"not JSON in UTF-8: {error}") from None
    if not isinstance(value, dict):
        raise LawBroken("not an object")
    return cast("Message", value)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# -- what we demand of ourselves ------------------------------------------------------------------


def _short_lines(message: Message, size: int) -> None:
    _hold(size <= LONGEST_LINE, f"a line of {size} bytes")


def _no_nulls(message: Message, size: int) -> None:
    """Some clients drop a message for a null where they want nothing or a value."""
    _hold(not _has_null(message), "carries a null")


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        items = cast("Message", value).items()
        return any(item is None or _has_null(item) for key, item in items if key not in _MAY_NULL)
    return isinstance(value, list) and any(map(_has_null, cast("list[Any]", value)))


_MAY_NULL = frozenset({"id", "oldText", "rawInput", "rawOutput", "_meta"})


def _readable_cards(message: Message, size: int) -> None:
    """Some clients refuse a card without a title, or with raw data that is no object."""
    card = _card(message)
    _hold(str(card.get("title", "x")).strip() != "", "an empty title")
    for key in ("rawInput", "rawOutput"):
        _hold(isinstance(card.get(key, {}), dict), f"{key} is not an object")
    if card.get("sessionUpdate") == "tool_call":
        missing = {"title", "kind", "status", "rawInput"} - card.keys()
        _hold(not missing, f"announces a call without {missing}")


def _absolute_paths(message: Message, size: int) -> None:
    card = _card(message)
    places = [*card.get("locations", []), *card.get("content", [])]
    for place in places:
        _hold(str(place.get("path", "/")).startswith("/"), f"relative path {place.get('path')!r}")
        _hold(place.get("line", 1) >= 1, "line numbers begin with 1")


def _card(message: Message) -> Message:
    """The tool call a message is about, or nothing."""
    params = _object(message.get("params"))
    if message.get("method") == "session/request_permission":
        return _object(params["toolCall"])
    update = _object(params.get("update"))
    return update if str(update.get("sessionUpdate")).startswith("tool_call") else {}


def _said_everywhere(message: Message, size: int) -> None:
    """Clients show the message of an error, its details or its error, and not the others."""
    if "error" in message:
        error = message["error"]
        data = _object(error.get("data"))
        said = {error["message"], data.get("details"), data.get("error")}
        _hold(len(said) == 1, "an error that does not say the same in all places")


OWN_LAWS: tuple[Callable[[Message, int], None], ...] = (
    _short_lines,
    _no_nulls,
    _readable_cards,
    _absolute_paths,
    _said_everywhere,
)
