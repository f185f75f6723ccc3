"""The events in which a Responses server streams an answer.

It must not know what is said, nor who listens.

Rule 1: every event is whole, as the API's reference describes it: what reads these events reads
those of a real server.
"""

import json
import re
from collections.abc import Generator, Iterable, Iterator

from bridge.core.wire import Json, JsonObject
from bridge.demo.script import Call, Part, Say, Think

_PIECE = re.compile(r"\s*\S+|\s+")


def events(parts: Iterable[Part], model: str, number: int) -> Iterator[JsonObject]:
    """The events of one answer; its number makes the ids unique."""
    for count, event in enumerate(_answer(parts, model, number)):
        yield {**event, "sequence_number": count}


def _answer(parts: Iterable[Part], model: str, number: int) -> Iterator[JsonObject]:
    response: JsonObject = {
        "id": f"resp_demo{number}",
        "object": "response",
        "created_at": 0,
        "status": "in_progress",
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    output: list[Json] = []
    for index, part in enumerate(parts):
        item = yield from _item(part, f"demo{number}_{index}", index)
        output.append(item)
    ended: JsonObject = {"status": "completed", "output": output, "usage": _usage(output)}
    done: JsonObject = {**response, **ended}
    yield {"type": "response.completed", "response": done}


Item = Generator[JsonObject, None, JsonObject]
"""The events of one item; returns the item."""


def _item(part: Part, name: str, index: int) -> Item:
    match part:
        case Think():
            return (yield from _reasoning(part, name, index))
        case Say():
            return (yield from _message(part, name, index))
        case Call():
            return (yield from _call(part, name, index))


def _reasoning(think: Think, name: str, index: int) -> Item:
    at: JsonObject = {"item_id": f"rs_{name}", "output_index": index, "summary_index": 0}
    item: JsonObject = {"type": "reasoning", "id": f"rs_{name}", "summary": []}
    part: JsonObject = {"type": "summary_text", "text": think.text}
    yield _opened(item, index)
    yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
    for piece in _PIECE.findall(think.text):
        yield {"type": "response.reasoning_summary_text.delta", **at, "delta": piece}
    yield {"type": "response.reasoning_summary_text.done", **at, "text": think.text}
    yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
    item = {**item, "summary": [part]}
    yield _closed(item, index)
    return item


def _message(say: Say, name: str, index: int) -> Item:
    at: JsonObject = {"item_id": f"msg_{name}", "output_index": index, "content_index": 0}
    item: JsonObject = {
        "type": "message",
        "id": f"msg_{name}",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }
    part: JsonObject = {"type": "output_text", "text": say.text, "annotations": []}
    yield _opened(item, index)
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for piece in _PIECE.findall(say.text):
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": say.text, "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}
    item = {**item, "status": "completed", "content": [part]}
    yield _closed(item, index)
    return item


def _call(call: Call, name: str, index: int) -> Item:
    at: JsonObject = {"item_id": f"fc_{name}", "output_index": index}
    item: JsonObject = {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": f"call_{name}",
        "name": call.name,
        "arguments": "",
        "status": "in_progress",
    }
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    done = "response.function_call_arguments.done"
    yield _opened(item, index)
    for piece in _PIECE.findall(arguments):
        yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
    yield {"type": done, **at, "name": call.name, "arguments": arguments}
    item = {**item, "status": "completed", "arguments": arguments}
    yield _closed(item, index)
    return item


def _opened(item: JsonObject, index: int) -> JsonObject:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _closed(item: JsonObject, index: int) -> JsonObject:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def _usage(output: Iterable[Json]) -> JsonObject:
    said = sum(len(json.dumps(item)) // 4 for item in output)
    return {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 1000 + said,
    }
