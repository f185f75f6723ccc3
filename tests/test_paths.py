import pytest

from tools import paths


@pytest.mark.parametrize(
    ("path", "absolute", "shown"),
    [
        ("a.txt", "/work/a.txt", "a.txt"),
        ("./x/../a.txt", "/work/a.txt", "a.txt"),
        ("/work/sub/a.txt", "/work/sub/a.txt", "sub/a.txt"),
        ("..name", "/work/..name", "..name"),
        ("../up.txt", "/up.txt", "/up.txt"),
        ("/workshop/a", "/workshop/a", "/workshop/a"),
        ("//etc/hosts", "/etc/hosts", "/etc/hosts"),
        ("../../../..", "/", "/"),
        ("/work", "/work", "."),
        ("a\n\x1b[31m\u202eb", "/work/a\n\x1b[31m\u202eb", "a\ufffd\ufffd[31m\ufffdb"),
        (
            "na\u00efve \U0001f600.txt",
            "/work/na\u00efve \U0001f600.txt",
            "na\u00efve \U0001f600.txt",
        ),
    ],
)
def test_a_path_is_taken_from_the_working_directory(path: str, absolute: str, shown: str) -> None:
    assert (paths.absolute(path, "/work"), paths.shown(path, "/work")) == (absolute, shown)


def test_in_the_root_every_path_is_inside() -> None:
    assert paths.shown("/etc/hosts", "/") == "etc/hosts"


@pytest.mark.parametrize("path", ["", "  ", "a\nb", "\u202eb"])
def test_a_name_that_cannot_be_shown_is_no_place(path: str) -> None:
    assert paths.places(path, "/work") == ()


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("a\0b", "character"),
        ("a\ud800", "character"),
        ("~", "~ stands for no folder"),
        ("~/a", "~ stands for no folder"),
        ("~user/a", "~ stands for no folder"),
        ("file:///a", "plain path"),
        ("file:a", "plain path"),
        ("https://a/b", "plain path"),
        ("C:\\x", "plain path"),
        ("c:/x", "plain path"),
        ("~$letter.docx", ""),
        ("a:b", ""),
        ("a/~/b", ""),
        ("a\nb", ""),
        ("x" * 5000, ""),
    ],
)
def test_what_is_no_path_is_refused(path: str, wrong: str) -> None:
    fault = paths.fault(path)
    assert wrong in fault
    assert bool(wrong) == bool(fault)


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("/w/.env", True),
        ("/w/.ENV", True),
        ("/w/.env.production", True),
        ("/w/.env.example", False),
        ("/w/.env.sample", False),
        ("/w/.env.local.template", False),
        ("/w/.environment", False),
        ("/w/id_rsa", True),
        ("/w/id_ed25519", True),
        ("/w/id_rsa.pub", False),
        ("/w/id_generator.py", False),
        ("/w/server.pem", True),
        ("/w/a.key", True),
        ("/w/a.p12", True),
        ("/w/a.kdbx", True),
        ("/w/a.keys", False),
        ("/h/.netrc", True),
        ("/h/.npmrc", True),
        ("/h/.pypirc", True),
        ("/h/.git-credentials", True),
        ("/h/credentials", True),
        ("/h/credentials.md", False),
        ("/h/.aws/config", True),
        ("/h/.SSH/known_hosts", True),
        ("/h/.gnupg/x/y", True),
        ("/h/.kube/config", True),
        ("/h/.docker/config.json", True),
        ("/h/docker/config.json", False),
        ("/h/.config/responses-acp/config.toml", True),
        ("/w/notes.txt", False),
        ("/w/.e\u200dnv", True),
    ],
)
def test_names_that_hold_credentials_are_known(path: str, secret: bool) -> None:
    assert paths.is_secret(path) is secret


@pytest.mark.parametrize(
    ("path", "protected"),
    [
        ("/w/.git/hooks/pre-commit", True),
        ("/w/.GIT/config", True),
        ("/w/.g\u200cit/config", True),
        ("/w/.git", True),
        ("/w/.gitignore", False),
        ("/w/.vscode/tasks.json", True),
        ("/w/.idea/x.xml", True),
        ("/w/.envrc", True),
        ("/w/.mcp.json", True),
        ("/w/sub/.responses-acp.toml", True),
        ("/w/src/main.py", False),
    ],
)
def test_names_that_make_programs_run_code_are_known(path: str, protected: bool) -> None:
    assert paths.is_protected(path) is protected


@pytest.mark.parametrize(
    ("path", "off_limits"),
    [
        ("/proc/self/environ", True),
        ("/proc/1234/mem", True),
        ("/proc/1234/task/1/fd/3", True),
        ("/proc/thread-self/maps", True),
        ("/proc/1234", True),
        ("/proc/cpuinfo", False),
        ("/w/proc/1/environ", False),
    ],
)
def test_the_inside_of_processes_is_off_limits(path: str, off_limits: bool) -> None:
    assert paths.is_off_limits(path) is off_limits
