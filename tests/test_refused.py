"""Which parameter a server refuses, in all the ways in which servers say it."""

from typing import Any

from bridge.responses.refused import refused_parameter


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


def check(body: Any, expected: str | None) -> None:
    assert refused_parameter(body) == expected


def test_a_parameter_may_have_a_field_of_its_own() -> None:
    words = "Unsupported parameter: 'temperature' is not supported with this model."
    check(error(words, param="temperature", code="unsupported_parameter"), "temperature")
    check(error("No.", param="store", code="unknown_parameter"), "store")
    encrypted = "Encrypted content is not supported with this model."
    check(error(encrypted, param="include", code=None), "include")
    check(error("Unknown parameter: 'reasoning.mode'.", param="reasoning.mode"), "reasoning")
    check(error("Unknown parameter: 'include[1]'.", param="include[1]"), "include")
    check({"error": {"error": {"code": "unknown_parameter", "param": "store"}}}, "store")
    check(error("Unknown parameter: 'store'.", param=""), "store")
    check({"code": "unsupported_parameter", "param": "store"}, "store")


def test_a_parameter_may_be_named_in_words_alone() -> None:
    check({"detail": "Unsupported parameter: max_output_tokens"}, "max_output_tokens")
    check(error("Unknown parameter: 'prompt_cache_key'."), "prompt_cache_key")
    check(error("Unrecognized request argument supplied: service_tier"), "service_tier")
    check(error('json: unknown field "store"'), "store")
    check(error('Invalid JSON payload received. Unknown name "store": Cannot find field.'), "store")
    check({"code": "c", "error": "Argument not supported on this model: reasoningEffort"},
          "reasoning")  # fmt: skip
    check(error("Model grok-4 does not support parameter reasoningEffort."), "reasoning")
    check(error("litellm.UnsupportedParamsError: zai does not support parameters: "
                "['max_completion_tokens'], for model=glm."), "max_output_tokens")  # fmt: skip
    check(error("The parameter `store` is not supported."), "store")
    check(error("'parallel_tool_calls' is not supported with this model"), "parallel_tool_calls")
    check(error("prompt_cache_key: Extra inputs are not permitted"), "prompt_cache_key")
    check(error("1 validation error\nstore\n  Extra inputs are not permitted [type=x]"), "store")
    check(error("[{'type': 'extra_forbidden', 'loc': ('body', 'verbosity'), 'msg': "
                "'Extra inputs are not permitted', 'input': 1}]"), "text")  # fmt: skip
    wrapped = '{"error": {"message": "Encrypted content is not supported.", "param": "include"}}'
    check(error(f"litellm.BadRequestError: OpenAIException - {wrapped}"), "include")
    check("Unsupported parameter: store", "store")
    check([{"error": {"message": "Unknown parameter: 'store'."}}], "store")


def test_a_list_of_faults_says_where_they_are() -> None:
    def forbidden(*path: Any) -> dict[str, Any]:
        return {"type": "extra_forbidden", "loc": path, "msg": "Extra inputs are not permitted"}

    other = {"type": "missing", "loc": ["body", "x"], "msg": "Field required"}
    check({"detail": [forbidden("body", "store")]}, None)  # JSON has no tuples
    check({"detail": [other, "odd", {**other, "loc": None}]}, None)
    store = {"type": "extra_forbidden", "loc": ["body", "store"]}
    check({"detail": [other, store]}, "store")
    check({"detail": [{**store, "loc": ["body", "text", "verbosity"]}]}, "text")
    check({"detail": [{**store, "loc": ["body", "input", 0, "status"]}]}, None)
    check({"detail": [{**store, "loc": ["body"]}, {**store, "loc": "body"}]}, None)


def test_what_no_request_can_do_without_is_not_named() -> None:
    check(error("Unknown parameter: 'input[3].status'.", param="input[3].status"), None)
    check(error("Unknown parameter: 'tools[0].strict'.", param="tools[0].strict"), None)
    check(error("Unsupported parameter: instructions"), None)
    check("Unsupported parameter: stream", None)
    check({"detail": "Unsupported parameter: model"}, None)


def test_other_refusals_name_no_parameter() -> None:
    value = "Unsupported value: 'xhigh' is not supported. Supported values are: 'low'."
    check(error(value, param="reasoning.effort", code="unsupported_value"), None)
    check(error(value), None)
    check(error("Invalid value: 'x'.", param="include[0]", code="invalid_value"), None)
    check(error("Integer below minimum.", param="max_output_tokens"), None)
    check(error("Missing required parameter: 'input'.", param="input"), None)
    check(error("The model does not exist.", param=None, code="model_not_found"), None)
    check(error("Streaming is not supported here."), None)
    check(error("No.", param=3, code="unknown_parameter"), None)
    check(error("Your organization must be verified.", param="reasoning.summary"), None)
    check({"detail": "Store must be set to false"}, None)
    check({}, None)
    check([], None)
    check(None, None)
    check("", None)
    check({"error": None, "message": 3}, None)
