import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import wire

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"{}", {}),
        (b' {"a": [1, -2.5, true, null, "x"]}\r', {"a": [1, -2.5, True, None, "x"]}),
        ('"é\u2028"', "é\u2028"),
        (b'"\\ud83d\\ude00"', "😀"),
        (b'"\\ud800"', "\ud800"),
        (b"9007199254740993", 9007199254740993),
        (b"1e999", float("inf")),
        (b"[" * 200 + b"]" * 200, json.loads("[" * 200 + "]" * 200)),
        (
            b"[" * 199 + b"[]," * 9 + b"1" + b"]" * 199,
            json.loads("[" * 199 + "[]," * 9 + "1" + "]" * 199),
        ),
        (json.dumps("[" * 500).encode(), "[" * 500),
    ],
)
def test_a_json_text_is_read(text: bytes | str, value: object) -> None:
    assert wire.load(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"{} {}",
        b"nope",
        b"NaN",
        b"[-Infinity]",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        b'"a\nb"',
        b"[" * 201 + b"]" * 201,
        b'{"a":' * 201 + b"1" + b"}" * 201,
        b"[" * 100_000,
        b"9" * 5000,
    ],
)
def test_what_is_not_one_json_text_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        wire.load(text)


@pytest.mark.parametrize("text", [b"[]", b"1", b"null", b'"{}"'])
def test_an_object_is_demanded(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        wire.load_object(text)


def test_an_object_is_read() -> None:
    assert wire.load_object(b'{"a":1}') == {"a": 1}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, None, True]}, '{"a":[1,null,true]}'),
        ("é\u2028\x00", '"é\u2028\\u0000"'),
        ("a\ud800b", '"a\ufffdb"'),
        ("\udc00", '"\ufffd"'),
        ({"\ud800": "x"}, '{"\ufffd":"x"}'),
        (float("nan"), "null"),
        ({"a": [float("inf"), 1.5], "b": (float("-inf"), "x")}, '{"a":[null,1.5],"b":[null,"x"]}'),
    ],
)
def test_a_value_is_written_so_that_every_parser_takes_it(value: Any, text: str) -> None:
    assert wire.dump(value) == text.encode()


@given(json_values)
def test_what_was_written_reads_the_same(value: Any) -> None:
    line = wire.dump(value)
    assert b"\n" not in line
    assert wire.load(line) == value


@given(st.binary())
def test_any_bytes_are_a_value_or_a_value_error(data: bytes) -> None:
    try:
        value = wire.load(data)
    except ValueError:
        return
    wire.dump(value)


flat = st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.none(), max_size=3)


@given(flat, st.dictionaries(st.text(max_size=5), st.lists(flat, max_size=3), max_size=3))
def test_what_is_settled_is_written_like_anything_else(
    rest: dict[str, Any], lists: dict[str, list[dict[str, Any]]]
) -> None:
    settled = {name: [wire.Settled(one) for one in items] for name, items in lists.items()}
    body = {**rest, **settled}
    assert wire.dump_lists(body) == wire.dump_lists(body) == wire.dump({**rest, **lists})


def test_what_is_settled_is_written_once() -> None:
    item = wire.Settled(text="before")
    assert wire.dump_lists({"input": [item]}) == b'{"input":[{"text":"before"}]}'
    item["text"] = "after"  # which nobody does
    assert wire.written(item) == b'{"text":"before"}'


def test_a_member_of_the_wrong_kind_counts_as_an_empty_one() -> None:
    given: wire.JsonObject = {"text": "t", "object": {"a": 1}, "list": [{"a": 1}, "x"]}

    def check(read: Callable[[wire.JsonObject, str], object], name: str, found: object) -> None:
        empty = type(found)()
        assert [read(given, each) for each in (*given, "none")] == [
            found if each == name else empty for each in (*given, "none")
        ]

    check(wire.text_of, "text", "t")
    check(wire.object_of, "object", {"a": 1})
    check(wire.list_of, "list", [{"a": 1}, "x"])
    check(wire.objects_of, "list", [{"a": 1}])


def test_what_is_long_is_cut_in_the_middle_wherever_it_stands() -> None:
    def check(given: object, expected: object) -> None:
        assert wire.cut(given, 4) == expected

    check("abcd", "abcd")
    check("abcdef", "ab\n[… 2 characters left out …]\nef")
    check({"a": ["abcde", 5], "abcdef": None}, {
        "a": ["ab\n[… 1 characters left out …]\nde", 5], "abcdef": None
    })  # fmt: skip
