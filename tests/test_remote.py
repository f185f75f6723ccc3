"""Tools of MCP servers as data: their names, what a permission for one is about, what they answer,
and the forms they want filled in."""

import base64
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import form
from bridge.core.records import Returned, decode, encode
from bridge.core.remote import RemoteTool, access, function, offered_names, slugs
from bridge.core.remote_content import MOST_DATA, MOST_PICTURE, MOST_TEXT, Output, cut, result
from tests.acp_schema import faults
from tests.pictures import GIF, PDF, PNG
from tools.base import Attached, Filled, Media, Result, Text

TOOL = RemoteTool("find", "Finds.", {"type": "object", "properties": {"a": {"type": "string"}}})
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
LONG = "l" * 80

# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ([], []),
        (["db", "git-hub"], ["db", "git-hub"]),
        (["my server", "a.b"], ["my_server", "a_b"]),
        (["a__b", "_x_", ""], ["a_b", "x", "server"]),
        # The one that is called so by itself keeps its name, wherever it stands.
        (["a.b", "a_b"], ["a_b_31d1e1bc", "a_b"]),
        (["a_b", "a.b"], ["a_b", "a_b_31d1e1bc"]),
        ([LONG], ["lllllllllllllll_d750b243"]),
    ],
)
def test_each_server_has_a_part_of_its_own_in_names(
    servers: list[str], expected: list[str]
) -> None:
    assert list(slugs(servers).values()) == expected


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (["find", "get-it"], ["mcp__s__find", "mcp__s__get-it"]),
        (["a b", "naïve"], ["mcp__s__a_b", "mcp__s__na_ve"]),
        (["a.b", "a_b", "a b"], ["mcp__s__a_b_31d1e1bc", "mcp__s__a_b", "mcp__s__a_b_7faae47c"]),
        ([LONG], [f"mcp__s__{'l' * 47}_d750b243"]),
    ],
)
def test_tools_have_the_names_that_the_api_takes(tools: list[str], expected: list[str]) -> None:
    assert list(offered_names("s", tools).values()) == expected


@given(st.lists(st.text(), unique=True), st.lists(st.text(), unique=True))
def test_no_two_tools_share_a_name(servers: list[str], tools: list[str]) -> None:
    parts = slugs(servers).values()
    names = [name for part in parts for name in offered_names(part, tools).values()]
    assert len(set(names)) == len(servers) * len(tools)
    assert all(map(NAME.fullmatch, names))


def test_a_schema_is_passed_on_and_completed() -> None:
    assert function("mcp__s__find", TOOL) == {
        "type": "function",
        "name": "mcp__s__find",
        "description": "Finds.",
        "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
        "strict": False,
    }
    bare = function("n", replace(TOOL, schema={}))
    assert bare["parameters"] == {"type": "object", "properties": {}}


# -- permissions ----------------------------------------------------------------------------------


def test_a_permission_is_for_a_tool_as_it_is_described() -> None:
    asked = access("s", TOOL, trusted=False)
    assert (asked.action, asked.harmless) == ("call", False)
    turned = {key: TOOL.schema[key] for key in reversed(list(TOOL.schema))}
    assert access("s", replace(TOOL, schema=turned), trusted=False) == asked
    others = [
        access("t", TOOL, trusted=False),
        access("s", replace(TOOL, name="find2"), trusted=False),
        access("s", replace(TOOL, description="Finds \ud800."), trusted=False),
        access("s", replace(TOOL, schema={"type": "object"}), trusted=False),
    ]
    assert len({asked.subject, *(other.subject for other in others)}) == 5


@pytest.mark.parametrize(
    ("trusted", "read_only", "harmless"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_a_tool_is_harmless_if_it_says_so_and_is_believed(
    trusted: bool, read_only: bool, harmless: bool
) -> None:
    assert access("s", replace(TOOL, read_only=read_only), trusted=trusted).harmless == harmless


def check(update: dict[str, Any]) -> None:
    """An update is one that the editor's protocol knows."""
    params = {"sessionId": "s", "update": update}
    assert faults("session/update", "client", "params", params) == []


# -- content --------------------------------------------------------------------------------------

IMAGE: dict[str, Any] = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
LINK: dict[str, Any] = {"type": "resource_link", "uri": "file:///a", "name": "a"}
HI = base64.b64encode(b"hi").decode()


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def resource(**inner: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "file:///r", **inner}}


CONTENT: list[tuple[list[Any], str, Any]] = [
        ([text("one")], "one", None),
        ([text("one"), text("two")], "one\ntwo", (Text("one"), Text("two"))),
        ([], "(no output)", None),
        ([text("")], "(no output)", (Text(""),)),
        ([{**IMAGE, "annotations": {}}], "[image of type image/png, shown to the user]",
         (Attached(IMAGE),)),
        ([{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}],
         "[audio of type audio/wav, shown to the user]",
         (Attached({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}),)),
        ([{**LINK, "icons": []}], '[resource_link name="a" uri="file:///a"]', (Attached(LINK),)),
        ([resource(text="t")], '<resource uri="file:///r">\nt\n</resource>',
         (Attached(resource(text="t")),)),
        ([resource(blob=HI)], '<resource uri="file:///r">\nhi\n</resource>',
         (Attached(resource(blob=HI)),)),
        ([resource(blob="/w==", mimeType="image/png")],
         '[resource uri="file:///r" holds data of type image/png, not text]',
         (Attached(resource(blob="/w==", mimeType="image/png")),)),
        # What is too big or not what it says it is has a line in its place.
        ([{**IMAGE, "data": "x" * MOST_DATA}], "[image of type image/png, shown to the user]",
         (Text("[image image/png, too big or too strange to be shown]"),)),
        ([{"type": "image"}], "[image of type unknown, shown to the user]",
         (Text("[image unknown, too big or too strange to be shown]"),)),
        ([{"type": "resource", "resource": 5}],
         '[resource uri="None" holds data of type unknown, not text]',
         (Text("[resource unknown, too big or too strange to be shown]"),)),
        ([{"type": "smell"}], "[smell of type unknown, shown to the user]",
         (Text("[smell unknown, too big or too strange to be shown]"),)),
]  # fmt: skip


@pytest.mark.parametrize(("blocks", "told", "shown"), CONTENT)
def test_content_is_told_to_the_model_and_shown_to_the_person(
    blocks: list[dict[str, Any]], told: str, shown: Any
) -> None:
    assert result(Output(tuple(blocks))) == Result(told, shown=shown)
    for one in shown or ():
        if isinstance(one, Attached):
            content = [{"type": "content", "content": one.block}]
            check({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": content})


def picture(data: str) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": "image/jpeg"}


@pytest.mark.parametrize(
    ("block", "takes", "media", "told"),
    [
        (picture(PNG), {"image/png"}, (Media("image/png", PNG),), "(see the picture)"),
        (picture(f"{PNG[:9]}\n{PNG[9:]}"), {"image/png"}, (Media("image/png", PNG),),
         "(see the picture)"),
        (picture(PNG), set[str](), (), "[image of type image/jpeg, shown to the user]"),
        (picture(GIF), {"image/png"}, (), "[image of type image/jpeg, shown to the user]"),
        (picture(PDF), {"image/png"}, (), "[image of type image/jpeg, shown to the user]"),
        (picture("%"), {"image/png"}, (), "[image of type image/jpeg, shown to the user]"),
        (picture(PNG + "A" * MOST_PICTURE), {"image/png"}, (),
         "[image of type image/jpeg, shown to the user]"),
    ],
)  # fmt: skip
def test_a_picture_is_given_to_a_model_that_takes_it(
    block: dict[str, Any], takes: set[str], media: tuple[Media, ...], told: str
) -> None:
    given = result(Output((block,)), frozenset(takes))
    assert (given.media, given.text) == (media, told)
    with_text = result(Output((text("Look:"), block)), frozenset(takes))
    assert with_text.text == ("Look:" if media else f"Look:\n{told}")


def test_a_failed_call_fails_and_structured_data_is_told_where_there_is_nothing_else() -> None:
    assert result(Output((text("no"),), failed=True)) == Result("no", ok=False)
    assert result(Output((), {"a": "ü"})) == Result('{"a": "ü"}')
    assert result(Output((text("it"),), {"a": 1})) == Result("it")


def test_pictures_beyond_what_a_line_holds_are_named() -> None:
    half = {**IMAGE, "data": "x" * (MOST_DATA // 2 + 1)}
    shown = result(Output((half, half, IMAGE))).shown
    assert shown is not None
    assert [type(one) for one in shown] == [Attached, Text, Attached]


def test_a_long_text_is_cut_in_the_middle() -> None:
    assert cut("x" * MOST_TEXT) == "x" * MOST_TEXT
    long = cut("a" * MOST_TEXT + "b" * MOST_TEXT)
    assert len(long) < MOST_TEXT + 100
    assert long.startswith("aaa")
    assert long.endswith("bbb")
    assert f"[… {MOST_TEXT} characters left out …]" in long
    told = result(Output((text("c" * 2 * MOST_TEXT),)))
    assert told == Result(cut("c" * 2 * MOST_TEXT))


# -- forms ----------------------------------------------------------------------------------------


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


CHOICES = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (schema("a", a={"type": "string", "maxLength": 5, "$comment": "x"}),
         schema("a", a={"type": "string", "maxLength": 5})),
        (schema("b", a={"type": "number", "minimum": 1}, c={"type": "boolean", "default": True}),
         schema(a={"type": "number", "minimum": 1}, c={"type": "boolean", "default": True})),
        (schema(a={"type": "integer", "title": "A", "description": "D"}),
         schema(a={"type": "integer", "title": "A", "description": "D"})),
        (schema(a={"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}),
         schema(a={"type": "string", "oneOf": CHOICES})),
        (schema(a={"type": "string", "enum": ["r", "g"], "enumNames": ["Red"]}),
         schema(a={"type": "string", "enum": ["r", "g"]})),
        (schema(a={"type": "array", "items": {"anyOf": CHOICES}, "minItems": 1}),
         schema(a={"type": "array", "items": {"anyOf": CHOICES}, "minItems": 1})),
        ({"type": "object"}, schema()),
        (schema(a={"type": "object", "properties": {}}), None),
        (schema(a=5), None),
    ],
)  # fmt: skip
def test_a_flat_form_is_passed_on_and_no_other(asked: Any, shown: Any) -> None:
    assert form.form(asked) == shown
    if shown is not None:
        params = {"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": shown}
        assert faults("elicitation/create", "client", "params", params) == []


@pytest.mark.parametrize(
    ("field", "value", "fits"),
    [
        ({"type": "string"}, "x", True),
        ({"type": "string"}, 5, False),
        ({"type": "string", "enum": ["r"]}, "r", True),
        ({"type": "string", "enum": ["r"]}, "x", False),
        ({"type": "string", "oneOf": CHOICES}, "g", True),
        ({"type": "string", "oneOf": CHOICES}, "Green", False),
        ({"type": "integer"}, 5, True),
        ({"type": "integer"}, 5.5, False),
        ({"type": "integer"}, True, False),
        ({"type": "number"}, 5.5, True),
        ({"type": "boolean"}, True, True),
        ({"type": "boolean"}, 1, False),
        ({"type": "array", "items": {"anyOf": CHOICES}}, ["r", "g"], True),
        ({"type": "array", "items": {"type": "string", "enum": ["r"]}}, ["r", "x"], False),
        ({"type": "array", "items": {"type": "string"}}, ["any"], True),
        ({"type": "object"}, {}, False),
    ],
)  # fmt: skip
def test_an_answer_goes_to_the_server_where_it_fits(field: Any, value: Any, fits: bool) -> None:
    wanted = Filled("accept", {"a": value}) if fits else Filled("cancel")
    assert form.checked(schema("a", a=field), {"a": value}) == wanted


@pytest.mark.parametrize("content", [None, "x", {}, {"a": "x", "b": "y"}])
def test_an_answer_with_something_missing_or_added_is_none(content: Any) -> None:
    assert form.checked(schema("a", a={"type": "string"}), content) == Filled("cancel")


def test_what_is_not_required_may_be_left_out() -> None:
    assert form.checked(schema(a={"type": "string"}), {}) == Filled("accept", {})


def test_the_result_of_a_call_survives_the_session_file() -> None:
    told = result(Output((text("one"), IMAGE)))
    returned = Returned("c", "c", False, told.text, told.ok, told.shown)
    assert decode(encode(returned)) == returned
    assert json.loads(encode(returned))["shown"][1]["block"] == IMAGE
