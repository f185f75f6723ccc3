from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from bridge.acp import schema
from bridge.errors import INVALID_PARAMS, EditorError
from tests.test_wire import json_values

SECRET = "sk-very-secret"  # pragma: allowlist secret

MODELS: list[type[schema.Params]] = [
    schema.AnyParams,
    schema.AuthenticateParams,
    schema.WorkspaceParams,
    schema.LoadSessionParams,
    schema.ListSessionsParams,
    schema.SetModeParams,
    schema.SetConfigOptionParams,
    schema.PromptParams,
    schema.SessionParams,
    schema.CancelRequestParams,
]


def check(model: type[schema.Params], params: dict[str, Any], said: str | dict[str, Any]) -> None:
    """What params are read as, or the complaint about them."""
    if isinstance(said, dict):
        assert schema.read(model, params).model_dump(exclude_none=True) == said
        return
    with pytest.raises(EditorError) as refused:
        schema.read(model, params)
    assert refused.value.code == INVALID_PARAMS
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("model", "params", "said"),
    [
        (schema.AuthenticateParams, {"methodId": "m", "x": 1}, {"method_id": "m"}),
        (schema.AuthenticateParams, {"methodId": 5}, "methodId: Input should be a valid string"),
        (
            schema.WorkspaceParams,
            {"cwd": "/w"},
            {"cwd": "/w", "mcp_servers": [], "additional_directories": []},
        ),
        (schema.WorkspaceParams, {"cwd": "w/x"}, "cwd must be an absolute path: w/x"),
        (schema.WorkspaceParams, {"cwd": ""}, "cwd must be an absolute path: "),
        (schema.WorkspaceParams, {"cwd": "w\ud800"}, "cwd must be an absolute path: w?"),
        (
            schema.WorkspaceParams,
            {"cwd": "/w", "additionalDirectories": ["\udcff"]},
            "additionalDirectories.0 must be an absolute path: ?",
        ),
        (schema.WorkspaceParams, {"mcpServers": []}, "cwd: Field required"),
        (
            schema.LoadSessionParams,
            {"sessionId": "s", "cwd": "/w", "mcpServers": None},
            {"session_id": "s", "cwd": "/w", "mcp_servers": [], "additional_directories": []},
        ),
        (schema.ListSessionsParams, {}, {}),
        (schema.ListSessionsParams, {"cwd": None, "cursor": None}, {}),
        (schema.ListSessionsParams, {"cwd": "/w", "cursor": "c"}, {"cwd": "/w", "cursor": "c"}),
        (schema.ListSessionsParams, {"cwd": "."}, "cwd must be an absolute path: ."),
        (
            schema.SetModeParams,
            {"sessionId": "s", "modeId": "plan"},
            {"session_id": "s", "mode_id": "plan"},
        ),
        (schema.SessionParams, {}, "sessionId: Field required"),
        (schema.SessionParams, {"sessionId": None}, "sessionId: Input should be a valid string"),
        (
            schema.PromptParams,
            {},
            "sessionId: Field required; prompt: Field required",
        ),
    ],
)
def test_params_are_read_or_refused_by_name(
    model: type[schema.Params], params: dict[str, Any], said: str | dict[str, Any]
) -> None:
    check(model, params, said)


@pytest.mark.parametrize("call", ["1", 1, 2**60, None, ""])
def test_a_request_to_be_cancelled_is_named_by_its_id(call: Any) -> None:
    assert schema.read(schema.CancelRequestParams, {"requestId": call}).request_id == call


@pytest.mark.parametrize("call", [1.0, True, [], {}])
def test_an_id_that_is_none_is_refused(call: Any) -> None:
    with pytest.raises(EditorError, match="requestId"):
        schema.read(schema.CancelRequestParams, {"requestId": call})


OPTION = {"sessionId": "s", "configId": "c"}
VALUE_REFUSED = 'value: must be a string, or a boolean beside "type": "boolean"'


@pytest.mark.parametrize(
    ("given_value", "value"),
    [
        ({"value": "x"}, "x"),
        ({"value": "true"}, "true"),
        ({"value": "x", "type": "a type of tomorrow"}, "x"),
        ({"value": "x", "type": 5}, "x"),
        ({"value": True, "type": "boolean"}, True),
        ({"value": False, "type": "boolean"}, False),
    ],
)
def test_an_option_is_set_to_a_string_or_a_declared_boolean(
    given_value: dict[str, Any], value: str | bool
) -> None:
    read = schema.read(schema.SetConfigOptionParams, {**OPTION, **given_value})
    assert read.value == value
    assert type(read.value) is type(value)


@pytest.mark.parametrize(
    "given_value",
    [{"value": True}, {"value": 1, "type": "boolean"}, {"value": None}, {"value": ["x"]}],
)
def test_another_value_of_an_option_is_refused(given_value: dict[str, Any]) -> None:
    check(schema.SetConfigOptionParams, {**OPTION, **given_value}, VALUE_REFUSED)


@pytest.mark.parametrize(
    ("block", "sent"),
    [
        (
            {"type": "text", "text": "a\ud800", "_meta": {"x": 1}},
            {"type": "text", "text": "a\ud800"},
        ),
        (
            {"type": "image", "data": "AA==", "mimeType": "image/png", "uri": 5},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
        ),
        (
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        ),
        (
            {"type": "resource_link", "uri": "zed://x", "name": "n", "size": 1.5, "title": None},
            {"type": "resource_link", "uri": "zed://x", "name": "n"},
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "text": "", "mimeType": 1}},
            {"type": "resource", "resource": {"uri": "file:///a", "text": ""}},
        ),
        (
            {"type": "resource", "resource": {"uri": "u", "blob": "AA==", "mimeType": "image/png"}},
            {"type": "resource", "resource": {"uri": "u", "blob": "AA==", "mimeType": "image/png"}},
        ),
        (
            {"type": "resource", "resource": {"uri": "u", "text": None, "blob": "AA=="}},
            {"type": "resource", "resource": {"uri": "u", "blob": "AA=="}},
        ),
        ({"type": "video", "data": "AA=="}, {"type": "video"}),
        (
            {"type": "text", "text": "", "annotations": {"audience": ["user", 5, "all"]}},
            {"type": "text", "text": "", "annotations": {"audience": ["user"]}},
        ),
        (
            {"type": "text", "text": "", "annotations": {"audience": 1, "priority": 0.5}},
            {"type": "text", "text": "", "annotations": {"priority": 0.5}},
        ),
        ({"type": "text", "text": "", "annotations": "x"}, {"type": "text", "text": ""}),
    ],
)
def test_a_block_is_kept_as_the_protocol_writes_it(
    block: dict[str, Any], sent: dict[str, Any]
) -> None:
    read = schema.read(schema.PromptParams, {"sessionId": "s", "prompt": [block]})
    assert [one.as_sent() for one in read.prompt] == [sent]
    assert read.prompt[0].type == sent["type"]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"type": "text"}, "prompt.0.text: Field required"),
        ({"text": "x"}, "prompt.0.type: Field required"),
        ({"type": "image", "data": "x"}, "prompt.0.mimeType: Field required"),
        ({"type": "resource_link", "uri": "u"}, "prompt.0.name: Field required"),
        ({"type": []}, "prompt.0.type: Input should be a valid string"),
        (5, "prompt.0: Input should be an object"),
        ({"type": "resource", "resource": "x"}, "prompt.0.resource: Input should be an object"),
        (
            {"type": "resource", "resource": {"text": 5}},
            "prompt.0.resource.uri: Field required; "
            "prompt.0.resource.text: Input should be a valid string",
        ),
        (
            {"type": "resource", "resource": {"blob": "AA=="}},
            "prompt.0.resource.uri: Field required",
        ),
    ],
)
def test_a_broken_block_is_named(block: Any, said: str) -> None:
    check(schema.PromptParams, {"sessionId": "s", "prompt": [block]}, said)


@pytest.mark.parametrize("block", [5, None, "text", [], {"type": "resource", "resource": {}}])
def test_what_is_no_block_is_refused(block: Any) -> None:
    with pytest.raises(EditorError, match=r"^prompt\.0"):
        schema.read(schema.PromptParams, {"sessionId": "s", "prompt": [block]})


PAIR = {"name": "KEY", "value": SECRET}


@pytest.mark.parametrize(
    ("server", "kind"),
    [
        ({"name": "n", "command": "/c", "args": ["a"], "env": [PAIR]}, schema.StdioServer),
        ({"name": "n", "command": "/c", "args": None, "env": None}, schema.StdioServer),
        ({"name": "n", "command": "/c"}, schema.StdioServer),
        ({"type": "stdio", "name": "n", "command": "/c", "args": []}, schema.StdioServer),
        ({"type": "http", "name": "n", "url": "u", "headers": [PAIR]}, schema.HttpServer),
        ({"type": "sse", "name": "n", "url": "u", "headers": []}, schema.SseServer),
        ({"type": "acp", "name": "n", "serverId": "1"}, schema.OtherServer),
    ],
)
def test_a_server_is_told_by_its_form_and_shows_no_secret(
    server: dict[str, Any], kind: type[schema.Params]
) -> None:
    read = schema.read(schema.WorkspaceParams, {"cwd": "/", "mcpServers": [server]})
    assert [type(one) for one in read.mcp_servers] == [kind]
    assert SECRET not in repr(read)


@pytest.mark.parametrize(
    "servers",
    [
        SECRET,
        [SECRET],
        [{"name": "n"}],
        [{"command": "/c"}],
        [{"name": "n", "command": "/c", "env": {"KEY": SECRET}}],
        [{"name": "n", "command": "/c", "args": SECRET}],
        [{"name": "n", "command": "/c", "env": [{"name": "KEY", "value": [SECRET]}]}],
        [{"type": "http", "name": "n", "headers": [PAIR]}],
        [{"type": 5, "name": "n", "url": SECRET}],
        [{"type": "acp", "secret": SECRET}],
    ],
)
def test_a_broken_server_is_refused_without_repeating_it(servers: Any) -> None:
    with pytest.raises(EditorError, match=r"^mcpServers") as caught:
        schema.read(schema.WorkspaceParams, {"cwd": "/", "mcpServers": servers})
    assert SECRET not in f"{caught.value!r} {caught.value.data}"
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (SECRET, "mcpServers.0: Input should be an object"),
        (
            {"name": "n", "command": "/c", "env": [SECRET]},
            "mcpServers.0.env.0: Input should be an object",
        ),
    ],
)
def test_a_broken_server_is_named_as_on_the_wire(server: Any, said: str) -> None:
    check(schema.WorkspaceParams, {"cwd": "/", "mcpServers": [server]}, said)


def test_a_server_of_no_form_is_taken_for_a_program() -> None:
    said = "mcpServers.0.command: Field required"
    check(schema.WorkspaceParams, {"cwd": "/", "mcpServers": [{"name": "n"}]}, said)


def test_params_read_elsewhere_are_all_kept() -> None:
    assert schema.read(schema.AnyParams, {"a": 1, "b": None}).model_extra == {"a": 1, "b": None}


@pytest.mark.parametrize(
    ("given_value", "kept"), [([1, "x", 2, None], [1, 2]), ([], []), (["x"], [])]
)
def test_invalid_items_are_left_out(given_value: Any, kept: list[int]) -> None:
    adapter: TypeAdapter[list[int]] = TypeAdapter(schema.ValidOnly[int])
    assert adapter.validate_python(given_value) == kept


@given(st.sampled_from(MODELS), json_values)
def test_no_params_raise_anything_else(model: type[schema.Params], value: Any) -> None:
    names = [field.alias or "" for field in model.model_fields.values()]
    for each in (value, [value]):
        with suppress(EditorError):
            schema.read(model, dict.fromkeys(names, each))
