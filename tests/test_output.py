from hypothesis import given
from hypothesis import strategies as st

from tools.output import HEAD, TAIL, Capture, holds_unseen, one_line, spelled


def printed(*pieces: bytes) -> tuple[str, str, Capture]:
    """What was shown at once, what was kept, and the capture itself."""
    capture = Capture()
    live = "".join(map(capture.feed, pieces)) + capture.finish()
    return live, capture.text(), capture


def check(data: bytes, kept: str) -> None:
    live, text, capture = printed(data)
    assert text == kept
    assert not capture.truncated
    assert live.replace("\r\n", "\n") == kept or "\r" in live
    assert printed(*(data[i : i + 1] for i in range(len(data))))[:2] == (live, text)


def test_text_passes_as_it_is() -> None:
    check(b"", "")
    check(b"a\tb\n\nc", "a\tb\n\nc")
    check("grün ☃ 🐍\n".encode(), "grün ☃ 🐍\n")


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    check(b"a\xffb\n", "a\ufffdb\n")
    check(b"cut \xe2\x98", "cut \ufffd")


def test_escape_sequences_are_taken_out() -> None:
    check(b"\x1b[1;31mred\x1b[0m\n", "red\n")
    check(b"\x1b]0;title\x07x", "x")
    check(b"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link")
    check(b"\x1b]52;c;aGk=\x07after", "after")
    check(b"\x1bPdevice\x1b\\x", "x")
    check(b"\x1b(Bx\x1b=\x1bcy", "xy")
    check(b"\xc2\x9b31mred\xc2\x9bm", "red")
    check(b"\x1b[\xc3\xa9", "é")


def test_an_escape_sequence_that_never_ends_takes_no_more_than_its_line() -> None:
    check(b"a\x1b]0;lost\nnext", "a\nnext")
    check(b"a\x1b", "a")
    check(b"a\x1b[12", "a")
    check(b"a\x1b]0;x\x1b", "a")


def test_an_escape_sequence_costs_no_memory_however_long_it_is() -> None:
    capture = Capture()
    for _ in range(100):
        assert capture.feed(b"\x1b]" + b"x" * 10_000) == ""
    assert capture.feed(b"\x07y") == "y"


def test_control_characters_are_taken_out() -> None:
    check(b"a\x00b\x07c\x08d\x7fe\x0c\xc2\x85f", "abcdef")
    check("â€\x9d quoted".encode(), "â€ quoted")


def test_a_line_that_was_overwritten_shows_its_last_state() -> None:
    check(b"10%\r50%\r100%\ndone\n", "100%\ndone\n")
    check(b"one\r\ntwo\r\n", "one\ntwo\n")
    check(b"10%\r20%\r", "20%")
    check(b"a\rb\r\r\n\r\nc", "b\n\nc")
    check(b"\r\r", "")


def test_a_progress_display_of_many_steps_is_one_line() -> None:
    steps = b"".join(b"%d of 10000\r" % step for step in range(10_001))
    live, text, capture = printed(steps + b"\n")
    assert text == "10000 of 10000\n"
    assert live.count("\r") == 10_001
    assert not capture.truncated


def test_a_long_line_is_kept_although_it_is_never_ended() -> None:
    check(b"x" * 20_000, "x" * 20_000)
    _, text, _ = printed(b"x" * 9_000 + b"\r", b"y\n")
    assert text == "x" * 9_000 + "y\n"


def test_what_is_too_much_is_dropped_in_the_middle() -> None:
    size = 3_000_000
    capture = Capture()
    for start in range(0, size, 1000):
        capture.feed(b"%09d\n" % start * 100)
    capture.finish()
    text = capture.text()
    head, note, tail = text.partition(f"\n[... {size - HEAD - TAIL} bytes dropped ...]\n")
    assert note
    assert capture.truncated
    assert (len(head), len(tail)) == (HEAD, TAIL)
    assert head.startswith("000000000\n")
    assert tail.endswith("002999000\n")


def test_exactly_what_fits_is_kept_whole() -> None:
    check(b"y" * (HEAD + TAIL), "y" * (HEAD + TAIL))
    assert printed(b"y" * (HEAD + TAIL + 1))[2].truncated


def test_the_cut_never_falls_into_a_character() -> None:
    snow = "☃".encode()
    _, text, _ = printed(b"a" + snow * 100_000 + b"b")
    head, tail = text.split("\n[... ")[0], text.split("...]\n")[1]
    dropped = int(text.split("[... ")[1].split(" ")[0])
    assert set(head) == {"a", "☃"}
    assert set(tail) == {"☃", "b"}
    assert len(head.encode()) + dropped + len(tail.encode()) == 300_002


@given(st.lists(st.binary(max_size=12), max_size=12))
def test_where_the_bytes_are_cut_changes_nothing(pieces: list[bytes]) -> None:
    whole = printed(b"".join(pieces))
    assert printed(*pieces)[:2] == whole[:2]
    assert not any(char in "\0\x07\x08\x1b\x7f\x9b" for char in whole[0] + whole[1])


_SNIPPETS = [*(bytes([byte]) for byte in b"a\r\n\x1b[]P3m?\\\x07 (/"), b"\xc2\x9b"]


@given(st.lists(st.sampled_from(_SNIPPETS), max_size=30))
def test_escapes_cut_anywhere_end_the_same(pieces: list[bytes]) -> None:
    assert printed(*pieces)[:2] == printed(b"".join(pieces))[:2]


def check_title(text: str, title: str) -> None:
    assert one_line(text, 20) == title


def test_a_title_is_one_line_of_visible_characters() -> None:
    check_title("cat notes.txt", "cat notes.txt")
    check_title("  ls\n", "ls")
    check_title("a\nb", "a ↵ b")
    check_title("a\tb\r", "a\\tb")
    check_title("a\u202eb\u00a0c\x1b", "a\\u202eb\\xa0c\\x1b")
    check_title("\ud800x", "\\ud800x")
    check_title("a\u3164b", "a\\u3164b")
    check_title("x" * 20, "x" * 20)
    check_title("x" * 21, "x" * 19 + "…")
    check_title("grün 🐍", "grün 🐍")


def test_nothing_can_hide_in_what_is_spelled_out() -> None:
    def check(text: str, told: str) -> None:
        assert spelled(text, 100) == told

    check(" a\n\tb ", "a\n\tb")
    check("a\u202eb\u3164\r\nc", "a\\u202eb\\u3164\\r\nc")
    check(f"a{' ' * 39}b", f"a{' ' * 39}b")
    check(f"a{' ' * 40}b", "a [40 blanks] b")
    check("a\n\n\n\nb", "a\n\n\n\nb")
    check(f"a{chr(10) * 50}b", "a\n[50 empty lines]\nb")
    check("x" * 100, "x" * 100)
    check("x" * 50 + "y" + "z" * 50, f"{'x' * 50}\n[… 1 characters …]\n{'z' * 50}")


def test_what_shows_nothing_is_noticed() -> None:
    for text in ("\r", "a\u00a0b", "\u202e", "\u3164", "\x1b"):
        assert holds_unseen(text)
    for text in ("", "a b", "a\n\tb", "é🐍"):
        assert not holds_unseen(text)
