"""Permission rules: what they may say, what they cover, and what they find."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bridge.core.rule import FOR_PROJECT, Rule, Sort, exactly
from bridge.core.rules import (
    BadRule,
    Fit,
    allowed_for_good,
    allowing,
    denied_for_good,
    first,
    fits,
    parsed,
)
from tools.base import Access
from tools.programs import only_reads
from tools.shell_line import look

SCOPE = ("/w", "/more/root", "/home/me")


def run(command: str) -> Access:
    """A command line as the shell tool would tell it, with every file open."""
    line = look(command)
    reads = tuple(words[0].text == "cd" or only_reads(words) for words in line.plain)
    return Access("run", command, line=replace(line, reads=reads))


def allows(rules: str | Sequence[str], command: str) -> bool:
    texts = [rules] if isinstance(rules, str) else rules
    known = [parsed("allow", text) for text in texts]
    return allowing(known, "shell", run(command), SCOPE) is not None


def fit(rule: str, command: str, sort: Sort = "deny") -> Fit:
    return fits(parsed(sort, rule), "shell", run(command), SCOPE)


# -- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words", "kept"),
    [
        ("shell git status", ("git", "status"), "shell git status"),
        ("  shell   git  status ", ("git", "status"), "shell git  status"),
        ("shell /usr/bin/git status", ("git", "status"), "shell /usr/bin/git status"),
        ("shell ./run 'a b'", ("./run", "a b"), "shell ./run 'a b'"),
        ("shell", (), "shell"),
        ("edit docs/**", (), "edit docs/**"),
        ("read ~/notes", (), "read ~/notes"),
        ("mcp__db__*", (), "mcp__db__*"),
    ],
)
def test_a_rule_is_a_tool_and_what_of_it(text: str, words: tuple[str, ...], kept: str) -> None:
    rule = parsed("ask", text, "here")
    assert (rule.words, rule.text, rule.sort, rule.source) == (words, kept, "ask", "here")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("write docs/**", 'write "edit" instead'),
        ("bash ls", 'write "shell" instead'),
        ("grep x", 'write "read" instead'),
        ("git status", "must begin with shell, edit, read or mcp__"),
        ("Shell ls", "must begin with"),
        ("mcp__db__find x", "nothing behind it"),
        ("mcp__d/b", "must be the name of an MCP server's tool"),
        ("shell git status && ls", "first words of one command"),
        ("shell ls > x", "first words of one command"),
        ("shell echo $(id)", "first words of one command"),
        ("shell git 'status", "a quote that is not closed"),
        ("shell ''", "must name a program"),
        ("edit !docs", "must not begin with !"),
        ("edit ../x", "must not hold .."),
        ("edit ~you/x", "must be followed by /"),
        ("edit a//b", "is no pattern: it holds an empty part"),
        ("edit [z-a]", "is no pattern: it holds the range"),
    ],
)
def test_a_text_that_is_no_rule_is_told_why(text: str, why: str) -> None:
    with pytest.raises(BadRule, match=r"must|is|holds|begins") as caught:
        parsed("deny", text)
    assert why in str(caught.value)


# -- commands that are allowed ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "command"),
    [
        ("shell git status", "git status"),
        ("shell git status", "git status -s --branch"),
        ("shell git status", "/usr/bin/git status"),
        ("shell git status", "git 'status'"),
        ("shell git status", "git status | head -5"),
        ("shell git push", "git push -u origin main"),
        ("shell git switch", "git switch -c topic"),
        ("shell git cherry-pick", "git cherry-pick -x a"),
        ("shell git status", "cd sub && git status; ls"),
        ("shell npm test", "npm test -- --watch=false"),
        ("shell npm test", "timeout 60 npm test"),
        ("shell npm test", "timeout 1.5m npm test"),
        ("shell npm test", "nice -n 5 npm test"),
        ("shell npm test", "nohup npm test"),
        ("shell npm test", "time npm test"),
        ("shell npm test", "env npm test"),
        ("shell timeout 60 npm", "timeout 60 npm run x"),
        (["shell git add", "shell git commit"], "git add a && git commit -m 'x; rm -rf y'"),
        ("shell find . -delete", "find . -delete"),
        ("shell sed -i", "sed -i s/a/b/ f"),
        ("shell sed", "sed s/a/b/g f"),
        ("shell sed", "sed -n 's|a|b|p' f"),
        ("shell ./run.sh", "./run.sh x"),
        ("shell git bisect", "git bisect good"),
        ("shell git bisect run", "git bisect run ./x"),
        ("shell git submodule", "git submodule update"),
        ("shell xargs", "ls | xargs rm"),
        ("shell sudo", "sudo rm x"),
        ("shell bash", "bash -c 'rm x'"),
        ("shell python", "ls | python"),
        ("shell uv run", "uv run x"),
        ("shell fd", "fd a"),
        ("shell tar", "tar xvz a"),
        ("shell", "anything > x && $(goes)"),
    ],
)
def test_an_allowed_beginning_covers_what_follows(rules: str | Sequence[str], command: str) -> None:
    assert allows(rules, command)


def each(rule: str, *commands: str, before: str = "") -> list[tuple[str, str]]:
    return [(rule, before + command) for command in commands]


NOT_ALLOWED = [
    # Lines with something else in them.
    *each("shell echo", "echo hi\nrm -rf x", "echo hi & rm x", "echo x > ~/.bashrc"),
    *each("shell echo", "echo $(rm x)", "echo `rm x`", "echo hi; rm x", "rm x; echo"),
    *each("shell echo", "echo hi | tee x", "echo hi || rm x", "(echo hi)", "! echo"),
    *each("shell echo", "echo <(rm x)", "echo <<E\n$(rm x)\nE", "echo {a,b}", "echo $X"),
    *each("shell echo", "if echo; then rm x; fi", "f() { rm x; }; echo", "echo hi &"),
    *each("shell echo", "echo hi\r", "echo\u00a0hi", "echo \u202ehi", "echo 'x", "ec\\\nho"),
    *each("shell echo", "echo " + "x" * 100_000, "\u0435cho hi", "ECHO hi", "ech? hi"),
    *each("shell ls", "LD_PRELOAD=./e.so ls", "PATH=. ls", "./ls", "/tmp/ls", "ls; X=1"),
    # Wrappers that may change what runs.
    *each(
        "shell ls",
        *("sudo ls", "env LD_PRELOAD=./e ls", "env -i ls", "xargs ls", "bash -c ls", "eval ls"),
        *("exec ls", "find . -exec ls ;", "command -v ls", "nice -n -5 ls", "timeout -k 1 5 ls"),
        *("timeout 5 env A=1 ls", "timeout 5 $X ls", "time -o f ls"),
    ),
    # Words that are not the beginning.
    *each("shell git status", "git", "git push", "git -C /x status", "git s*", "git log"),
    *each("shell git status", "git -c core.fsmonitor=./e status", "gi't sta'tus"),
    ("shell git status", "git -c core.pager=./e status"),
    ("shell git status", "git --git-dir=x status"),
    # Options that run or write something.
    *each(
        "shell git fetch", "--upload-pack=./e", "--upload-p ./e", "ext::sh%20x", before="git fetch "
    ),
    *each(
        "shell git diff", "--output=f", "--ext-diff", "--outp f", "--textconv", before="git diff "
    ),
    *each("shell git grep", "-O./e x", "--open-files-in-pager=./e x", "-iO x", before="git grep "),
    *each("shell git push", "--receive-pack=./e", "--exec=./e", "--rec ./e", before="git push "),
    *each("shell git rebase", "-x ./e", "--exec ./e", "--exe ./e", before="git rebase "),
    ("shell git clone", "git clone -c core.fsmonitor=./e x"),
    *each(
        "shell find", "-delete", "-exec x ;", "-fprintf f x", "'-delete'", "-ok x", before="find . "
    ),
    *each("shell sort", "-o f g", "--compress-program=./e f", "-rof g", before="sort "),
    *each(
        "shell sed", "-i s/a/b/ f", "'s/a/b/e' f", "'s/a/b/w x' f", "1e f", "-f x f", before="sed "
    ),
    *each(
        "shell sed", "-n 1p -i f", "--in-place s/a/b/ f", "-ni s/a/b/ f", "-e 1d f", before="sed "
    ),
    *each(
        "shell tar", "--checkpoint-action=exec=./e", "-I ./e", "cIf ./e a", "-xF x", before="tar "
    ),
    *each(
        "shell tar",
        "--to-command=./e -xf a",
        "--use-compress-program ./e",
        "--rsh=e",
        "xf a --checkpoint-action=exec=./e",
        before="tar ",
    ),
    *each("shell rg", "--pre ./e x", "--hostname-bin=./e x", "-z x", before="rg "),
    *each(
        "shell go test", "-exec ./e", "-toolexec=./e", "--exec ./e", "-vettool=e", before="go test "
    ),
    *each("shell cargo build", "--config x", "--config=x", "-Zx", "-C ..", before="cargo build "),
    *each(
        "shell npm test",
        "--script-shell=./e",
        "--prefix /x",
        "-C ..",
        "--pre x",
        before="npm test ",
    ),
    *each(
        "shell make test", "SHELL=./e", "-f x", "-C ..", "--eval=x", "-sf x", before="make test "
    ),
    *each("shell date", "-s 2000", "--set=2000", "0101", before="date "),
    *each("shell tree", "-o f", "-R", before="tree "),
    ("shell rsync", "rsync -e ./e a b"),
    ("shell ssh", "ssh -oProxyCommand=./e h"),
    ("shell curl", "curl -o f https://h"),
    ("shell curl", "curl -sD f https://h"),
    ("shell curl", "curl --trace f https://h"),
    ("shell go test", "go test -overlay=x ./..."),
    ("shell go test", "go test -modfile x ./..."),
    ("shell uv run", "uv run --with evil pytest"),
    # Words behind the beginning that make it run another program.
    *each("shell git bisect", "git bisect run ./e"),
    *each("shell git submodule", "git submodule foreach ./e"),
    *each("shell fd", "fd -x ./e", "fd -X ./e", "fd -Hx ./e", "fd --exec=./e"),
    *each("shell npm", "npm exec ./e"),
    *each("shell nix", "nix develop -c ./e"),
]


@pytest.mark.parametrize(("rule", "command"), NOT_ALLOWED)
def test_an_allowed_beginning_covers_nothing_else(rule: str, command: str) -> None:
    assert not allows(rule, command)


def test_reading_alone_is_not_what_a_rule_allows() -> None:
    assert not allows("shell git status", "ls")
    assert not allows("shell git status", "")
    assert allowing([parsed("allow", "shell ls")], "shell", Access("run", "ls"), SCOPE) is None


def test_what_the_line_reads_must_be_open_too() -> None:
    access = run("git status; cat ../../x")
    assert access.line is not None
    closed = replace(access, line=replace(access.line, reads=(False, False)))
    assert allowing([parsed("allow", "shell git status")], "shell", closed, SCOPE) is None


# -- commands that are denied ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        *("git push", "git push origin main", "git -C d push", "cd d && git push", "A=1 git push"),
        *(
            "git -c a.b=c push",
            "git --git-dir=x push",
            "git --git-dir x --no-pager push",
            "git -P push",
        ),
        *("/usr/bin/git push", "./git push", "GIT push", "g''it push", "git 'push'", '"git" push'),
        *(
            "\\git push",
            "git \\\n  push",
            "git\tpush",
            "git push > log 2>&1",
            "git > log push",
            "git 2>&1 push",
            "git <<E push\na\nE",
            "git <<< a push",
            "> x git push",
            "git >&- push",
            "git > a > b push",
            "xargs 2>&1 git push x",
            "git push &",
        ),
        *(
            "x || git push",
            "ls | git push",
            "(git push)",
            "{ git push; }",
            "! git push",
            "echo $(git push)",
        ),
        *("echo `git push`", 'echo "a $(git push) b"', "X=$(git push)", "export X=$(git push)"),
        *(
            "if true; then git push; fi",
            "for i in a; do git push; done",
            "while git push; do :; done",
        ),
        *(
            "case x in x) git push;; esac",
            "f() { git push; }; f",
            "cat <(git push)",
            "time git push",
        ),
        *(
            "cat <<E\n$(git push)\nE",
            "echo ${X:-$(git push)}",
            "[[ $(git push) ]]",
            "echo $(( $(git push) ))",
        ),
        *(
            "sudo git push",
            "sudo -u me git push",
            "sudo -n -- git push",
            "env A=1 git push",
            "env git push",
        ),
        *(
            "env -u X git push",
            "env -i git push",
            "nohup git push",
            "nice -n 5 git push",
            "nice git push",
        ),
        *("timeout 5 git push", "timeout -k 1 -s INT 5m git push", "timeout --signal=9 5 git push"),
        *(
            "command git push",
            "exec git push",
            "exec -a x git push",
            "builtin git push",
            "coproc git push",
        ),
        *("setsid git push", "stdbuf -oL git push", "xargs git push", "xargs -n1 -I{} git push {}"),
        *(
            "sudo env A=1 nice timeout 5 git push",
            "find . -exec git push {} ;",
            "find . -ok git push +",
        ),
        *(
            "bash -c 'git push'",
            "bash -lc 'cd x && git push'",
            'sh -e -c "git push"',
            "bash -o pipefail -c 'git push'",
        ),
        *(
            "bash -c \"bash -c 'git push'\"",
            "eval git push",
            "eval 'git push'",
            "trap 'git push' EXIT",
        ),
        *("su -c 'git push'", "watch git push", "busybox git push", "sudo bash -c 'git push'"),
        *("git push $X", "git push *", "git push {a,b}", "echo a; echo b\ngit push"),
        *("script -qc 'git push'", "script /dev/null -c 'git push'", "sg staff -c 'git push'"),
        *("flock x git push", "flock x -c 'git push'", "setarch -R git push", "npx git push"),
        *("unshare -r git push", "setsid -w git push", "pkexec git push", "fakeroot git push"),
        *("uv run git push", "poetry run git push", "npm exec -- git push", "mise x -- git push"),
        *("conda run -n a git push", "direnv exec . git push", "/usr/lib/git-core/git-push"),
        *("git submodule foreach git push", "git submodule foreach --recursive 'git push'"),
        *("git bisect run git push", "git rebase -x 'git push' a", "git rebase -ix 'git push'"),
        "echo " + "x" * 100_000 + "; git push",
        *("fd -x git push", "fd -e py -X git push {} ;", "fdfind a --exec-batch git push"),
        *("gdb --args git push", "gdb -ex run --args git push", "nix develop -c git push"),
        *(
            "nix shell a -c git push",
            "nix-shell --run 'git push'",
            "nix-shell -p a --run='git push'",
        ),
        *("tmux new-session -d 'git push'", "tmux split-window -h 'cd d; git push'"),
        *("tmux send-keys -t a 'git push' Enter", "tmux -L s new -d \\; send 'git push' Enter"),
        *(
            "screen -dm git push",
            "screen -dmS name git push",
            "entr -r git push",
            "entr -rs 'git push'",
        ),
        *("chpst -u me git push", "softlimit -m 9 git push", "setuidgid me git push"),
        *("envdir d git push", "gosu me git push", "faketime -f '@2020-01-01' git push"),
        *("ld-linux-x86-64.so.2 git push", "/lib/ld-linux.so.2 --preload x /bin/git push"),
        *("/lib/ld-musl-x86_64.so.1 git push", "ld.so git push", "perf stat git push"),
        *("xargs sh -c 'git push {}'", "xargs -I{} sh -c 'git push \"$@\"' _"),
        *("git -C d rebase -x 'git push' a", "git rebase --exec='git push' a"),
        *("git -C d bisect run git push", "git -C d submodule foreach 'git push'"),
        *("git -C d -c alias.x='!git push' x", "watch -n 1 git push", "watch -d 'git push'"),
        *("script --command='git push' f", "npx -c 'git push'", "tini -- git push"),
        *("csh -c 'git push'", "cpulimit -l 9 git push", "systemd-inhibit git push"),
        *("dotenv run git push", "mamba run -n a git push", "tox exec -- git push"),
    ],
)
def test_a_denied_command_is_found_wherever_it_stands(command: str) -> None:
    assert fit("shell git push", command) == "yes"


@pytest.mark.parametrize(
    "command",
    [
        *(
            "git $X",
            'git "$X"',
            "$X push",
            "$(echo git) push",
            "g?t push",
            "{git,push}",
            "git $'push'",
        ),
        *(
            "git p*",
            "git $X push",
            "git -C $X",
            "git -c alias.x=push x",
            "git --config-env=alias.x=Y x",
        ),
        *(
            "xargs git",
            "xargs $X",
            "time --odd x git push",
            "timeout --odd x 5 git push",
            "eval $X",
        ),
        *(
            "bash",
            "bash <<E\ngit push\nE",
            "echo git push | sh",
            'bash -c "$X"',
            "bash -s",
            ". ./x",
        ),
        *(
            "source x",
            "alias g=git",
            "env -S 'git push'",
            "su",
            "parallel git push ::: a",
            "find $X",
        ),
        *("git 'push", "git pu\\\nsh", "git\u00a0push", "git push\u202e"),
        *("x" * 200_000, "bash -c '" * 20, 'trap "$X" EXIT', 'f() { "$@"; }; f git push'),
        *(
            "hash -p /bin/x git",
            "mapfile -C x",
            "g\\\nit push",
            "exec $X",
            "time ! git push",
            "EXIT\nE\n\\git push",
            "nohup --odd $X",
            "git -c $X status",
            "echo git push | python",
            "at now <<< 'git push'",
            "ls;" * 1100 + "ls",
        ),
    ],
)
def test_what_may_be_a_denied_command_is_not_passed_over(command: str) -> None:
    assert fit("shell git push", command) == "perhaps"


@pytest.mark.parametrize(
    "command",
    [
        # Programs that nobody knows, and those whose words are run elsewhere.
        *("odd git push", "odd --option git push", "odd 'cd d && git push'", "./odd '!git push'"),
        *("ssh host git push", "ssh host <<E\ngit push\nE", "ssh host <<< 'git push'"),
        *(
            "docker exec c git push",
            "docker run img sh -c 'git push'",
            "kubectl exec p -- git push",
        ),
        *("hatch run 'git push'", "tmux new-window git push", "mise x a@1 -- git push"),
        *("uv --directory d run git push", "sudo --odd x git push", "odd /usr/bin/git push"),
        *("odd git $X", "odd git -C d push", "odd GIT push"),
        # Texts in another language.
        *('python -c \'run(["git", "push"])\'', "python - <<E\nx('git push')\nE"),
        *("perl -e 'system(\"git push\")'", "ruby -e '`git push`'", "node -e 'x(`git push`)'"),
        *("awk 'BEGIN{system(\"git push\")}'", "expect -c 'spawn git push'", "dc -e '!git push'"),
        *(
            "sed '1e git push' f",
            "sed 's/a/git push/e' f",
            "sed -i s/a/git/e push",
            "vim -c '!git push'",
            "vi +'!git push'",
        ),
        *("gdb -ex 'shell git push'", "emacs --eval '(shell-command \"git push\")'"),
        *("socat EXEC:'git push' -", "make CC='git push'", "make --eval='$(shell git push)'"),
        # Options and variables that hold a command.
        *("git -c core.editor='git push' commit", "git filter-branch --tree-filter 'git push'"),
        *(
            "git config alias.x '!git push'",
            "git difftool -x 'git push'",
            "git grep -O'git push' x",
        ),
        *("git fetch --upload-pack='git push' r", "git clone ext::'sh -c git% push'"),
        *("GIT_EDITOR='git push' git commit", "export PAGER='git push'; man a"),
        *("tar -I 'git push' -xf a", "rsync -e 'git push' a b", "man -P 'git push' a"),
        *("apt-get -o x='git push' install a", "split --filter='git push' f"),
    ],
)
def test_a_denied_command_that_some_program_is_told_is_asked_for(command: str) -> None:
    assert fit("shell git push", command) == "perhaps"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("shell git push --force", "odd git push"),
        ("shell git push", "odd git pushed"),
        ("shell git push", "odd legit push"),
        ("shell git push", "odd git; push-it"),
        ("shell rm", "git rm x"),
        ("shell rm", "git -C rm status"),
        ("shell rm", "git commit -m 'rm x'"),
        ("shell rm", "npm rm x"),
        ("shell curl", "apt-get install -y curl"),
        ("shell curl", "pip install curl"),
        ("shell curl", "sed -i -e s/curl/wget/g f"),
        ("shell curl", "sed --in-place s/curl/wget/ f"),
        ("shell curl", "mkdir -p curl && cp a curl"),
        ("shell curl", "pytest tests/curl"),
        ("shell curl", "fd curl"),
        ("shell curl", "cat > f <<E\ncurl x\nE"),
    ],
)
def test_a_word_is_no_command_where_nothing_runs_it(rule: str, command: str) -> None:
    assert fit(rule, command) == "no"


@pytest.mark.parametrize(
    "command",
    [
        *(
            "git status",
            "git log push",
            "git commit -m push",
            "git commit -m 'git push'",
            "echo git push",
        ),
        *("ls", "git", "git -C push status", "npm push", "gitpush", "python -c 'x'", "bash x.sh"),
        *("for i in a b; do echo $i; done", "cat <<E > f\ngit push\nE", "X=push; ls $X", "sudo ls"),
        *(
            "find . -name '*.c'",
            "find . -exec grep push {} +",
            "xargs echo",
            "env A=1 ls",
            "eval ls",
        ),
        *("grep -c push f", "git checkout push", "time ls", "bash -c 'ls'"),
        *("trap - EXIT", "trap", "# git push", ""),
    ],
)
def test_other_commands_are_not_taken_for_a_denied_one(command: str) -> None:
    assert fit("shell git push", command) == "no"


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("shell git push --force", "git push origin main --force", "yes"),
        ("shell git push --force", "git push --force=x", "yes"),
        ("shell git push --force", "git push", "no"),
        ("shell git push --force", "git push $X", "perhaps"),
        ("shell git push -f", "git push -uf", "yes"),
        ("shell git push -f", "git push --f", "no"),
        ("shell rm -rf", "rm -rf x", "yes"),
        ("shell rm -r", "rm -fr x", "yes"),
        ("shell npm publish", "npm --prefix d publish", "perhaps"),
        ("shell npm publish", "npm --prefix d --cache c publish", "perhaps"),
        ("shell npm publish", "npm --prefix d --cache c", "no"),
        ("shell npm publish", "npm --prefix=d publish", "yes"),
        ("shell npm publish", "npm d publish", "no"),
        ("shell git", "git -c alias.x=y z", "yes"),
        ("shell git", "ls", "no"),
        ("shell ./x", "bin/x", "yes"),
        ("shell", "ls", "yes"),
    ],
)
def test_words_and_options_of_a_denied_command(rule: str, command: str, expected: Fit) -> None:
    assert fit(rule, command) == expected
    assert fit(rule, command, "ask") == expected


def test_a_line_that_nobody_looked_at_may_be_anything() -> None:
    rule = parsed("deny", "shell git push")
    assert fits(rule, "shell", Access("run", "ls"), SCOPE) == "perhaps"


def test_a_long_line_takes_no_long_time() -> None:
    for line in (
        "a | " * 30_000 + "b",
        "$(" * 40_000,
        "'" * 99_999,
        "{ " * 50_000,
        "x <<E\n" * 9_000,
        "nohup --odd" + " git" * 30_000,
        "odd" + " git" * 30_000,
        "git" + " -a x" * 20_000,
    ):
        began = time.process_time()
        fit("shell git push", line)
        assert time.process_time() - began < 20  # quadratic would be minutes


# -- paths -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "path", "covered"),
    [
        ("edit docs/**", "/w/docs/a/b.md", True),
        ("edit docs/**", "/more/root/docs/a", True),
        ("edit docs/**", "/w/docs", False),
        ("edit docs/**", "/w/x/docs/a", False),
        ("edit docs/**", "/w/docs2/a", False),
        ("edit docs", "/w/x/docs/a", True),
        ("edit docs/", "/w/docs/a", True),
        ("edit docs/", "/w/docs", False),
        ("edit *.md", "/w/a/b.md", True),
        ("edit *.md", "/w/a/b.MD", False),
        ("edit *.md", "/etc/b.md", False),
        ("edit /docs/*", "/w/docs/a", True),
        ("edit /etc/**", "/etc/hosts", True),
        ("edit /etc/**", "/w/etc/hosts", True),
        ("edit etc/**", "/etc/hosts", False),
        ("edit ~/notes/**", "/home/me/notes/a", True),
        ("edit ~/notes/**", "/w/notes/a", False),
        ("edit a\\ b.md", "/w/a b.md", True),
        ("read docs/**", "/w/docs/a", False),
        ("shell docs", "/w/docs/a", False),
        ("edit", "/w/a", True),
    ],
)
def test_a_pattern_of_paths_is_read_as_gitignore_is(rule: str, path: str, covered: bool) -> None:
    found = fits(parsed("allow", rule), "write", Access("edit", path), SCOPE)
    assert found == ("yes" if covered else "no")


@pytest.mark.parametrize(
    "access",
    [
        Access("edit", "/w/secret/a"),
        Access("edit", "/w/SECRET/a"),
        Access("edit", "/w/sec\u200bret/a"),
        Access("edit", "/elsewhere/a", outside=True, named="/w/secret/a"),
        Access("edit", "/w/secret/a", named="/w/link"),
        Access("edit", "/w/secret"),
    ],
)
def test_a_denied_path_is_found_under_any_name(access: Access) -> None:
    assert fits(parsed("deny", "edit Secret"), "edit", access, SCOPE) == "yes"


def test_an_answer_about_a_folder_is_about_that_of_the_workspace() -> None:
    for folder in ("etc", "w"):
        access = Access("edit", f"/w/{folder}/a")
        made = allowed_for_good(access, ("/w",), FOR_PROJECT)
        assert made.text == f"edit /{folder}/**"
        assert allowing([made], "edit", access, SCOPE) == made
        for path in (f"/{folder}/a", f"/{folder}/x/a"):
            assert allowing([made], "edit", Access("edit", path, outside=True), SCOPE) is None
    assert fits(made, "edit", Access("edit", "/w/other/a"), SCOPE) == "no"


def test_an_allowed_path_is_the_one_that_a_link_leads_to() -> None:
    rule = parsed("allow", "edit docs/**")
    through = Access("edit", "/w/src/a", named="/w/docs/link")
    assert fits(rule, "edit", through, SCOPE) == "no"
    assert fits(rule, "edit", Access("edit", "/w/docs/a", named="/w/src/link"), SCOPE) == "yes"


def test_a_rule_without_a_pattern_allows_what_lies_in_the_workspace() -> None:
    edit, read = parsed("allow", "edit"), parsed("allow", "read")
    assert fits(edit, "edit", Access("edit", "/etc/a", outside=True), SCOPE) == "no"
    assert fits(read, "read", Access("read", "/w/.env", secret=True), SCOPE) == "no"
    assert fits(edit, "edit", Access("edit", "/w/.env", secret=True), SCOPE) == "yes"
    denied = parsed("deny", "edit")
    assert fits(denied, "edit", Access("edit", "/etc/a", outside=True), SCOPE) == "yes"


@pytest.mark.parametrize(
    ("rule", "covered"), [("read **", "no"), ("read conf/*", "no"), ("read .env", "yes")]
)
def test_a_file_of_secrets_is_allowed_by_its_name_alone(rule: str, covered: Fit) -> None:
    access = Access("read", "/w/conf/.env", secret=True)
    assert fits(parsed("allow", rule), "read", access, SCOPE) == covered


def test_a_home_that_is_not_known_holds_nothing() -> None:
    rule = parsed("deny", "read ~/x")
    assert fits(rule, "read", Access("read", "/x"), ("/w", "")) == "no"


def test_a_tool_of_a_server_is_known_by_its_name() -> None:
    rule, call = parsed("deny", "mcp__db__*"), Access("call", "db: drop 12")
    assert fits(rule, "mcp__db__drop", call, SCOPE) == "yes"
    assert fits(rule, "mcp__web__drop", call, SCOPE) == "no"
    assert fits(rule, "shell", run("ls"), SCOPE) == "no"


# -- the best of several ---------------------------------------------------------------------------


def test_a_rule_that_fits_comes_before_one_that_may() -> None:
    rules = [
        parsed("deny", "shell git push"),
        parsed("ask", "shell ls"),
        parsed("deny", "shell rm"),
    ]
    assert first(rules, "deny", "shell", run("$X; rm a"), SCOPE) == (rules[2], "yes")
    assert first(rules, "deny", "shell", run("$X"), SCOPE) == (rules[0], "perhaps")
    assert first(rules, "deny", "shell", run("ls"), SCOPE) == (None, "no")


# -- answers for good ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("npm test -- x", "shell npm test"),
        ("npm run lint", "shell npm run lint"),
        ("cd sub && npm test | tail -5", "shell npm test"),
        ("timeout 60 npm test", "shell npm test"),
        ("git status -s", "shell git status"),
        ("cargo build --release", "shell cargo build"),
        ("go test ./...", "shell go test"),
        ("pytest -x tests", "shell pytest"),
        ("uv run pytest -x", "shell uv run pytest"),
        ("uv run ruff check .", "shell uv run ruff check"),
        ("python -m pytest", "shell python -m pytest"),
        ("/usr/bin/git log", "shell git log"),
    ],
)
def test_always_is_about_a_beginning_that_makes_sense(command: str, rule: str) -> None:
    made = allowed_for_good(run(command), ("/w",), "me")
    assert (made.text, made.exact) == (rule, False)
    assert allowing([made], "shell", run(command), SCOPE) == made
    assert parsed("allow", made.text, "me") == made


@pytest.mark.parametrize(
    "command",
    [
        *(
            "bash x.sh",
            "bash",
            "python x.py",
            "python -c 1",
            "python3 -m http.server",
            "sudo ls",
            "env",
        ),
        *("env A=1 npm test", "node x.js", "npx x", "uv run python x.py", "uv run --with x pytest"),
        *(
            "make test",
            "rm -rf build",
            "git status && rm -rf ./t",
            "npm test > log",
            "xargs rm",
            "curl x",
        ),
        *(
            "git",
            "git -C x status",
            "git config a b",
            "git rebase main",
            "git bisect run x",
            "npm run",
        ),
        *("npm run 'a'*", "npm exec x", "docker run x", "cargo run", "go run x", "./gradlew test"),
        *(
            "git fetch --upload-pack=./e",
            "npm run -s",
            "git s*",
            "$X",
            "echo 'x",
            "npm",
            "uv run",
            "python -m",
        ),
    ],
)
def test_always_is_about_nothing_but_the_line_where_more_makes_no_sense(command: str) -> None:
    access = run(command)
    made = allowed_for_good(access, ("/w",), "me")
    assert made.exact
    assert allowing([made], "shell", access, SCOPE) == made
    for other in (f"{command} x", f"{command}; rm x", f" {command}"):
        assert allowing([made], "shell", run(other), SCOPE) is None


@pytest.mark.parametrize(
    ("access", "rule", "exact"),
    [
        (Access("edit", "/w/src/a.py"), "edit /src/**", False),
        (Access("edit", "/w/a.py"), "edit /a.py", False),
        (Access("edit", "/w/a [x]*.py"), "edit /a\\ \\[x\\]\\*.py", False),
        (Access("edit", "/w/s c/d/a.py"), "edit /s\\ c/d/**", False),
        (Access("edit", "/etc/a", outside=True), "edit /etc/a", True),
        (Access("edit", "/elsewhere/a"), "edit /elsewhere/a", True),
        (Access("read", "/etc/a", outside=True), "read /etc/a", True),
        (Access("call", "db: drop 12"), "call db: drop 12", True),
    ],
)
def test_always_is_about_the_folder_of_an_edit_or_the_very_thing(
    access: Access, rule: str, exact: bool
) -> None:
    made = allowed_for_good(access, ("/w",), "me")
    assert (made.text, made.exact) == (rule, exact)
    assert allowing([made], "x", access, ("/w", "/home/me")) == made


@pytest.mark.parametrize(
    ("command", "rule", "also"),
    [
        ("npm publish --tag x", "shell npm publish --tag x", "cd a && npm publish --tag x y"),
        ("rm -rf build", "shell rm -rf build", "sudo rm -rf build"),
        ("rm *", "shell rm *", "rm *"),
        ("a && b", "shell a && b", "a && b"),
        ("echo 'a;b'", "shell echo 'a;b'", "echo 'a;b'"),
        ("x " + "y" * 100, "shell x " + "y" * 100, "x " + "y" * 100),
        ("echo hi", "shell echo hi", "echo hi there"),
    ],
)
def test_never_is_about_this_command_wherever_it_stands(command: str, rule: str, also: str) -> None:
    made = denied_for_good("shell", run(command), "me")
    assert made.text == rule
    for line in (command, also):
        assert fits(made, "shell", run(line), SCOPE) == "yes"
    assert fits(made, "shell", run("ls"), SCOPE) == "no"


def test_never_is_about_this_file_or_this_tool() -> None:
    edit = Access("edit", "/w/a", named="/w/b")
    assert denied_for_good("edit", edit, "me") == exactly("deny", "edit", "/w/a", "me")
    call = denied_for_good("mcp__db__drop", Access("call", "db: drop 12"), "me")
    assert fits(call, "mcp__db__drop", Access("call", "db: drop 99"), SCOPE) == "yes"
    assert denied_for_good("shell", Access("run", "ls"), "me") == Rule(
        "deny", "shell ls", "me", "shell", exact=True
    )


@pytest.mark.parametrize(
    "command",
    [
        *("git submodule update", "git bisect start", "git rebase main", "script", "sg staff"),
        *("uv sync", "uv run pytest", "npm test", "npm run push", "flock x ls", "git-pull"),
        *("npx push", "conda list", "script -q"),
    ],
)
def test_a_runner_of_other_commands_is_not_a_denied_one(command: str) -> None:
    assert fit("shell git push", command) == "no"
