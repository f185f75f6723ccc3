"""A pattern that is compiled late is the pattern."""

import copy
import re
import string

import pytest

from tools.late import pattern, patterns


def test_a_late_pattern_does_what_the_pattern_does() -> None:
    words = pattern(r"(?P<first>\w)\w*")
    assert [found["first"] for found in words.finditer("ab cd")] == ["a", "c"]
    assert words.sub("x", "ab cd") == "x x"
    assert words.sub("x", "ab cd") == "x x"  # from what was kept
    assert words.groups == 1
    assert pattern("A", 2).fullmatch("a")
    assert pattern(pattern="A", flags=2).fullmatch("a")


def test_a_late_pattern_passes_for_a_pattern() -> None:
    late = pattern("a+")
    assert isinstance(late, re.Pattern)
    assert re.sub(late, "x", "caat") == "cxt"
    assert re.compile(late).pattern == "a+"
    assert copy.deepcopy(late) == re.compile("a+")


def test_a_wrong_pattern_is_found_when_it_is_used() -> None:
    wrong = pattern("(")
    with pytest.raises(re.error, match="missing"):
        wrong.match("")


def test_modules_that_load_meanwhile_get_late_patterns() -> None:
    compile_now = re.compile
    with patterns():
        late = re.compile(r"(?P<x>[a-z]) # a letter", re.VERBOSE)
        octets = re.compile(rb"[a-z]")

        class Percent(string.Template):
            delimiter = "%"

    assert re.compile is compile_now
    assert {type(late), type(octets)} == {type(pattern("x"))}
    assert late.fullmatch("q")
    assert octets.fullmatch(b"q")
    assert Percent("%a b").substitute(a=1) == "1 b"


def test_patterns_are_compiled_at_once_again_after_a_module_that_does_not_load() -> None:
    compile_now = re.compile
    with pytest.raises(ImportError), patterns():
        raise ImportError
    assert re.compile is compile_now
