"""Searches: ripgrep and our own program find the same, and neither leaves anything behind."""

import os
import posixpath
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agent_process import is_alive
from tools.base import FileTooLarge, Found, NotRegular, Query
from tools.search import FindRipgrep, Limits, Lines, Names, confirmed, ripgrep, search

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")]

RIPGREP = ripgrep(())
if RIPGREP is None and os.environ.get("CI") == "true":
    pytest.fail("ripgrep is missing: the development dependencies bring it")
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")


def ours(_: object) -> None:
    """No ripgrep is to be had."""


both = pytest.mark.parametrize(
    "find",
    [pytest.param(ripgrep, marks=needs_ripgrep, id="ripgrep"), pytest.param(ours, id="ours")],
)
ANY_FIXTURE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def plant(top: Path, tree: Mapping[str, bytes | None]) -> None:
    """Files by their paths; None: a folder."""
    for name, data in tree.items():
        path = top / name
        if data is None:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def real(path: Path) -> str:
    return str(path.resolve())


async def found(
    top: Path,
    pattern: str | None = None,
    glob: str | None = None,
    *,
    find: FindRipgrep = ours,
    ignore_case: bool = False,
) -> dict[str, list[tuple[int, str]]]:
    """What a search finds, by path from the top on."""
    result: dict[str, list[tuple[int, str]]] = {}
    resolved = real(top)

    def take(one: Found) -> None:
        name = posixpath.relpath(one.path, resolved)
        assert name not in result
        assert one.hits == len(one.lines)
        assert confirmed([one]) == [one]
        result[name] = list(one.lines)

    query = Query(resolved, pattern, ignore_case, glob)
    with anyio.fail_after(20):
        assert await search(query, take, find) == ""
    return result


def test_what_lies_behind_a_link_or_reads_otherwise_is_not_confirmed(tmp_path: Path) -> None:
    plant(tmp_path, {"there/f": b"x\n", "here/f": b"x\n"})
    top = real(tmp_path)

    def check(path: str, *lines: tuple[int, str], right: bool) -> None:
        one = Found(f"{top}/{path}", len(lines), lines)
        assert confirmed([one]) == [one] * right

    check("here/f", right=True)
    check("here/f", (1, "x"), right=True)
    check("here/f", (1, "y"), right=False)
    check("here/f", (9, "x"), right=False)
    check("here/g", (1, "x"), right=False)
    check("here", right=False)
    (tmp_path / "behind").symlink_to("there")
    (tmp_path / "link").symlink_to("there/f")
    for path in ("behind/f", "link") if sys.platform == "linux" else ("link",):
        check(path, right=False)
        check(path, (1, "x"), right=False)


async def names(top: Path, glob: str | None = None, find: FindRipgrep = ours) -> list[str]:
    return sorted(await found(top, None, glob, find=find))


# -- which files ----------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("tree", "kept"),
    [
        ({"a": b"", "d/b": b"", ".hidden/c": b"", "empty": None}, [".hidden/c", "a", "d/b"]),
        ({".git/config": b"", "sub/.git": b"", "a": b""}, ["a"]),
        ({".gitignore": b"*.log\n!keep.log\n", "a.log": b"", "keep.log": b"", "d/b.log": b""},
         [".gitignore", "keep.log"]),
        ({".gitignore": b"/a\nb/\nc/d\n", "a": b"", "x/a": b"", "x/b/f": b"", "y/b": b"",
          "c/d": b"", "x/c/d": b""}, [".gitignore", "x/a", "x/c/d", "y/b"]),
        ({".gitignore": b"*\n!*/\n!*.py\n", "d/e/f.py": b"", "d/g": b"", "h": b""}, ["d/e/f.py"]),
        ({".gitignore": b"a/**\n!a/b/\n!a/b/c\n", "a/b/c": b"", "a/b/d": b"", "a/e": b""},
         [".gitignore", "a/b/c"]),
        ({".gitignore": b"x/*\n!x/keep/\n*.o\n", "x/keep/a": b"", "x/keep/a.o": b"", "x/b": b""},
         [".gitignore", "x/keep/a"]),
        ({".gitignore": b"a\r\nb  \n\\#c\n#d\nspace\\ \n", "a": b"", "b": b"",
          "#c": b"", "#d": b"", "space ": b"", "space": b""}, ["#d", ".gitignore", "space"]),
        ({".gitignore": b"f?o\n[a-c]x\n[!a-c]y\n**/z/w\n\\*\n", "foo": b"", "fo": b"", "bx": b"",
          "dx": b"", "ay": b"", "dy": b"", "q/z/w": b"", "*": b"", "**": b""},
         ["**", ".gitignore", "ay", "dx", "fo"]),
        ({".gitignore": b"out\n", "d/.gitignore": b"!out\n/in\n", "out": b"", "d/out": b"",
          "d/in": b"", "d/e/in": b""}, [".gitignore", "d/.gitignore", "d/e/in", "d/out"]),
        ({".gitignore": b"a\n", "repo/.git/x": b"", "repo/a": b"", "other/a": b""},
         [".gitignore", "repo/a"]),
        ({".gitignore": b"[\n[z-a]\n/\n!\n\na", "a": b"", "b": b""}, [".gitignore", "b"]),
        ({".ignore": b"a", "a": b""}, [".ignore", "a"]),
    ],
)  # fmt: skip
async def test_what_git_ignores_is_left_out(
    tmp_path: Path, find: FindRipgrep, tree: dict[str, bytes | None], kept: list[str]
) -> None:
    plant(tmp_path, {".git/HEAD": b"", **tree})
    assert await names(tmp_path, find=find) == sorted(kept)


@both
async def test_rules_of_folders_above_count_up_to_the_repository(
    tmp_path: Path, find: FindRipgrep
) -> None:
    tree = {".gitignore": b"*.a\n", "repo/.gitignore": b"*.b\n/top/in/c\n", "repo/.git": None}
    plant(tmp_path, {**tree, **{f"repo/top/in/{name}": b"" for name in ("x.a", "x.b", "c", "d")}})
    assert await names(tmp_path / "repo" / "top" / "in", find=find) == ["d", "x.a"]
    (tmp_path / "repo" / ".git").rmdir()
    assert await names(tmp_path / "repo" / "top" / "in", find=find) == ["d"]


@both
async def test_only_regular_files_are_found_and_links_are_not_followed(
    tmp_path: Path, find: FindRipgrep
) -> None:
    plant(tmp_path, {"top/a": b"x\n", "out/secret": b"x\n"})
    (tmp_path / "top" / "link").symlink_to("../out")
    (tmp_path / "top" / "alias").symlink_to("a")
    (tmp_path / "top" / "gone").symlink_to("nowhere")
    (tmp_path / "top" / "line\nend").write_bytes(b"x\n")
    os.mkfifo(tmp_path / "top" / "fifo")
    assert await names(tmp_path / "top", find=find) == ["a"]
    assert await found(tmp_path / "top", "x", find=find) == {"a": [(1, "x")]}


@both
async def test_what_cannot_be_read_is_left_out(tmp_path: Path, find: FindRipgrep) -> None:
    plant(tmp_path, {"open/a": b"x", "shut/b": b"x", "c": b"x", "dir/.gitignore/d": b"x"})
    (tmp_path / "shut").chmod(0)
    (tmp_path / "c").chmod(0)
    readable = os.geteuid() == 0
    try:
        here = await found(tmp_path, "x", find=find)
    finally:
        (tmp_path / "shut").chmod(0o700)
    assert ("shut/b" in here) == ("c" in here) == readable
    assert {"open/a", "dir/.gitignore/d"} <= here.keys()


@both
@pytest.mark.parametrize(
    ("glob", "fitting"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("/*.py", ["a.py"]),
        ("src/*.py", ["src/b.py"]),
        ("./src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("**/deep/*", ["src/deep/c.py"]),
        ("src/**", ["src/b.py", "src/d.ts", "src/deep/c.py"]),
        ("*.{ts,{md,rst}}", ["e.md", "src/d.ts"]),
        ("{src/d,e}.*", ["e.md", "src/d.ts"]),
        ("[ae].??", ["a.py", "e.md"]),
        ("*.log", []),
        ("src", []),
    ],
)
async def test_a_glob_names_files(
    tmp_path: Path, find: FindRipgrep, glob: str, fitting: list[str]
) -> None:
    tree = ["a.py", "src/b.py", "src/deep/c.py", "src/d.ts", "e.md", "ignored.log"]
    plant(tmp_path, {".gitignore": b"*.log\n", **dict.fromkeys(tree, b"x\n")})
    assert await names(tmp_path, glob, find) == fitting
    assert sorted(await found(tmp_path, "x", glob, find=find)) == fitting


# -- which lines ----------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("data", "pattern", "lines"),
    [
        (b"one\ntwo\none", "one", [(1, "one"), (3, "one")]),
        (b"a\r\nb\r\n", "a$|^b$", [(1, "a"), (2, "b")]),
        (b"\n\n", "^$", [(1, ""), (2, "")]),
        (b"", "^$", []),
        (b"x--pre=./e\n", "--pre=./e", [(1, "x--pre=./e")]),
        (b"-x\n", "-x", [(1, "-x")]),
        (b"interface{}\n", "interface{}", [(1, "interface{}")]),
        (b"foobar\nfoo\n", "foo(?!bar)", [(2, "foo")]),
        (b"abab\nabba\n", r"(ab)\1", [(1, "abab")]),
        (b"<b>\nb\n", r"\<b\>", [(1, "<b>")]),
        (b"aaa\n", "a++a", []),
        (b"a\r\n", r"\r", []),
        ("Straße ÄÖ\n".encode(), r"^\w+\s\w+$", [(1, "Straße ÄÖ")]),
        ("ä\nÄ\n".encode(), "ä", [(1, "ä")]),
        (b"\xef\xbb\xbffirst\n", "^first", [(1, "first")]),
        ("\ufeffwide ü\n".encode("utf-16-le"), "^wide ü$", [(1, "wide ü")]),
        ("\ufeffwide ü\n".encode("utf-16-be"), "^wide ü$", [(1, "wide ü")]),
        (b"hit\n\0\n", "hit", []),
        (b"hit\n" + b"filler\n" * 20_000 + b"\0", "hit", []),
        (b"caf\xe9 au lait\n", "lait", [(1, r"caf\xe9 au lait")]),
        (b"a" * 300 + b"\n", "a", [(1, "a" * 300)]),
        ("ä".encode() * 301 + b"\n", "ä", [(1, "ä" * 300 + "... (line truncated to 300 chars)")]),
        (b"b" * 3_000_000 + b"a\nc\n", "a", [(1, "b" * 300 + "... (line truncated to 300 chars)")]),
    ],
)  # fmt: skip
async def test_lines_are_found(
    tmp_path: Path, find: FindRipgrep, data: bytes, pattern: str, lines: list[tuple[int, str]]
) -> None:
    plant(tmp_path, {"f": data, "other": b"other"})
    expected = {"f": lines} if lines else {}
    assert await found(tmp_path, pattern, find=find) == expected
    assert await found(tmp_path / "f", pattern, find=find) == {
        ("." if name == "f" else name): hits for name, hits in expected.items()
    }


@both
async def test_case_may_be_ignored(tmp_path: Path, find: FindRipgrep) -> None:
    plant(tmp_path, {"f": "Änderung\n".encode()})
    assert await found(tmp_path, "änder", find=find) == {}
    assert await found(tmp_path, "änder", find=find, ignore_case=True) == {"f": [(1, "Änderung")]}


@both
async def test_a_file_that_is_named_is_searched_though_git_ignores_it(
    tmp_path: Path, find: FindRipgrep
) -> None:
    plant(tmp_path, {".gitignore": b"-f\n", "-f": b"x\n"})
    assert await found(tmp_path / "-f", "x", "*.py", find=find) == {".": [(1, "x")]}


@both
async def test_files_beyond_the_largest_are_left_out_or_named(
    tmp_path: Path, find: FindRipgrep
) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"x\n")
        file.truncate(65 * 1024 * 1024)
    assert await found(tmp_path, "x", find=find) == {}
    with pytest.raises(FileTooLarge):
        await found(tmp_path / "huge", "x", find=find)


async def test_what_is_no_file_and_no_folder_is_not_searched(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NotRegular):
        await found(tmp_path / "fifo", "x")
    with pytest.raises(FileNotFoundError):
        await found(tmp_path / "none", "x")


# -- the same -------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "ab", "a.py", "b.py", ".c", "build", "x y"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PARTS = st.sampled_from(["a", "b", "*", "?", "**", "*.py", "[ab]", "[!a]*", "build", ".c", "a*b"])
RULES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "/"]),
    st.lists(PARTS, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/"]),
)
IGNORES = st.dictionaries(
    st.lists(NAMES, max_size=2).map("/".join), st.lists(RULES, max_size=4), max_size=3
)
TEXTS = st.text("ab \n\rä.", max_size=30).filter(lambda text: "\r" not in text.replace("\r\n", ""))
PATTERNS = st.lists(
    st.sampled_from(["a", "b", ".", "^", "$", "[ab]", r"\s", r"\w", r"\b", "(?:ab)*", "ä", "a|b"]),
    min_size=1, max_size=4,
).map("".join)  # fmt: skip


def grow(top: Path, paths: set[str], ignores: Mapping[str, list[str]], text: str) -> None:
    for path in sorted(paths):
        with suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
            plant(top, {path: text.encode()})
    for folder, lines in ignores.items():
        if (top / folder).is_dir():
            (top / folder / ".gitignore").write_text("\n".join(lines), encoding="utf-8")


@needs_ripgrep
@settings(deadline=None, max_examples=30, suppress_health_check=ANY_FIXTURE)
@given(st.sets(PATHS, max_size=12), IGNORES, TEXTS, PATTERNS, RULES)
async def test_both_find_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    paths: set[str],
    ignores: dict[str, list[str]],
    text: str,
    pattern: str,
    glob: str,
) -> None:
    top = tmp_path_factory.mktemp("tree")
    (top / ".git").mkdir()
    grow(top, paths, ignores, text)
    assert await names(top, find=ripgrep) == await names(top)
    glob = glob.lstrip("!").rstrip("/")
    one, other = [await found(top, pattern, glob, find=find) for find in (ripgrep, ours)]
    assert one == other


@pytest.mark.skipif(
    shutil.which("git") is None and os.environ.get("CI") != "true", reason="git is not installed"
)
@settings(deadline=None, max_examples=30, suppress_health_check=ANY_FIXTURE)
@given(st.sets(PATHS, max_size=12), IGNORES)
async def test_git_ignores_the_same(
    tmp_path_factory: pytest.TempPathFactory, paths: set[str], ignores: dict[str, list[str]]
) -> None:
    top = tmp_path_factory.mktemp("tree")
    git(top, "init", "-q")
    grow(top, paths, ignores, "x")
    listing = git(top, "ls-files", "-coz", "--exclude-standard")
    assert await names(top) == sorted(filter(None, listing.split("\0")))


def git(top: Path, *arguments: str) -> str:
    argv = ["git", "-C", str(top), "-c", "core.excludesFile=/dev/null", *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


# -- the process ----------------------------------------------------------------------------------


def script(folder: Path, text: str) -> FindRipgrep:
    """A program in the place of ripgrep."""
    program = folder / "rg"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    return lambda _: str(program)


async def looked(top: Path, find: FindRipgrep, limits: Limits, pattern: str = "x") -> str:
    with anyio.fail_after(20):
        return await search(Query(real(top), pattern), lambda _: None, find, limits)


async def test_a_pattern_without_end_is_given_up(tmp_path: Path) -> None:
    plant(tmp_path, {"f": b"a" * 60 + b"b\n"})
    reason = await looked(tmp_path, ours, Limits(seconds=0.5), "(a+)+$")
    assert reason == "it was stopped after 0.5 seconds"


async def test_a_search_that_finds_too_much_is_stopped(tmp_path: Path) -> None:
    reason = await looked(tmp_path, script(tmp_path, "exec yes"), Limits(printed=1000))
    assert reason == "it was stopped because it found too much"


async def test_what_our_own_program_cannot_do_is_said(tmp_path: Path) -> None:
    plant(tmp_path, {"f": b"x"})
    assert await looked(tmp_path, ours, Limits(), "(") == "the search program failed"


async def test_what_ripgrep_refuses_is_searched_by_our_own_program(tmp_path: Path) -> None:
    plant(tmp_path, {"top/f": b"x\n"})
    refuses = script(tmp_path, "echo no >&2; exit 2")
    assert await found(tmp_path / "top", "x", find=refuses) == {"f": [(1, "x")]}


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_cancelled_search_leaves_no_process(tmp_path: Path) -> None:
    plant(tmp_path, {"pid": b""})
    pids = ""
    find = script(tmp_path, f"sleep 1000 & echo $! $$ > {tmp_path}/pid; wait")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(looked, tmp_path, find, Limits())
        with anyio.fail_after(10):
            while not (pids := await anyio.Path(tmp_path / "pid").read_text("ascii")).endswith(
                "\n"
            ):
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    with anyio.fail_after(10):
        for pid in pids.split():
            while is_running(int(pid)):
                await anyio.lowlevel.checkpoint()


def is_running(pid: int) -> bool:
    """Whether the process is more than an entry that its new parent has yet to take notice of."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return Path("/proc/self").exists() is False and is_alive(pid)
    return state != "Z"


async def test_a_program_of_the_workspace_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "out").mkdir()
    script(tmp_path / "bin", "exit 0")
    (tmp_path / "out" / "rg").symlink_to("../bin/rg")
    monkeypatch.setattr(sys, "executable", "/none/python")

    def check(path: str, distrusted: str, *, runs: bool) -> None:
        monkeypatch.setenv("PATH", path)
        monkeypatch.chdir(tmp_path)
        assert (ripgrep([str(tmp_path / distrusted)]) is not None) is runs

    check(str(tmp_path / "bin"), "work", runs=True)
    check(str(tmp_path / "bin"), "bin", runs=False)
    check(str(tmp_path / "out"), "work", runs=True)
    check(str(tmp_path / "out"), "bin", runs=False)
    check("bin", "work", runs=False)
    check("", "work", runs=False)


def test_pieces_may_be_cut_anywhere() -> None:
    listing = b"./a\0./b/c\0"
    lines = b"./a\x001:x\n./a\x002:y:z\n./b\nno\x003:w\n./c\x001:q\n"
    lines += b"./c: binary file matches (found NUL)\n./d\x005:v\n"
    for size in (1, 3, 1000):
        got: list[Found] = []
        for reader, data in ((Names(got.append), listing), (Lines(got.append), lines)):
            for start in range(0, len(data), size):
                reader.feed(data[start : start + size])
            reader.close()
        assert got == [
            Found("a"),
            Found("b/c"),
            Found("a", 2, ((1, "x"), (2, "y:z"))),
            Found("d", 1, ((5, "v"),)),
        ]


def test_of_one_file_the_first_lines_are_kept_and_all_are_counted() -> None:
    got: list[Found] = []
    reader = Lines(got.append)
    reader.feed(b"".join(b"./a\0%d:x\n" % number for number in range(1, 1001)))
    reader.close()
    (one,) = got
    assert (one.hits, len(one.lines), one.lines[-1]) == (1000, 200, (200, "x"))
