"""The body of a request: settings, conversation and tools in; one JSON object out.

Rule 1: the same input gives the same bytes, so that the provider's prompt cache holds.
Rule 2: what is not configured is not sent: servers refuse parameters that they do not know.
Rule 3: of two words for one parameter the user's counts, except that what the server refused stays
out.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from bridge.responses.quirks import InForce, ModelSettings
from tools.frozen import frozen


def body(
    settings: ModelSettings,
    quirks: InForce,
    *,
    effort: str | None,
    instructions: str,
    input: Sequence[Mapping[str, object]],  # noqa: A002 (the API's own name)
    tools: Sequence[Mapping[str, object]],
    cache_key: str,
    without: Collection[str] = (),
) -> dict[str, object]:
    """One streaming request that the server need not remember.

    without: parameters that the server has refused.
    """
    offered = [*tools, *({"type": name} for name in settings.hosted_tools)]
    reasoning = _given(effort=effort, summary=settings.summary)
    include = _include(settings, quirks)
    whole: dict[str, object] = {
        "model": settings.model,
        "instructions": instructions,
        "input": list(input),
        **(_offer(offered, parallel=quirks.parallel_tool_calls) if offered else {}),
        **({"reasoning": reasoning} if reasoning else {}),
        **({"include": include} if include else {}),
        **({"text": {"verbosity": settings.verbosity}} if settings.verbosity else {}),
        **_given(max_output_tokens=settings.max_output_tokens, service_tier=settings.service_tier),
        "prompt_cache_key": cache_key,
        "store": False,
        "stream": True,
    }
    whole = _merged(_merged(whole, quirks.extra), settings.extra_body)
    left_out = {*quirks.omit, *without}
    return {name: value for name, value in whole.items() if name not in left_out}


def function_tool(
    name: str, description: str, parameters: Mapping[str, Any], *, strict: bool
) -> dict[str, object]:
    """A tool as the API takes it; parameters: the JSON schema that pydantic writes."""
    schemas = _Schemas(parameters.get("$defs", {}), strict=strict)
    schema = schemas.plain(_undescribed(parameters))
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
        "strict": strict,
    }


def _offer(tools: Sequence[object], *, parallel: bool) -> dict[str, object]:
    return {"tools": tools, "tool_choice": "auto", "parallel_tool_calls": parallel}


def _include(settings: ModelSettings, quirks: InForce) -> list[str]:
    wanted = ["reasoning.encrypted_content"] if quirks.encrypted else []
    if quirks.sources and "web_search" in settings.hosted_tools:
        wanted.append("web_search_call.action.sources")
    return wanted


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


_NULL = {"type": "null"}
_NOISE = frozenset({"title", "default", "$defs", "$ref", "properties", "additionalProperties"})


@frozen
class _Schemas:
    """Writes schemas with their references put in place, and small.

    Strict: objects are closed, every property is required, and one that may be left out may be
    null instead, which is what the API demands of strict tools.
    """

    named: Mapping[str, Any]
    strict: bool
    within: tuple[str, ...] = ()
    """References that are being put in place: one inside itself can only be anything."""

    def plain(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        if "$ref" in schema:
            return self._resolved(schema)
        result = {key: self._inside(value) for key, value in schema.items() if key not in _NOISE}
        extra = False if self.strict else schema.get("additionalProperties")
        if "properties" in schema:
            needed = schema.get("required", ())
            properties = {
                name: self._property(value, optional=name not in needed)
                for name, value in schema["properties"].items()
            }
            result |= {"properties": properties, "required": list(needed)}
            if self.strict:
                result["required"] = list(properties)
        if extra is not None and schema.get("type") == "object":
            result["additionalProperties"] = self._inside(extra)
        return result

    def _resolved(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        name = str(schema["$ref"]).rpartition("/")[2]
        if name in self.within or name not in self.named:
            return {}
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        inner = replace(self, within=(*self.within, name))
        return inner.plain({**_undescribed(self.named[name]), **rest})

    def _property(self, schema: Any, *, optional: bool) -> Any:
        plain = self._inside(schema)
        if not isinstance(plain, dict):
            return plain
        one = _one_type(cast("dict[str, Any]", plain))
        may_be_null = one is not plain and (self.strict or not optional)
        return _nullable(one) if may_be_null or (self.strict and optional) else one

    def _inside(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self.plain(cast("Mapping[str, Any]", value))
        if isinstance(value, list):
            return [self._inside(item) for item in cast("list[Any]", value)]
        return value


def _one_type(schema: dict[str, Any]) -> dict[str, Any]:
    """`T or null` as T, where the schema is that; else the schema itself."""
    choices = schema.get("anyOf", ())
    kept = [choice for choice in choices if choice != _NULL]
    if len(kept) != 1 or len(choices) != 2 or not isinstance(kept[0], dict):
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**cast("dict[str, Any]", kept[0]), **rest}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or null."""
    kind = schema.get("type")
    if isinstance(kind, str) and "const" not in schema:
        more = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return {**schema, "type": [kind, "null"], **more}
    if "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice != _NULL]
        return {**schema, "anyOf": [*choices, _NULL]}
    described = {key: value for key, value in schema.items() if key == "description"}
    return {"anyOf": [_undescribed(schema), _NULL], **described}
