"""What changed between two texts: true for all, the least for most, and never long in coming."""

import difflib
import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import hunks as module
from tools.hunks import Hunk, hunks, unified

FILLER = [f"filler {number}" for number in range(300)]
REPEATED = [f"one of {number * number % 11}" for number in range(1000)]
OTHER = [f"other {number}" for number in range(300)]


def rebuilt(before: list[str], after: list[str], found: list[Hunk]) -> list[str]:
    """What stands after, made of what stood before and of the hunks."""
    made: list[str] = []
    done = 0
    for first, last, to, end in found:
        made += [*before[done:first], *after[to:end]]
        assert len(made) == end, "what is between the hunks is the same"
        done = last
    return [*made, *before[done:]]


_TEXTS = st.lists(st.sampled_from(["a", "b", "c", *FILLER[:9]]), max_size=30)


@given(_TEXTS, _TEXTS, st.integers(0, 3), st.sampled_from([1, 3, 64]))
def test_the_hunks_make_the_one_text_of_the_other(
    before: list[str], after: list[str], context: int, window: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_WINDOW", window)  # to try all ways on texts that can be read
        patched.setattr(module, "_SMALL", window - 1)
        found = hunks(before, after, context)
    assert rebuilt(before, after, found) == after
    assert (found == []) == (before == after)


@given(_TEXTS, _TEXTS)
def test_a_unified_diff_is_what_others_write_and_read(before: list[str], after: list[str]) -> None:
    told = list(unified(before, after, "a/f", "b/f"))
    if before == after:
        assert told == []
        return
    assert told[:2] == ["--- a/f", "+++ b/f"]
    made: list[str] = []
    done = 0
    for line in told[2:]:
        if header := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            first = int(header[1]) - (header[2] != "0")
            made += before[done:first]
            done = first
            assert len(made) == int(header[3]) - (header[4] != "0")
            continue
        if line[0] in " -":
            assert before[done] == line[1:]
            done += 1
        if line[0] in " +":
            made.append(line[1:])
    assert [*made, *before[done:]] == after


def test_a_short_diff_looks_as_it_always_did() -> None:
    near, far = [*FILLER[:5], "y", *FILLER[6:9]], ["x", *FILLER[1:8], "y"]
    for after in (["x", *FILLER[:9]], FILLER[1:9], [], near, far):
        usual = difflib.unified_diff(FILLER[:9], after, "a", "b", lineterm="")
        assert list(unified(FILLER[:9], after, "a", "b")) == list(usual)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (FILLER, FILLER, []),
        (FILLER, [*FILLER[:50], "x", *FILLER[51:]], [(47, 54, 47, 54)]),
        (FILLER, ["x", *FILLER], [(0, 3, 0, 4)]),
        (FILLER, FILLER[:-1], [(296, 300, 296, 299)]),
        # Near to each other is one, farther is two.
        (FILLER, ["x", *FILLER[1:7], "y", *FILLER[8:]], [(0, 11, 0, 11)]),
        (FILLER, ["x", *FILLER[1:8], "y", *FILLER[9:]], [(0, 4, 0, 4), (5, 12, 5, 12)]),
        # Between unique lines: other numbers of lines at either end of much that stays.
        (["x", *FILLER, "y"], [*FILLER, "y", "z"], [(0, 4, 0, 3), (299, 302, 298, 302)]),
        (
            FILLER,
            [*FILLER[:9], "x", *FILLER[10:250], "y", *FILLER[250:290], "z", *FILLER[291:]],
            [(6, 13, 6, 13), (247, 253, 247, 254), (287, 294, 288, 295)],
        ),
        (
            FILLER,
            ["x", *FILLER[1:121], "y", *FILLER[121:298], "z"],
            [(0, 4, 0, 4), (118, 124, 118, 125), (295, 300, 296, 300)],
        ),
        (["x", *FILLER, "y"], [*OTHER, *FILLER, "z"], [(0, 4, 0, 303), (298, 302, 597, 601)]),
        # Nothing in common.
        (FILLER, OTHER, [(0, 300, 0, 300)]),
        # Nothing that stands once: one line more at two places far from each other.
        (
            REPEATED,
            [*REPEATED[:9], "x", *REPEATED[9:800], "x", *REPEATED[800:]],
            [(6, 12, 6, 13), (797, 803, 798, 805)],
        ),
        (REPEATED, ["x"] * 500 + REPEATED, None),
        (["x"] * 500 + REPEATED, [*REPEATED, "x", "x"], None),
    ],
)
def test_what_is_found(before: list[str], after: list[str], found: list[Hunk] | None) -> None:
    told = hunks(before, after, 3)
    assert rebuilt(before, after, told) == after
    assert found is None or told == found


def test_as_many_lines_half_of_them_the_same_are_compared_one_by_one() -> None:
    other, same = ["x"] * 4, ["a", "b"] * 2
    after = ["p", *other, *same, *same, *other, *[*same, *other] * 74]
    assert hunks(["p", *["a", "b"] * 304], after, 0) == [
        (line, line + 4, line, line + 4) for line in (1, *range(13, 609, 8))
    ]


def test_lines_that_stand_once_are_found_however_much_comes_between_them() -> None:
    after = [line for one in FILLER for line in (one, f"{one}, more", f"{one}, and more")]
    assert hunks(FILLER, after, 0) == [(n, n, 3 * n - 2, 3 * n) for n in range(1, 301)]


@given(st.permutations(range(9)))
def test_of_lines_that_stand_once_as_many_stay_as_can(order: list[int]) -> None:
    longest: dict[int, int] = {}
    for line in order:
        longest[line] = 1 + max((longest[one] for one in longest if one < line), default=0)
    before, after = [str(line) for line in range(9)], [str(line) for line in order]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_SMALL", 0)
        found = hunks(before, after, 0)
    assert 9 - sum(last - first for first, last, _, _ in found) == max(longest.values())


def test_lines_that_stand_once_are_not_looked_for_without_end() -> None:
    depth = 40
    before = [*(f"once {number}" for number in range(depth)), *["a"] * 300]
    mixed = [line for number in range(depth) for line in ("a", f"once {depth - number - 1}")]
    assert rebuilt(before, mixed * 5, hunks(before, mixed * 5, 3)) == mixed * 5


def test_the_time_grows_with_the_text() -> None:
    some = random.Random(1)
    before = [f"kind {some.randrange(101)}" for _ in range(60_000)]
    for after in (
        [line.replace("kind 7", "kind x") for line in before],
        [two for line in before for two in ([line] if line != "kind 7" else [line, "new"])],
        ["kind 1", "kind x"] * 30_000,
    ):
        began = time.process_time()
        assert rebuilt(before, after, hunks(before, after, 3)) == after
        assert time.process_time() - began < 20  # quadratic would be minutes
