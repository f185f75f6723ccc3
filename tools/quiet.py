"""Programs that run none of the words they are given, as far as that is known.

It looks at no disk and at no environment.

Rule 1: whoever is not here may run a word of its command.
Rule 2: an option that names something to run, or to obey, ends that.
"""

from collections.abc import Mapping

from tools.argv import Argv, Word
from tools.programs import SAFE, goes_astray, is_plain_edit, program

_UNKNOWN = Word("*", pattern=True)


def runs_none(command: Argv) -> bool:
    """No word of the command is run, whatever the program does otherwise."""
    words = [_UNKNOWN if word is None else Word(word) for word in command]
    name = program(words[0].text).casefold()
    judge = SAFE.get(name)
    if judge is not None and judge(words[1:]):
        return True
    if name == "sed":
        return is_plain_edit(words[1:])
    verb = next((word.text for word in words[1:] if not word.text.startswith("-")), "")
    return (name in _PROGRAMS or verb in _VERBS.get(name, ())) and not goes_astray(words, 1)


_PROGRAMS = frozenset(
    {
        *("apropos", "base64", "black", "bunzip2", "bzip2", "chgrp", "chmod", "chown", "cksum"),
        *("cmp", "column", "comm", "cp", "curl", "dd", "dpkg", "expand", "export", "fd", "fdfind"),
        *("fmt", "fold", "free", "groups", "gunzip", "gzip", "hexdump", "host", "hostname", "id"),
        *("isort", "jobs", "join", "jq", "kill", "killall", "ln", "local", "lsof", "man", "md5sum"),
        *("mkdir", "mkfifo", "mktemp", "mv", "mypy", "od", "paste", "patch", "pgrep", "ping"),
        *("pkill", "printenv", "ps", "pushd", "pyright", "pytest", "rg", "rm", "rmdir", "rsync"),
        *("ruff", "seq", "set", "sha1sum", "sha256sum", "shellcheck", "shred", "shuf", "sleep"),
        *("sort", "strings", "sum", "tac", "tar", "tee", "top", "touch", "truncate", "uname"),
        *("unalias", "unset", "unxz", "unzip", "uptime", "wait", "wget", "whatis", "whereis"),
        *("whoami", "xxd", "xz", "yq", "zip", "zstd"),
    }
)

_OF_MANAGERS = frozenset(
    {
        *("add", "build", "ci", "clean", "download", "freeze", "get", "help", "i", "images"),
        *("info", "init", "inspect", "install", "list", "lock", "logs", "ls", "outdated"),
        *("ps", "publish", "pull", "push", "remove", "rm", "rmi", "search", "show", "stop"),
        *("sync", "test", "tree", "uninstall", "update", "upgrade", "view", "why"),
    }
)

_VERBS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            *("apk", "apt", "apt-get", "aptitude", "brew", "bun", "bundle", "cargo", "conda"),
            *("dnf", "docker", "gem", "go", "helm", "kubectl", "mamba", "npm", "pdm", "pip"),
            *("pip3", "pipenv", "pipx", "pnpm", "podman", "poetry", "uv", "yarn", "yum"),
        ),
        _OF_MANAGERS,
    ),
    "git": frozenset(
        {
            *("add", "am", "apply", "archive", "blame", "branch", "bundle", "cat-file", "checkout"),
            *("cherry", "cherry-pick", "clean", "commit", "describe", "diff", "fetch", "fsck"),
            *("format-patch", "gc", "grep", "init", "log", "ls-files", "ls-remote", "ls-tree"),
            *("merge", "merge-base", "mv", "name-rev", "notes", "pull", "push", "rebase"),
            *("reflog", "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog"),
            *("show", "stash", "status", "switch", "tag", "worktree"),
        }
    ),
}
"""By program: its commands of which the same is known."""
