import random
import subprocess
import sys

import pytest

from tools.programs import SAFE, only_reads
from tools.shell_line import commands, load_parser


def is_harmless(line: str) -> bool:
    """The line is nothing but commands that are proven to only read."""
    found = commands(line)
    return bool(found) and all(map(only_reads, found))


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        " ls \n",
        "ls -la src 'a b' \"c d\" e\\ f",
        "ls;",
        "pwd\nls\n\nls",
        "cd src && rg -n TODO | head -n 5 || echo none; true",
        "/usr/bin/ls -l; /bin/cat x",
        "cat -- ~/notes.txt 2 -5",
        'grep "foo$" x; grep "a\\.b$|c" x; grep "a\\"b" x; echo "\\$HOME" ""',
        "grep -r 'x; rm y > z $(id)' .",
        "ls *.py src/[ab]?.c",
        "cat a\"b\"c'd'",
        "echo grün ☃",
        "date; date -u +%F; date -d 'next monday' +%s; date -r x --utc; date --date=now",
        "file x.*; file --brief x",
        "find . -name '*.py' ! -path \"./x/*\" -type f",
        "find src \\( -name a -o -name b \\) -newer -follow",
        "printf '%s\\n' a",
        "rg --files; rg -i x src/*.py",
        "sed -n 3p f; sed -n '1,5p' f g/*.c; sed -n '2,$p'",
        "sort -rn -k2,2 --reverse f -- g",
        "test -f x -a 5 -gt 3",
        "tree -L 2",
        "uniq -c; uniq - ; uniq -d x",
    ],
)
def test_a_command_that_only_reads_is_harmless(command: str) -> None:
    assert is_harmless(command)


@pytest.mark.parametrize(
    "command",
    [
        # Nothing, or unknown programs, also under names that only look known.
        *("", " \n", "rm x", "git log", "git status", "python3 -c 1", "sh", "xargs ls"),
        *("./ls", "/tmp/ls", "/usr/local/bin/ls", "bin/ls", "l? x", "\\ls x; r\\m x", "'rm' x"),
        *("env ls", "command ls", "exec ls", "eval ls", "time ls", "sudo ls", "nohup ls", "man ls"),
        # One bad command among good ones.
        *("echo hi\nrm -rf x", "ls && rm x", "ls || rm x", "ls; rm x", "ls | tee x", "rm x | ls"),
        # Shell beyond simple commands.
        *("echo hi & rm x", "ls &", "ls |& cat", "! ls", "(ls)", "{ ls; }", "[ -f x ]", "[[ x ]]"),
        *("if true; then ls; fi", "for x in a; do ls; done", "f() { ls; }; ls", "coproc ls"),
        *("((1))", "while false; do ls; done", "case x in x) ls;; esac", "ls # note"),
        *(
            "ls > x",
            "ls >> x",
            "ls 2>&1",
            "cat < x",
            "cat <<E\nx\nE",
            "cat <<< x",
            "echo x > ~/.bashrc",
        ),
        *("LD_PRELOAD=./e.so ls", "PATH=. ls", "A=1", "A=1 B=2"),
        *("echo $HOME", "echo ${A:-$(id)}", "echo $(id)", "echo `id`", "cat <(ls)", "echo $((1))"),
        *('echo "$HOME"', 'echo "$(id)"', 'echo "`id`"', 'echo "$[1]"', 'echo $"a"', "echo $'a'"),
        *('echo a"$HOME"b', "$(id)", '"$X"', "echo a$", "ls {a,b}", "{rm,x}", "ls a{b,c}d"),
        # What the parser does not understand, and what a person would not see.
        *("ls 'x", 'ls "x', "ls )", "ls ;; ls", "echo @(a|b)", "ls \\", "grep == x"),
        *(
            "ls\r",
            "ls\u00a0x",
            "ls \u202ex",
            "ls\x00",
            "ls \x1b",
            "ls \ud800",
            "ls \u2028 x",
            "ls \v x",
        ),
        *(
            "ls -\\\nl",
            "find . -del\\\nete",
            'find . "-del\\\nete"',
            "$(" * 3000,
            "(" * 4000,
            "ls " * 3000,
            "x;" * 4000,
        ),
        # Options that write, run or change something, however they are spelt.
        *(
            "date -s 2000",
            "date 01010000",
            "date --set=2000",
            "date --se 2000",
            "date -d",
            "date -us x",
        ),
        *("date +%F 0101", "date [+]x", "date -d x -f y"),
        *(
            "file -C",
            "file -bC",
            "file --compile",
            "file --comp",
            "file -z x",
            "file --uncompress x",
        ),
        *(
            "find . -delete",
            "find . -exec rm x",
            "find . -execdir x",
            "find . -ok x",
            "find . -okdir x",
        ),
        *("find . -fprint f", "find . -fprintf f x", "find . -fls f", "find . -fprint0 f"),
        *("find . '-delete'", 'find . -del"ete"', "find . \\-delete", "find . ''-delete"),
        *("find *", "find . -del?te", "find . [-]delete", 'find ""*', "find . ?delete"),
        *("printf -v x y", "printf -vx y", "printf *", "test -v 'a[$(id)]'", "test -R x"),
        *("rg --pre ./e x", "rg --pre=./e x", "rg -z x", "rg -iz x", "rg --hostname-bin ./e x"),
        *(
            "sed x",
            "sed -n",
            "sed -n w f",
            "sed -n 1p -i f",
            "sed -n 1p *",
            "sed -i -n 1p",
            "sed -n 1e",
        ),
        *("sed -n '1p;w f' x", "sed -n 1p --in-place x", "sed -n ?p"),
        *(
            "sort -o f g",
            "sort -of g",
            "sort -ro f g",
            "sort --output=f g",
            "sort --outp=f g",
            "sort *",
        ),
        *("sort --compress-program=./e f", "sort --comp ./e f", "sort -T d f", "sort f -o f"),
        *("tree -o f", "tree -no f", "tree -R", "uniq a b", "uniq *", "uniq a*", "uniq -- a b"),
        *("uniq - b",),
    ],
)
def test_a_command_that_may_do_more_is_not_harmless(command: str) -> None:
    assert not is_harmless(command)


def test_every_program_that_is_known_can_be_harmless() -> None:
    for program in SAFE:
        assert is_harmless(f"{program} -n 1p" if program == "sed" else program)


def test_without_a_parser_nothing_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_bash", None)
    load_parser.cache_clear()
    try:
        assert not is_harmless("ls")
    finally:
        load_parser.cache_clear()


_PIECES = [
    *("a", "-x", "5", "~x", "'", '"', "\\", "$", "`", "{", "}", "=", "#", "!", ",", "[", "]", "@"),
    *(
        "%",
        "^",
        ":",
        "é",
        "*",
        "+",
        "(",
        ")",
        ";",
        "|",
        "&",
        "<",
        ".",
        "/",
        "&&",
        "||",
        "''",
        "\\'",
    ),
    *(" ", "  ", "\t", "\n", "\\ ", "'b\tc'", '"$d"', '"e $ f"', "\ne ", ";e ", " && e "),
]

_ECHO = """
e() { printf '%s\\0' "$@" END; }
set -f
while IFS= read -rd '' line; do eval "$line"$'\\n'; printf 'STOP\\0'; done
"""


def test_bash_reads_the_words_as_we_do() -> None:
    chance = random.Random(7)
    lines = ["e " + "".join(chance.choices(_PIECES, k=chance.randint(1, 8))) for _ in range(20_000)]
    read = {line: commands(line) for line in lines if "|" not in line}
    understood = {
        line: found
        for line, found in read.items()
        if found and all(command[0].text == "e" for command in found)
    }
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", _ECHO],
        input="".join(f"{line}\0" for line in understood).encode(),
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )
    *told, rest = ran.stdout.decode().split("STOP\0")
    assert rest == ""
    for (line, found), words in zip(understood.items(), told, strict=True):
        ours = "".join(
            "".join(f"{word.text}\0" for word in command[1:]) + "END\0" for command in found
        )
        assert (line, words) == (line, ours)
    assert len(understood) > 2_000
