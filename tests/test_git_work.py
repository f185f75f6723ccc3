import pytest

from tools.argv import Argv
from tools.git_work import names, works_on
from tools.shell_line import look


@pytest.mark.parametrize(
    ("line", "works"),
    [
        ("git", True),
        ("/usr/bin/git status", True),
        ("GIT status", True),
        ("git-lfs pull", True),
        ("env A=1 git gc", True),
        ("sudo -u me timeout 5 git gc", True),
        ("xargs git add", False),  # its words are not the last ones
        ("find . -exec git add ;", False),
        ("npx lint-staged", True),
        ("uv run cz commit", True),
        ("npm version patch", True),
        ("npm install", False),
        ("npm", False),
        ("python -m pre_commit run", True),
        ("python -m pytest", False),
        ("cargo release", True),
        ("make release", False),
        ("gitk", False),
        ("env", False),
        ("", False),
    ],
)
def test_a_program_that_works_on_the_repository_is_known(line: str, works: bool) -> None:
    assert works_on(tuple(line.split())) is works


def test_a_program_that_cannot_be_told_works_on_nothing() -> None:
    def check(*words: Argv) -> None:
        assert not any(map(works_on, words))

    check((None,), (None, "git"), ("npm", None))
    assert works_on(("git", None))


@pytest.mark.parametrize(
    ("text", "bare", "named"),
    [
        *((text, False, True) for text in (".git", "./.git/", "/a/.git/b", "--git-dir=.git")),
        *(
            (text, False, True)
            for text in ("see .git.d/../.git", "rmtree('.git')", ".GIT", "'.git'")
        ),
        *(
            (text, True, False)
            for text in (".gitignore", "x.git", "git", ".git-blame", "..git", "")
        ),
        *((text, True, True) for text in (".gi*", "a/.g?t", ".*", "{a,.[g]it}", "../.*/x")),
        *((text, False, False) for text in (".gi*", "s/.*//")),
        *((text, True, False) for text in ("*", "?git", ".h*", "a.*")),
    ],
)
def test_what_may_be_a_repository_is_seen_in_a_word(text: str, bare: bool, named: bool) -> None:
    assert names(text, bare=bare) is named


@pytest.mark.parametrize(
    "line",
    [
        "git commit -m x",
        'env git commit -m "about .git"',
        "cd x && git commit; ls",
        "sh -c 'git commit -m \"x .git\"'",
        'bash -lc "cd a && git add -A"',
        "git commit -m \"$(cat <<'E'\nabout .git\nE\n)\"",
        "git commit -F - <<E\nabout .git\nE",
        "cat > a <<E\nabout .git\nE\ngit add a",
        "for f in a b; do git add $f; done",
        "if git diff --quiet; then echo none; fi",
        "cat .git/HEAD && git commit -qm x; echo .git",
        ". venv/bin/activate && git commit -m x",
        "ls | xargs -n1 git add",
        "find . -name a -exec git add {} +",
        'git --git-dir="$PWD/.git" status',
        "GIT_DIR=.git git status",
        "git submodule foreach 'git gc'",
        "sed -i 's/ .*//' a && git commit -am x",
        "git add . # not .git",
        "git status; if",
    ],
)
def test_a_line_that_runs_git_may_change_the_repository(line: str) -> None:
    assert look(line).git


@pytest.mark.parametrize(
    "line",
    [
        *("", "ls", "rm -rf .git", "mv .git x", "make release", "echo git", "python -c 'git()'"),
        *("$X commit", "bash release.sh", 'eval "$X"', "rm -rf .git; if"),
        *("git status; rm -rf .git", "git status && rm -rf .git/*", 'git gc; rm -rf "$X/.git"'),
        *("git gc; rm -rf .gi*", "git gc; rm -rf .*", "git gc; rm {a,.git}", "git gc; rm $'.git'"),
        *("X=.git; git gc; rm $X", "for f in .git; do rm $f; done; git gc", "rm .GIT; git gc"),
        *("echo x > .git/HEAD; git gc", "git status > .git/x", "> .git/x git status"),
        *("sh -c 'git status; rm -rf .git'", 'git commit -m "$(rm -rf .git)"'),
        *('eval "rm .git"; git gc', "git gc; rm .git; if"),
        *("cd .git && rm -rf *; git gc", "find .git -delete -exec git status \\;"),
        *("bash -c \"rm -rf $X/.git; git gc\"", "git submodule foreach 'rm -rf .git'"),
        *("python - <<E\nrmtree('.git')\nE\ngit gc", "git gc; python -c \"rmtree('.git')\""),
        *("f() { rm -rf .git; }; git gc; f", "git gc; ls | xargs rm -r .git"),
    ],
)  # fmt: skip
def test_a_line_that_runs_no_git_or_names_the_repository_to_others_may_not(line: str) -> None:
    assert not look(line).git
