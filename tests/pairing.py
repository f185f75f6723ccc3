"""Whether a server would take the body of a request: in, one body; out, every rule that it breaks.

It must not know how the agent makes a body.

Rule 1: a rule here is one that some server refuses a whole request over, or that costs its prompt
cache; what servers merely ignore is no rule.
Rule 2: a body is looked at by itself (violations), and as the successor of the one before it in
its session (Conversations).
Rule 3: what was broken anywhere is kept in BROKEN until the end of the test, which then fails: an
exception inside a server would reach the agent, not the test.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, cast

Body = Mapping[str, Any]
Item = Mapping[str, Any]

BROKEN: list[str] = []
"""Rules broken since the test began; conftest.py looks and clears."""

CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
OUTPUTS = frozenset(CALLS.values())
LONGEST_CALL_ID = 64

_KEYS = {
    "message": {"type", "role", "content", "phase"},
    "reasoning": {"type", "summary", "content", "encrypted_content", "signature", "format"},
    "function_call": {"type", "call_id", "name", "arguments", "namespace", "caller"},
    "custom_tool_call": {"type", "call_id", "name", "input"},
    "function_call_output": {"type", "call_id", "output"},
    "custom_tool_call_output": {"type", "call_id", "output"},
}
"""All that an item may carry which any server is to understand."""
_PARTS = {
    "user": {"input_text": "text", "input_image": "image_url", "input_file": "file_data"},
    "assistant": {"output_text": "text", "refusal": "refusal"},
}
"""Role -> kind of part -> the field that must hold something."""
_INCLUDES = {"reasoning.encrypted_content", "web_search_call.action.sources"}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TEXTS = ("name", "arguments", "input", "output")


def violations(body: Body, *, verbatim: bool = False) -> list[str]:
    """Every rule that this body breaks; verbatim: items go back as they came, with their ids."""
    items = cast("list[Item]", body.get("input"))
    if not isinstance(items, list) or not items:  # pyright: ignore[reportUnnecessaryIsInstance] (it came over a wire)
        return [*_frame(body), "input: nothing to answer"]
    return [
        *_frame(body),
        *_tools(body),
        *(f"input[{at}]: {broken}" for at, item in enumerate(items) for broken in _item(item)),
        *([] if verbatim else _portable(items)),
        *(_linked(items) if verbatim else ()),
        *_paired(items),
        *_led_on(items),
        *_answerable(items[-1]),
    ]


class Conversations:
    """The last body of each session; owned by the server that got them.

    forgets: a conversation may lose its end, after a refusal, or its beginning, when it was
    compacted.
    """

    def __init__(self, *, verbatim: bool = False, forgets: bool = False) -> None:
        self.verbatim = verbatim
        self.forgets = forgets
        self._last: dict[str, Body] = {}

    def check(self, body: Body) -> None:
        """Note what this body breaks in BROKEN."""
        BROKEN.extend(violations(body, verbatim=self.verbatim))
        session = str(body.get("prompt_cache_key"))
        earlier = self._last.get(session)
        if earlier is not None and not self.forgets:
            BROKEN.extend(_spliced(earlier, body))
        self._last[session] = body


def _frame(body: Body) -> Iterator[str]:
    """What surrounds the conversation."""
    if body.get("stream") is not True or body.get("store") is not False:
        yield "a request is one that streams and leaves nothing with the server"
    if not body.get("model") or not isinstance(body.get("model"), str):
        yield "no model"
    if not isinstance(body.get("instructions", ""), str):
        yield "instructions are no text"
    if body.get("previous_response_id") is not None:
        yield "an answer that the server does not keep is referred to"
    if not set(body.get("include", ())) <= _INCLUDES:
        yield f"include: {body['include']}"
    if any(body.get(name, 1) in (None, {}, []) for name in ("tools", "reasoning", "text")):
        yield "a part that is empty is there"


def _tools(body: Body) -> Iterator[str]:
    functions: list[Item] = [one for one in body.get("tools", ()) if one["type"] == "function"]
    names = [one.get("name") for one in functions]
    if len(set(names)) != len(names) or not all(names):
        yield f"tools need names of their own: {names}"
    for one in functions:
        schema = cast("Item", one.get("parameters", {}))
        properties: Item = schema.get("properties", {})
        if not isinstance(one.get("strict"), bool):
            yield f"tool {one.get('name')}: says neither strict nor loose"
        elif one["strict"] and (
            schema.get("additionalProperties") is not False
            or sorted(schema.get("required", ())) != sorted(properties)
        ):
            yield f"tool {one.get('name')}: strict, but not closed, or with optional properties"


def _item(item: Item) -> Iterator[str]:
    """One item by itself."""
    kind = item.get("type")
    if not isinstance(kind, str):
        yield "has no type"
    elif kind == "message":
        yield from _message(item)
    elif kind == "reasoning":
        yield from _reasoning(item)
    elif kind in _KEYS:
        call_id = item.get("call_id")
        if not isinstance(call_id, str) or not 0 < len(call_id) <= LONGEST_CALL_ID:
            yield f"call_id {call_id!r} is empty or too long"
        if kind == "function_call_output" and isinstance(item.get("output"), list):
            yield from _output(cast("list[Item]", item["output"]))
            return
        for name in _KEYS[kind] & set(_TEXTS):
            if not isinstance(item.get(name), str):
                yield f"{name} of a {kind} is no text"
        if kind in CALLS and not _NAME.fullmatch(str(item.get("name"))):
            yield f"a call of {item.get('name')!r}, which is no name of a tool"
        if kind == "function_call" and not _is_object(item.get("arguments")):
            yield f"arguments that are no object: {str(item.get('arguments'))[:80]}"


def _is_object(arguments: object) -> bool:
    try:
        return isinstance(json.loads(str(arguments)), dict)
    except (ValueError, RecursionError):
        return False


def _message(item: Item) -> Iterator[str]:
    parts, role = item.get("content"), str(item.get("role"))
    if role not in _PARTS:
        yield f"role {role}"
    elif not isinstance(parts, list) or not parts:
        yield "a message without content"
    else:
        yield from _parts(cast("list[Item]", parts), role)


def _output(parts: list[Item]) -> Iterator[str]:
    yield from _parts(parts, "user")
    if all(part.get("type") == "input_text" for part in parts):
        yield "an output of texts alone is one text"


def _parts(parts: Iterable[Item], role: str) -> Iterator[str]:
    for part in parts:
        field = _PARTS[role].get(str(part.get("type")))
        if field is None:
            yield f"a part {part.get('type')} in a message of the {role}"
        elif not isinstance(part.get(field), str) or (role == "assistant" and not part[field]):
            yield f"an empty {part['type']}"


def _reasoning(item: Item) -> Iterator[str]:
    if not isinstance(item.get("summary"), list):
        yield "reasoning without a list of summaries"
    if not any(item.get(name) for name in ("summary", "content", "encrypted_content")):
        yield "reasoning with nothing in it"
    if any(name in item and not item[name] for name in ("content", "encrypted_content")):
        yield "reasoning with an empty part"


def _portable(items: Iterable[Item]) -> Iterator[str]:
    """What only the server that made it would know."""
    for at, item in enumerate(items):
        known = _KEYS.get(str(item.get("type")))
        if known is not None and (more := item.keys() - known):
            yield f"input[{at}]: {item['type']} carries {sorted(more)}"
        for part in _contents(item):
            if "logprobs" in part:
                yield f"input[{at}]: logprobs"


def _contents(item: Item) -> Iterator[Item]:
    content = item.get("content")
    if isinstance(content, list):
        yield from (part for part in cast("list[Any]", content) if isinstance(part, dict))


def _linked(items: list[Item]) -> Iterator[str]:
    """Reasoning and what it led to are linked by ids: both have one, or neither."""
    for at, (item, then) in enumerate(pairwise(items)):
        if item.get("type") == "reasoning" and _is_made(then) and ("id" in item) != ("id" in then):
            yield f"input[{at}]: of reasoning and what it led to, one has an id"


def _paired(items: Iterable[Item]) -> Iterator[str]:
    """Every call has one output after it and before the next prompt, every output its call."""
    still: dict[object, str] = {}
    for at, item in enumerate(items):
        kind, call_id = str(item.get("type")), item.get("call_id")
        if kind in CALLS:
            if call_id in still:
                yield f"input[{at}]: call {call_id} made again before its output"
            still[call_id] = CALLS[kind]
        elif kind in OUTPUTS:
            if (wanted := still.pop(call_id, None)) is None:
                yield f"input[{at}]: an output without its call {call_id}"
            elif wanted != kind:
                yield f"input[{at}]: {kind} for a call that wants {wanted}"
        elif item.get("role") == "user" and still:
            yield f"input[{at}]: a prompt before the outputs of {list(still)}"
            still.clear()
    if still:
        yield f"no output for {list(still)}"


def _led_on(items: list[Item]) -> Iterator[str]:
    """Reasoning stands before what it led to, or before more reasoning."""
    followers: list[Item | None] = [*items[1:], None]
    for at, (item, then) in enumerate(zip(items, followers, strict=True)):
        if item.get("type") != "reasoning":
            continue
        if then is None:
            yield f"input[{at}]: reasoning at the end"
        elif then.get("type") != "reasoning" and not _is_made(then):
            yield f"input[{at}]: reasoning before {then.get('role') or then.get('type')}"


def _is_made(item: Item) -> bool:
    """Made by a model, and no reasoning."""
    kind = item.get("type")
    return kind not in OUTPUTS and kind != "reasoning" and item.get("role") != "user"


def _answerable(last: Item) -> Iterator[str]:
    if last.get("role") != "user" and last.get("type") not in OUTPUTS:
        yield f"the conversation ends with {last.get('role') or last.get('type')}"


def _spliced(earlier: Body, later: Body) -> Iterator[str]:
    """Where a later conversation does not begin with the earlier one, byte for byte."""
    same = ("model", "instructions", "tools")
    if any(json.dumps(earlier.get(name)) != json.dumps(later.get(name)) for name in same):
        return
    before, after = ([json.dumps(item) for item in body["input"]] for body in (earlier, later))
    at = next((at for at, (one, other) in enumerate(zip(before, after, strict=False))
               if one != other), min(len(before), len(after)))  # fmt: skip
    if at < len(before):
        now = after[at] if at < len(after) else "nothing"
        yield f"input[{at}] was {before[at][:300]} in the request before and is {now[:300]}"
