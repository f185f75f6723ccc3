"""What a link in a prompt may mean."""

import pytest

from bridge.core.link import Spot, spots


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file:///a", [Spot("/a")]),
        ("FILE://LocalHost/a%20b", [Spot("/a b")]),
        ("/a b", [Spot("/a b")]),
        ("file:///a#L10-20", [Spot("/a", 10, 11), Spot("/a#L10-20")]),
        ("file:///a#L10-L20", [Spot("/a", 10, 11), Spot("/a#L10-L20")]),
        ("file:///a#L10:20", [Spot("/a", 10, 11), Spot("/a#L10:20"), Spot("/a#L10", 20, 1)]),
        ("file:///a#10", [Spot("/a", 10, 1), Spot("/a#10")]),
        ("file:///a?symbol=f#L3:4",
         [Spot("/a", 3, 2), Spot("/a?symbol=f#L3:4"), Spot("/a?symbol=f#L3", 4, 1)]),
        ("file:///a#L0", [Spot("/a", 1, 1), Spot("/a#L0")]),
        ("file:///a#L20-10", [Spot("/a", 20, 1), Spot("/a#L20-10")]),
        ("file:///a:10-20", [Spot("/a:10-20"), Spot("/a", 10, 11)]),
        ("file:///a:10", [Spot("/a:10"), Spot("/a", 10, 1)]),
        ("file:///a#b", [Spot("/a"), Spot("/a#b")]),
        ("file:///a%23b", [Spot("/a#b")]),
        ("file:///a?b", [Spot("/a"), Spot("/a?b")]),
        ("file:///a:9999999999", [Spot("/a:9999999999")]),
        ("file:///C:/a", [Spot("/C:/a")]),
        ("file://host/a", []),
        ("file://localhost", []),
        ("file:a", []),
        ("https://h/a", []),
        ("zed:///x", []),
        ("a", []),
        ("", []),
    ],
)  # fmt: skip
def test_a_link_is_read_in_every_way_that_makes_sense(uri: str, expected: list[Spot]) -> None:
    assert list(spots(uri)) == expected
