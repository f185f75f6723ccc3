import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.charset import Recoded, charset

CODECS = {
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


def recoded(data: bytes, cut: int) -> tuple[str | None, bytes]:
    passing = Recoded()
    pieces = [passing.feed(data[place : place + cut]) for place in range(0, len(data), cut)]
    return passing.charset, b"".join((*pieces, passing.finish()))


@given(st.sampled_from(sorted(CODECS)), st.text(max_size=9), st.integers(1, 9))
def test_what_declares_itself_becomes_utf_8_wherever_it_is_cut(
    codec: str, text: str, cut: int
) -> None:
    # A text of UTF-16 that begins with a NUL reads like a mark of UTF-32.
    text = text.lstrip("\0")
    _, found = recoded(CODECS[codec] + text.encode(codec), cut)
    assert found == text.encode()


@given(st.binary(max_size=9), st.integers(1, 9))
def test_everything_else_passes_as_it_is(data: bytes, cut: int) -> None:
    if charset(data) is None:
        assert recoded(data, cut) == (None, data)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\xff\xfea\0", "UTF-16"),
        (b"\xfe\xff\0a", "UTF-16"),
        (b"\xff\xfe\0\0", "UTF-32"),
        (b"\0\0\xfe\xff", "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xef\xbb\xbfa", None),
        (b"a\0", None),
        (b"", None),
    ],
)
def test_the_mark_says_what_it_is(data: bytes, name: str | None) -> None:
    assert charset(data) == name
    passing = Recoded()
    passing.feed(data)
    passing.finish()
    assert passing.charset == name


def test_what_is_broken_is_replaced() -> None:
    assert recoded(b"\xff\xfea\0b", 1) == ("UTF-16", "a\ufffd".encode())
