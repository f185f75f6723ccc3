import json
from enum import Enum
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from bridge.config import Model
from bridge.responses.quirks import InForce
from bridge.responses.request import body, function_tool


def configured(**settings: Any) -> Model:
    return Model.model_validate({"provider": "p", "model": "m", **settings})


TOOL = function_tool("read", "Reads.", {"type": "object", "properties": {}}, strict=True)


def asked(
    settings: Model | None = None,
    quirks: InForce | None = None,
    *,
    effort: str | None = None,
    tools: Any = (),
    without: tuple[str, ...] = (),
) -> dict[str, object]:
    return body(
        settings or configured(),
        quirks or InForce(sources=False),
        effort=effort,
        instructions="Be good.",
        input=[{"role": "user", "content": "hi"}],
        tools=tools,
        cache_key="s1",
        without=without,
    )


LEAST = {
    "model": "m",
    "instructions": "Be good.",
    "input": [{"role": "user", "content": "hi"}],
    "prompt_cache_key": "s1",
    "store": False,
    "stream": True,
}
OFFER = {"tool_choice": "auto", "parallel_tool_calls": True}


def test_what_is_not_configured_is_not_sent() -> None:
    def check(given: dict[str, object], **more: Any) -> None:
        assert given == {**LEAST, **more}

    check(asked())
    check(asked(effort="high"), reasoning={"effort": "high"})
    check(asked(configured(summary="auto")), reasoning={"summary": "auto"})
    check(asked(configured(verbosity="low")), text={"verbosity": "low"})
    check(asked(configured(max_output_tokens=9)), max_output_tokens=9)
    check(asked(configured(service_tier="flex")), service_tier="flex")
    check(asked(tools=[TOOL]), tools=[TOOL], **OFFER)
    hosted = {"type": "web_search"}
    check(asked(configured(hosted_tools=("web_search",))), tools=[hosted], **OFFER)
    one = InForce(parallel_tool_calls=False, sources=False)
    offer = {**OFFER, "parallel_tool_calls": False}
    search = configured(hosted_tools=("web_search",))
    check(asked(search, one, tools=[TOOL]), tools=[TOOL, hosted], **offer)


def test_what_a_server_gives_only_when_asked_is_asked_for() -> None:
    def check(quirks: InForce, hosted: tuple[str, ...], include: list[str] | None) -> None:
        assert asked(configured(hosted_tools=hosted), quirks).get("include") == include

    reasoning, sources = "reasoning.encrypted_content", "web_search_call.action.sources"
    check(InForce(), (), None)
    check(InForce(), ("file_search",), None)
    check(InForce(), ("web_search",), [sources])
    check(InForce(sources=False), ("web_search",), None)
    check(InForce(encrypted=True), (), [reasoning])
    check(InForce(encrypted=True), ("web_search",), [reasoning, sources])


def test_what_is_left_out_is_the_users_word_then_the_servers() -> None:
    def check(settings: Model, quirks: InForce, without: tuple[str, ...], **wanted: Any) -> None:
        given = asked(settings, quirks, without=without)
        assert {name: given.get(name) for name in wanted} == wanted

    padded = InForce(extra={"stream_options": {"include_obfuscation": False}, "top_p": 1})
    check(configured(), padded, (), stream_options={"include_obfuscation": False}, top_p=1)
    mine = configured(extra_body={"stream_options": {"include_obfuscation": True}, "top_p": 0})
    check(mine, padded, (), stream_options={"include_obfuscation": True}, top_p=0)
    no_key = InForce(omit=frozenset({"prompt_cache_key"}))
    check(configured(), no_key, (), prompt_cache_key=None, store=False)
    check(configured(), InForce(), ("store", "reasoning"), prompt_cache_key="s1", store=None)
    check(mine, InForce(), ("top_p",), top_p=None, store=False)


def test_extra_settings_go_into_the_body_and_into_its_objects() -> None:
    extra = {"temperature": 0, "reasoning": {"context": "auto"}, "text": "plain", "store": True}
    given = asked(configured(verbosity="low", extra_body=extra), effort="low")
    assert given == {**LEAST, **extra, "reasoning": {"effort": "low", "context": "auto"}}


def test_the_same_input_gives_the_same_bytes() -> None:
    settings = configured(summary="auto", verbosity="low", service_tier="x")
    quirks = InForce(encrypted=True)
    first, second = (
        json.dumps(asked(settings, quirks, effort="low", tools=[TOOL])) for _ in range(2)
    )
    assert first == second
    assert list(json.loads(first)) == [
        "model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls",
        "reasoning", "include", "text", "service_tier", "prompt_cache_key", "store", "stream",
    ]  # fmt: skip


# -- schemas


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Spot(BaseModel):
    """Ours alone."""

    model_config = ConfigDict(extra="forbid")
    x: int
    note: str | None = Field(default=None, description="A note.")


class Everything(BaseModel):
    """Ours alone."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(description="A name.", min_length=1)
    size: int = 3
    colour: Colour | None = None
    shade: Colour = Colour.RED
    mode: Literal["one"] | None = Field(default=None, description="A mode.")
    either: int | str | None = None
    spot: Spot = Field(description="A spot.")
    spots: list[Spot] | None = None
    must: int | None


def written(model: type[BaseModel], *, strict: bool) -> dict[str, Any]:
    tool = function_tool("t", "d", model.model_json_schema(), strict=strict)
    assert {key: tool[key] for key in ("type", "name", "description", "strict")} == {
        "type": "function",
        "name": "t",
        "description": "d",
        "strict": strict,
    }
    schema = tool["parameters"]
    assert isinstance(schema, dict)
    return cast("dict[str, Any]", schema)


def test_a_strict_schema_requires_everything_and_lets_the_optional_be_null() -> None:
    spot = {
        "type": "object",
        "properties": {
            "x": {"type": "integer"},
            "note": {"type": ["string", "null"], "description": "A note."},
        },
        "required": ["x", "note"],
        "additionalProperties": False,
    }
    colour = {"type": ["string", "null"], "enum": ["red", "blue", None]}
    properties = {
        "name": {"type": "string", "description": "A name.", "minLength": 1},
        "size": {"type": ["integer", "null"]},
        "colour": colour,
        "shade": colour,
        "mode": {
            "anyOf": [{"type": "string", "const": "one"}, {"type": "null"}],
            "description": "A mode.",
        },
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
        "spot": {**spot, "description": "A spot."},
        "spots": {"type": ["array", "null"], "items": spot},
        "must": {"type": ["integer", "null"]},
    }
    assert written(Everything, strict=True) == {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def test_a_loose_schema_leaves_out_what_may_be_left_out() -> None:
    schema = written(Everything, strict=False)
    assert schema["required"] == ["name", "spot", "must"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["size"] == {"type": "integer"}
    assert properties["colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert properties["must"] == {"type": ["integer", "null"]}
    assert properties["spots"]["items"]["required"] == ["x"]


def test_schemas_of_others_keep_their_meaning() -> None:
    def check(given: dict[str, Any], expected: dict[str, Any], *, strict: bool = False) -> None:
        assert function_tool("t", "d", given, strict=strict)["parameters"] == expected

    words = {"type": "object", "additionalProperties": {"type": "string", "title": "W"}}
    check(words, {"type": "object", "additionalProperties": {"type": "string"}})
    check(words, {"type": "object", "additionalProperties": False}, strict=True)
    check({"type": "object", "properties": {"any": True}},
          {"type": "object", "properties": {"any": True}, "required": []})  # fmt: skip
    check({"type": "object", "properties": {"a": {"$ref": "#/nowhere/X"}}},
          {"type": "object", "properties": {"a": {}}, "required": []})  # fmt: skip
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/T"}}, "required": ["left"]}
    inner: dict[str, Any] = {"type": "object", "properties": {"left": {}}, "required": ["left"]}
    check({**tree, "$defs": {"T": tree}}, {**inner, "properties": {"left": inner}})
    free = {"type": "object", "properties": {"a": {"description": "x", "minimum": 1}}}
    schema = {"anyOf": [{"minimum": 1}, {"type": "null"}], "description": "x"}
    check(free, {"type": "object", "properties": {"a": schema}, "required": ["a"],
                 "additionalProperties": False}, strict=True)  # fmt: skip
    check({"type": "object", "properties": {"a": {"anyOf": [True, {"type": "null"}]}}},
          {"type": "object", "properties": {"a": {"anyOf": [True, {"type": "null"}]}},
           "required": []})  # fmt: skip
