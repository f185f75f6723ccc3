"""The body of a request: settings, conversation and tools in; one JSON object out.

Rule 1: the same input gives the same bytes, so that the provider's prompt cache holds.
Rule 2: what is not configured is not sent: servers refuse parameters that they do not know.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, cast


class ModelSettings(Protocol):
    """What the configuration says of a model, as far as it enters a request."""

    @property
    def model(self) -> str: ...
    @property
    def max_output_tokens(self) -> int | None: ...
    @property
    def summary(self) -> str | None: ...
    @property
    def verbosity(self) -> str | None: ...
    @property
    def service_tier(self) -> str | None: ...
    @property
    def parallel_tool_calls(self) -> bool: ...
    @property
    def replay_reasoning(self) -> Literal["encrypted", "content", "both", "none"]: ...
    @property
    def extra_body(self) -> Mapping[str, Any]: ...
    @property
    def hosted_tools(self) -> Sequence[str]: ...


def body(
    settings: ModelSettings,
    *,
    effort: str | None,
    instructions: str,
    input: Sequence[Mapping[str, object]],  # noqa: A002 (the API's own name)
    tools: Sequence[Mapping[str, object]],
    cache_key: str,
) -> dict[str, object]:
    """One streaming request that the server need not remember."""
    encrypted = settings.replay_reasoning in ("encrypted", "both")
    offered = [*tools, *({"type": name} for name in settings.hosted_tools)]
    reasoning = _given(effort=effort, summary=settings.summary)
    whole: dict[str, object] = {
        "model": settings.model,
        "instructions": instructions,
        "input": list(input),
        **({"tools": offered, "tool_choice": "auto"} if offered else {}),
        "parallel_tool_calls": settings.parallel_tool_calls,
        **({"reasoning": reasoning} if reasoning else {}),
        **({"include": ["reasoning.encrypted_content"]} if encrypted else {}),
        **({"text": {"verbosity": settings.verbosity}} if settings.verbosity else {}),
        **_given(max_output_tokens=settings.max_output_tokens, service_tier=settings.service_tier),
        "prompt_cache_key": cache_key,
        "store": False,
        "stream": True,
    }
    return _merged(whole, settings.extra_body)


def function_tool(
    name: str, description: str, parameters: Mapping[str, Any], *, strict: bool
) -> dict[str, object]:
    """A tool as the API takes it; parameters: the JSON schema that pydantic writes."""
    schema = _plain(_undescribed(parameters), parameters.get("$defs", {}), strict=strict)
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
        "strict": strict,
    }


def _given(**values: object) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def _merged(base: Mapping[str, object], more: Mapping[str, Any]) -> dict[str, object]:
    result = dict(base)
    for key, value in more.items():
        known = result.get(key)
        if isinstance(known, dict) and isinstance(value, Mapping):
            result[key] = _merged(
                cast("dict[str, object]", known), cast("Mapping[str, Any]", value)
            )
        else:
            result[key] = value
    return result


def _undescribed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A class says in its docstring what it is for us; the model reads the fields' texts."""
    return {key: value for key, value in schema.items() if key != "description"}


_NOISE = frozenset({"title", "default", "$defs", "additionalProperties"})


def _plain(schema: Mapping[str, Any], named: Mapping[str, Any], *, strict: bool) -> dict[str, Any]:
    """The schema with its references put in place, closed, and small.

    Strict: every property is required, and one that may be left out may be null instead, which is
    what the API demands of strict tools.
    """
    if "$ref" in schema:
        found = named[str(schema["$ref"]).rpartition("/")[2]]
        schema = {**_undescribed(found), **schema}
    result = {
        key: _inside(value, named, strict=strict)
        for key, value in schema.items()
        if key not in _NOISE and key not in ("$ref", "properties")
    }
    if "properties" not in schema:
        return result
    needed = schema.get("required", [])
    properties = {
        name: _property(value, named, strict=strict, optional=name not in needed)
        for name, value in schema["properties"].items()
    }
    result |= {"properties": properties, "additionalProperties": False}
    result["required"] = list(properties) if strict else list(needed)
    return result


def _property(
    schema: Mapping[str, Any], named: Mapping[str, Any], *, strict: bool, optional: bool
) -> dict[str, Any]:
    plain = _plain(schema, named, strict=strict)
    if "anyOf" in plain:
        plain = _one_type(plain)
    kind = plain.get("type")
    if strict and optional and isinstance(kind, str):
        plain["type"] = [kind, "null"]
        if "enum" in plain:
            plain["enum"] = [*plain["enum"], None]
    return plain


def _one_type(schema: dict[str, Any]) -> dict[str, Any]:
    """`T or null` as T, which then says itself that it may be null."""
    choices = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
    if len(choices) != 1:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**choices[0], **rest}


def _inside(value: Any, named: Mapping[str, Any], *, strict: bool) -> Any:
    if isinstance(value, Mapping):
        return _plain(cast("Mapping[str, Any]", value), named, strict=strict)
    if isinstance(value, list):
        return [_inside(item, named, strict=strict) for item in cast("list[Any]", value)]
    return value
