import pytest

from tools.globs import is_ignored, rule, rules, wanted


@pytest.mark.parametrize(
    ("line", "path", "fits"),
    [
        ("a", "a", True),
        ("a", "x/a", True),
        ("a", "a/x", False),
        ("/a", "a", True),
        ("/a", "x/a", False),
        ("a/b", "a/b", True),
        ("a/b", "x/a/b", False),
        ("a/*", "a/b/c", False),
        ("a/**", "a", False),
        ("a/**", "a/b/c", True),
        ("**/a", "a", True),
        ("**/a/b", "x/y/a/b", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "a/b/x", False),
        ("a/**/b/**/c", "a/b/x/b/c", True),
        ("**", "a/b", True),
        ("a**b", "axxb", True),
        ("a**b", "a/b", False),
        ("*a*b*", "xaxbx", True),
        ("*a*b*", "xbxax", False),
        ("?", "ab", False),
        ("[]x]", "]", True),
        ("[!]x]", "]", False),
        ("[^a-c]", "d", True),
        (r"[\]a-]", "-", True),
        (r"[a\-c]", "b", False),
        ("[+--]", "/", False),
        (r"\[a\]", "[a]", True),
        ("a.b", "axb", False),
        ("{a,b}", "a", False),
        ("*.py", "x\n.py", True),
    ],
)
def test_a_rule_is_about_entries(line: str, path: str, fits: bool) -> None:
    assert rule(line).fits(path.split("/")) is fits


@pytest.mark.parametrize("line", ["", "!", "/", "//", "a//b", "[", "[!]", "[z-a]", "a\\", "[a/b]"])
def test_what_no_entry_can_fit_is_no_rule(line: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        rule(line)
    assert rules(line) == ()


def test_the_last_rule_that_fits_decides() -> None:
    read = rules("\ufeff# comment\r\n*.o\r\n!keep.o  \nbuild/\n\n")
    check = [("a.o", False, True), ("keep.o", False, False), ("a.c", False, None),
             ("build", False, None), ("build", True, True)]  # fmt: skip
    for name, folder, said in check:
        assert is_ignored(read, [name], folder=folder) is said


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("{a,b,c,d}" * 5, "more than 100"),
        ("!a", "must name files"),
        ("a/", "must name files"),
        ("[", "nothing follows"),
        ("[b-a]", "b-a is empty"),
    ],
)
def test_a_pattern_that_can_be_none_says_why(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        wanted(pattern)


def test_no_pattern_takes_long() -> None:
    assert not wanted("*a" * 100 + "b")(["a" * 250])
    assert not wanted("**/a/" * 100 + "b")(["a"] * 200)
