"""A pattern that is compiled late is the pattern."""

from tools.late import pattern


def test_a_late_pattern_does_what_the_pattern_does() -> None:
    words = pattern(r"(?P<first>\w)\w*")
    assert [found["first"] for found in words.finditer("ab cd")] == ["a", "c"]
    assert words.sub("x", "ab cd") == "x x"
    assert words.sub("x", "ab cd") == "x x"  # from what was kept
    assert words.groups == 1
    assert pattern("A", 2).fullmatch("a")
