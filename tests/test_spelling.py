from tools.spelling import holds_unseen, one_line, spelled


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
        assert spelled(text) == told

    check(" a\n\tb ", "a\n\tb")
    check("a\u202eb\u3164\r\nc", "a\\u202eb\\u3164\\r\nc")
    check(f"a{' ' * 39}b", f"a{' ' * 39}b")
    check(f"a{' ' * 40}b", "a [40 blanks] b")
    check("a\n\n\n\nb", "a\n\n\n\nb")
    check(f"a{chr(10) * 50}b", "a\n[49 empty lines]\nb")
    check("x" * 16384, "x" * 16384)
    check("x" * 8192 + "y" + "z" * 8192, f"{'x' * 8192}\n[… 1 characters …]\n{'z' * 8192}")


def test_what_shows_nothing_is_noticed() -> None:
    for text in ("\r", "a\u00a0b", "\u202e", "\u3164", "\x1b"):
        assert holds_unseen(text)
    for text in ("", "a b", "a\n\tb", "é🐍"):
        assert not holds_unseen(text)
