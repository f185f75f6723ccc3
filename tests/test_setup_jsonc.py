"""An entry goes into a file with comments and comes out again, and nothing else moves."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.setup.jsonc import Odd, found, parse, put, take_out

ENTRY = {"command": "/a/b", "args": ["x"]}
PATH = ("servers", "Ours")


def check(before: str, after: str, path: tuple[str, ...] = PATH, value: Any = 1) -> None:
    """What it becomes; and that taking out gives it back where the object was there before."""
    assert put(before, path, value) == after
    assert found(after, path) == value
    if found_object(before, path[:-1]):
        assert take_out(after, path) == before


def found_object(text: str, path: tuple[str, ...]) -> bool:
    try:
        return isinstance(found(text, path), dict)
    except Odd:
        return False


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"servers":{}}', '{"servers":{"Ours": 1}}'),
        ('{"servers":{ }}', '{"servers":{ "Ours": 1 }}'),
        ('{"servers": {"a": 2}}', '{"servers": {"Ours": 1,"a": 2}}'),
        ('{"servers": { "a": 2 }}', '{"servers": { "Ours": 1, "a": 2 }}'),
        ('{\n  "servers": {\n  }\n}\n', '{\n  "servers": {\n    "Ours": 1\n  }\n}\n'),
        (
            '{\n\t// all\n\t"servers": { // mine\n\t\t"a": 2, // two\n\t},\n}',
            '{\n\t// all\n\t"servers": { // mine\n\t\t"Ours": 1,\n\t\t"a": 2, // two\n\t},\n}',
        ),
        (
            '{\r\n    "servers": {\r\n        "a": 2\r\n    }\r\n}',
            '{\r\n    "servers": {\r\n        "Ours": 1,\r\n        "a": 2\r\n    }\r\n}',
        ),
        ('{"servers":{/* c */}}', '{"servers":{"Ours": 1/* c */}}'),
        ('{"servers":{ // c\n}}', '{"servers":{ // c\n  "Ours": 1\n}}'),
        ('\ufeff{"servers":{}}', '\ufeff{"servers":{"Ours": 1}}'),
        ("{}", '{\n  "servers": {\n    "Ours": 1\n  }\n}'),
        ('{\n  "x": 1\n}\n', '{\n  "servers": {\n    "Ours": 1\n  },\n  "x": 1\n}\n'),
        ("", '{\n  "servers": {\n    "Ours": 1\n  }\n}\n'),
        ("// nothing yet", '// nothing yet\n{\n  "servers": {\n    "Ours": 1\n  }\n}\n'),
        ("\ufeff", '\ufeff{\n  "servers": {\n    "Ours": 1\n  }\n}\n'),
    ],
)
def test_a_new_entry_stands_first(before: str, after: str) -> None:
    check(before, after)


def test_an_entry_that_is_there_is_replaced_where_it_stands() -> None:
    before = '{"servers": {\n  "a": 1, // one\n  "Ours": {"old": [1, 2]}, // ours\n  "b": 2\n}}'
    after = before.replace('{"old": [1, 2]}', '{\n    "command": "/é"\n  }')
    assert put(before, PATH, {"command": "/é"}) == after
    assert put(after, PATH, {"command": "/é"}) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"servers": {"a": 1, "Ours": 2}}', '{"servers": {"a": 1}}'),
        ('{"servers": {"a": 1, "Ours": 2,}}', '{"servers": {"a": 1,}}'),
        ('{"servers": {"Ours": 2, "b": 1}}', '{"servers": { "b": 1}}'),
        ('{"servers": {"Ours": {/* in */}, "b": 1}}', '{"servers": { "b": 1}}'),
        ('{"servers": {"a": 1, // c\n"Ours": 2, "b": 1}}', '{"servers": {"a": 1, // c\n "b": 1}}'),
        ('{"servers": {"a": 1, // c\n"Ours": 2}}', '{"servers": {"a": 1 // c\n}}'),
        ('{"servers": {"Ours": 2 /* c */ , "b": 1}}', '{"servers": { /* c */  "b": 1}}'),
        ('{"servers": {"a": 1}}', '{"servers": {"a": 1}}'),
        ('{"other": 1}', '{"other": 1}'),
        ("// empty", "// empty"),
    ],
)
def test_an_entry_is_taken_out_and_comments_stay(before: str, after: str) -> None:
    assert take_out(before, PATH) == after


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "something else than an object"),
        ('{"servers": []}', "something else than an object"),
        ('{"servers": {}, "servers": {}}', '"servers" twice'),
        ('{"servers": {"Ours": 1, "Ours": 2}}', '"Ours" twice'),
        ("{", "line 1: a text in quotes"),
        ('{\n"a" 1}', "line 2: : is expected"),
        ('{"a": 1 "b": 2}', ", is expected"),
        ('{"a": nope}', "a value is expected"),
        ('{"a": ' + "9" * 5000 + "}", "line 1: a number has too many digits"),
        ('{"a": "\\q"}', "not well written"),
        ("{} {}", "more after its end"),
        ("{'a': 1}", "a text in quotes"),
        ('{"a": ' + "[" * 300, "nested too deep"),
        ("{,}", "a text in quotes"),
    ],
)
def test_what_is_not_understood_is_left_alone(text: str, why: str) -> None:
    for change in (lambda: put(text, PATH, 1), lambda: take_out(text, PATH)):
        with pytest.raises(Odd) as odd:
            change()
        assert why in str(odd.value)


# -- any text

BLANKS = st.text(" \t\n", max_size=3)
COMMENTS = st.sampled_from(["", "// c\n", "/* c */", "/*\n*/", "// é\r\n"])
TRIVIA = st.tuples(BLANKS, COMMENTS, BLANKS).map("".join)
NAMES = st.sampled_from(["servers", "Ours", "a", "b.c", "", 'q"'])
SCALARS = st.sampled_from(["1", "-2.5e3", "true", "null", '"x // y"', '"\\u00e9{"', "[]", "{}"])


@st.composite
def texts(draw: st.DrawFn, depth: int = 0) -> str:
    if depth > 2 or (depth and draw(st.booleans())):
        return draw(SCALARS)
    names = draw(st.lists(NAMES, unique=True, max_size=3))
    if depth == 0 and draw(st.booleans()):
        names = ["servers", *(name for name in names if name != "servers")]
    parts: list[str] = []
    for number, name in enumerate(names):
        value = draw(texts(depth + 1))
        last = number == len(names) - 1
        comma = "" if last and draw(st.booleans()) else ","
        pieces = [json.dumps(name), draw(TRIVIA), ":", draw(TRIVIA), value, draw(TRIVIA), comma]
        parts += [draw(TRIVIA), *pieces]
    return "{" + "".join(parts) + draw(TRIVIA) + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    return draw(TRIVIA) + draw(texts()) + draw(TRIVIA)


def value_of(text: str) -> Any:
    root = parse(text).root
    return None if root is None else root.value


def comments_of(text: str) -> list[str]:
    return [comment for _, comment in parse(text).comments]


def has_entry(text: str) -> bool:
    servers: Any = value_of(text).get("servers")
    return isinstance(servers, dict) and "Ours" in servers


def common(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


@example('{"servers":{"Ours":{// goes with it\n}, // stays\n}}')
@given(documents())
def test_everything_but_the_entry_stays_as_it_was(text: str) -> None:
    try:
        after = put(text, PATH, ENTRY)
    except Odd as odd:
        assert "something else than an object" in str(odd)  # noqa: PT017 (any other is a fault)
        return
    assert found(after, PATH) == ENTRY
    if not has_entry(text):
        assert common(text, after) + common(text[::-1], after[::-1]) >= len(text)
        assert comments_of(after) == comments_of(text)
        if found_object(text, PATH[:-1]):
            assert take_out(after, PATH) == text


@given(documents())
def test_only_the_entry_is_taken_out(text: str) -> None:
    try:
        after = take_out(text, PATH)
    except Odd as odd:
        assert "something else than an object" in str(odd)  # noqa: PT017 (any other is a fault)
        return
    if not has_entry(text):
        assert after == text
        return
    whole: Any = value_of(text)
    rest = {name: one for name, one in whole["servers"].items() if name != "Ours"}
    assert value_of(after) == {**whole, "servers": rest}
