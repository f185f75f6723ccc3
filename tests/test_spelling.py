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
    check_title("x" * 20, "x" * 20)
    check_title("x" * 21, "x" * 19 + "…")
    check_title("grün 🐍", "grün 🐍")


def test_every_line_of_a_text_is_spelled_out() -> None:
    def check(text: str, shown: str, *, unseen: bool = False) -> None:
        assert (spelled(text), holds_unseen(text)) == (shown, unseen)

    check(" a\n\tb\n", "a\n\tb")
    check("a\u202eb", r"a\u202eb", unseen=True)
    check("ls" + " " * 40 + "x", "ls [40 blanks] x")
    check("ls" + "\n" * 5 + "rm x", "ls\n[5 empty lines]\nrm x")
    check("a" * 9000 + "b" * 9000, f"{'a' * 8192}\n[… 1616 characters …]\n{'b' * 8192}")
