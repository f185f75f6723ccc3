import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.seen import Edited, Seen, Sight, Span, Stamp


def stamp(digest: str = "d", inode: int = 1) -> Stamp:
    return Stamp(digest, (1, inode, 0, 0, 0))


def sight(seen: Seen, path: str = "/f", at: Stamp | None = None) -> Sight:
    found = seen.find(path, at or stamp())
    assert found is not None
    return found


def test_what_was_never_shown_is_not_known() -> None:
    seen = Seen()
    seen.read("/f", stamp(inode=1), lines=1, shown=[(1, 1)])
    assert seen.find("/g", stamp(inode=2)) is None
    assert (seen.knows("/f"), seen.knows("/g")) == (True, False)


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ([], ((1, 9),)),
        ([(1, 9)], ()),
        ([(1, 3), (7, 9)], ((4, 6),)),
        ([(1, 3), (5, 9)], ((4, 4),)),
        ([(7, 9), (1, 3), (4, 6)], ()),
        ([(2, 5), (3, 4), (5, 6)], ((1, 1), (7, 9))),
        ([(1, 9), (2, 3)], ()),
        ([(0, 3), (8, 7)], ((1, 9),)),
    ],
)
def test_windows_of_the_same_bytes_add_up(shown: list[Span], missing: tuple[Span, ...]) -> None:
    seen = Seen()
    for span in [*shown, (0, 0)]:
        seen.read("/f", stamp(), lines=9, shown=[span])
    assert sight(seen).missing() == missing


def test_windows_of_other_bytes_begin_anew() -> None:
    seen = Seen()
    seen.read("/f", stamp("old"), lines=4, shown=[(1, 2)])
    seen.read("/f", stamp("new"), lines=4, shown=[(3, 4)])
    assert sight(seen, at=stamp("new")).missing() == ((1, 2),)


def test_changed_bytes_are_found_with_the_digest_that_was_seen() -> None:
    seen = Seen()
    seen.read("/f", stamp("old"), lines=1, shown=[])
    assert sight(seen, at=stamp("new")).stamp.digest == "old"


def test_what_a_command_changed_is_overtaken_until_it_is_seen_again() -> None:
    seen = Seen()
    seen.read("/f", stamp(), lines=1, shown=[])
    seen.overtaken(["/f"])
    assert (seen.is_overtaken("/f"), seen.is_overtaken("/g")) == (True, False)
    seen.read("/f", stamp("new"), lines=1, shown=[])
    assert not seen.is_overtaken("/f")


def test_the_same_bytes_in_another_inode_are_known() -> None:
    seen = Seen()
    seen.read("/f", stamp(inode=1), lines=1, shown=[(1, 1)])
    assert sight(seen, at=stamp(inode=2)).missing() == ()


def test_a_hard_link_shares_what_was_seen_and_a_reused_inode_does_not() -> None:
    seen = Seen()
    seen.read("/f", stamp(), lines=1, shown=[(1, 1)])
    assert sight(seen, "/link").path == "/f"
    assert seen.find("/other", stamp("other bytes")) is None


def test_a_hard_link_knows_what_was_written_through_the_other_name() -> None:
    seen = Seen()
    for path in ("/f", "/link"):
        seen.read(path, stamp(), lines=1, shown=[(1, 1)])
    seen.wrote("/f", stamp("new"), lines=2)
    assert sight(seen, "/link", stamp("new")).missing() == ()


@pytest.mark.parametrize(
    ("shown", "old", "lines", "expected"),
    [
        ([(1, 9)], (4, 5), 9, ((1, 9),)),
        ([(1, 9)], (4, 5), 12, ((1, 12),)),
        ([(1, 9)], (4, 5), 7, ((1, 7),)),
        ([(1, 3)], (8, 8), 10, ((1, 3),)),
        ([(7, 9)], (2, 2), 10, ((8, 10),)),
        ([(1, 5)], (5, 6), 10, ((1, 4),)),
        ([(6, 9)], (5, 6), 8, ((6, 8),)),
        ([(1, 9)], (1, 9), 0, ()),
    ],
)
def test_an_edit_moves_what_was_shown(
    shown: list[Span], old: Span, lines: int, expected: tuple[Span, ...]
) -> None:
    seen = Seen()
    seen.read("/f", stamp("old"), lines=9, shown=shown)
    before = sight(seen, at=stamp("old"))
    seen.edited("/f", stamp("new"), before, Edited(old, lines))
    assert sight(seen, at=stamp("new")).shown == expected


SPANS = st.lists(st.tuples(st.integers(-2, 12), st.integers(-2, 12)), max_size=6)


@given(SPANS)
def test_shown_and_missing_lines_are_all_the_lines_once(shown: list[Span]) -> None:
    seen = Seen()
    seen.read("/f", stamp(), lines=12, shown=shown)
    known = sight(seen)
    lines = [n for a, b in (*known.shown, *known.missing()) for n in range(a, b + 1)]
    assert sorted(lines) == list(range(1, 13))
    assert {n for n in range(1, 13) if known.covers((n, n))} == {
        n for a, b in shown if a >= 1 for n in range(a, b + 1)
    }


@given(SPANS)
def test_what_was_learnt_survives_the_process(shown: list[Span]) -> None:
    seen, later = Seen(), Seen()
    seen.read("/f", stamp(), lines=12, shown=shown)
    seen.wrote("/g", stamp("g", 2), lines=3)
    for record in seen.changes():
        later.restore(json.loads(json.dumps(record)))
    assert sight(later) == sight(seen)
    assert sight(later, "/g", stamp("g", 2)).missing() == ()
    assert seen.changes() == later.changes() == []


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"path": "/f"},
        {"path": 1, "stamp": None, "lines": 1, "shown": []},
        {"path": "/f", "stamp": {"digest": "d", "version": [1]}, "lines": 1, "shown": []},
        {"path": "/f", "stamp": {"digest": "d", "version": [1] * 5}, "lines": 1, "shown": [[1]]},
    ],
)
def test_a_record_that_makes_no_sense_is_passed_over(record: dict[str, object]) -> None:
    seen = Seen()
    seen.restore(record)
    assert not seen.knows("/f")
