"""The search program itself, in this process; what it finds is in test_search.py."""

import json
import os
import re
import sys
from dataclasses import asdict
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from tools.walk import Job, files, main, matches

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


def printed(job: Job, monkeypatch: pytest.MonkeyPatch) -> bytes:
    out = TextIOWrapper(BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    main(json.dumps(asdict(job)))
    return out.buffer.getvalue()  # pyright: ignore[reportAttributeAccessIssue] (a BytesIO, as made above)


def test_it_prints_what_ripgrep_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_bytes(b"one\nTwo\nx\xff one\n")
    (tmp_path / "b").write_bytes(b"one " + b"y" * 3000)
    top = str(tmp_path)
    assert printed(Job(top, glob="*.py"), monkeypatch) == b"./a.py\0"
    hits = b"./a.py\x001:one\n./a.py\x003:x\xff one\n"
    assert printed(Job(top, None, "one", glob="*.py"), monkeypatch) == hits
    assert printed(Job(top, "a.py", "two", True), monkeypatch) == b"./a.py\x002:Two\n"
    assert printed(Job(top, "b", "one"), monkeypatch) == b"./b\x001:one " + b"y" * 1996 + b"\n"


def test_rules_reach_as_far_as_the_repository(tmp_path: Path) -> None:
    for folder in ("repo/.git", "repo/sub/in", "repo/sub/other/.git"):
        (tmp_path / folder).mkdir(parents=True)
    for folder, line in (("", "a\n"), ("repo", "b\n"), ("repo/sub", "/in/c\n!keep\n")):
        (tmp_path / folder / ".gitignore").write_text(line, encoding="utf-8")
    for folder in ("repo/sub/in", "repo/sub/other"):
        for name in "abcd":
            (tmp_path / folder / name).touch()

    def check(top: str, *kept: str) -> None:
        assert sorted(files(str(tmp_path / top))) == sorted(kept)

    others = [f"other/{name}" for name in "abcd"]
    check("repo/sub", ".gitignore", "in/a", "in/d", *others)
    check("repo/sub/in", "a", "d")
    (tmp_path / "repo" / ".git").rmdir()
    check("repo/sub", ".gitignore", "in/d", *[f"other/{name}" for name in "cd"])


def test_what_is_no_text_or_no_regular_file_has_no_matches(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("text")
    (tmp_path / "text").write_bytes(b"x\n")
    (tmp_path / "binary").write_bytes(b"x\n\0")
    (tmp_path / "wide").write_bytes("\ufeffx\n".encode("utf-16-le"))
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"x\n")
        file.truncate(65 * 1024 * 1024)
    found = {path.name: list(matches(str(path), re.compile("x"))) for path in tmp_path.iterdir()}
    assert {name for name, hits in found.items() if not hits} == {"fifo", "link", "binary", "huge"}
    assert found["text"] == found["wide"] == [(1, "x")]
    assert list(matches(str(tmp_path / "none"), re.compile("x"))) == []
    assert list(files(str(tmp_path / "none"))) == []
    assert sorted(files(str(tmp_path))) == ["binary", "huge", "text", "wide"]
