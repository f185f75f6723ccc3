from tools.spelling import one_line


def check_title(text: str, title: str) -> None:
    assert one_line(text, 20) == title


def test_a_title_is_one_line_of_visible_characters() -> None:
    check_title("cat notes.txt", "cat notes.txt")
    check_title("  ls\n", "ls")
    check_title("a\nb", "a ↵ b")
    check_title("a\tb\r", "a\\tb")
    check_title("a\u202eb\u00a0c\x1b", "a\\u202eb\\xa0c\\x1b")
    check_title("\ud800x", "\\ud800x")
    check_title("x" * 20, "x" * 20)
    check_title("x" * 21, "x" * 19 + "…")
    check_title("grün 🐍", "grün 🐍")
