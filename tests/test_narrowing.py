"""What a project's and a machine's file may change, and what they may not."""

import os
from pathlib import Path

import pytest

from bridge.config import Config, load
from bridge.errors import ConfigError
from bridge.narrowing import PROJECT_FILE, Narrowed, narrowed

USER = """
default_mode = "default"
permission = "workspace-write"

[permissions]
allow = ["shell npm test"]
ask = ["shell git push"]
deny = ["read secrets/**"]

[providers.p]
base_url = "https://p.example/v1"

[models.a]
provider = "p"
[models.b]
provider = "p"
"""


def user(folder: Path, text: str = USER) -> Config:
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8")
    return load(str(file), {})


def in_project(folder: Path, text: str) -> Narrowed:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (project / PROJECT_FILE).write_text(text, encoding="utf-8")
    return narrowed(user(folder), None, str(project))


def told(found: Narrowed) -> list[str]:
    return [f"{rule.sort} {rule.text} ({rule.source})" for rule in found.rules]


OWN = [
    "deny read secrets/** (config.toml)",
    "ask shell git push (config.toml)",
    "allow shell npm test (config.toml)",
]


def test_without_such_files_the_user_s_settings_hold(tmp_path: Path) -> None:
    config = user(tmp_path)
    found = narrowed(config, tmp_path / "none" / "config.toml", str(tmp_path / "project"))
    assert (found.config, told(found), found.remarks) == (config, OWN, ())


def test_what_narrows_is_taken(tmp_path: Path) -> None:
    found = in_project(
        tmp_path,
        '\ufeffdefault_model = "b"\ndefault_mode = "plan"\npermission = "ask"\n'
        '[permissions]\nask = ["edit docs/**"]\ndeny = ["shell git push"]\n',
    )
    config = found.config
    assert (config.default_model, config.default_mode, config.permission) == ("b", "plan", "ask")
    ours = [f"deny shell git push ({PROJECT_FILE})", f"ask edit docs/** ({PROJECT_FILE})"]
    assert told(found) == [*OWN, *ours]
    assert found.remarks == ()


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ('permission = "danger-full-access"', ":1: permission is left out: it would widen"),
        ('\ndefault_model = "c"', ":2: default_model is left out: your config.toml has no such"),
        ('[permissions]\nallow = ["shell"]', ":2: permissions.allow is left out: only your own"),
        ('[providers.p]\nbase_url = "https://evil.example"', ":1: providers is left out: only"),
        ('[models.a]\nprovider = "p"\nmodel = "x"', ":1: models is left out: only your own"),
        ("[sandbox]\nnetwork = true", ":1: sandbox is left out: only your own config.toml may"),
        ('[mcp.x]\ncommand = "./evil"', ":1: mcp is left out: only your own config.toml may set"),
        ("goal_rounds = 99", ":1: goal_rounds is left out: only your own config.toml may set it"),
        ("max_turn_requests = 'x'", ":1: max_turn_requests is left out: only your own"),
    ],
)
def test_what_would_widen_is_left_out_and_told(tmp_path: Path, text: str, remark: str) -> None:
    found = in_project(tmp_path, text)
    assert (found.config, told(found)) == (user(tmp_path), OWN)
    (said,) = found.remarks
    assert said.removeprefix(str(tmp_path / "project" / PROJECT_FILE)).startswith(remark)


def test_a_wider_mode_is_left_out_too(tmp_path: Path) -> None:
    (tmp_path / PROJECT_FILE).write_text('default_mode = "default"', encoding="utf-8")
    config = user(tmp_path, USER.replace('"default"', '"plan"'))
    found = narrowed(config, None, str(tmp_path))
    assert found.config.default_mode == "plan"
    assert "default_mode is left out" in found.remarks[0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = ", ":1: not TOML"),
        ('permission = "none"', ":1: permission must be"),
        ("\npermision = 'ask'", ":2: permision is not known; nearest: permission"),
        ("[permissions]\ndenny = []", ":2: permissions.denny is not known; nearest: deny"),
        (
            "[permissions]\ndeny = ['shell ls', 'write x']",
            ":2: permissions.deny must hold rules, but number 2 begins with no tool of rules",
        ),
        ("[permissions]\nask = 'shell ls'", ":2: permissions.ask must be a list"),
        ("deny = ['shell ls']", ":1: deny is not known; it belongs in [permissions]"),
    ],
)
def test_a_mistake_in_what_narrows_is_an_error(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        in_project(tmp_path, text)
    said = str(caught.value).removeprefix(str(tmp_path / "project" / PROJECT_FILE))
    assert said.startswith(complaint)


def test_a_file_that_is_no_plain_file_of_text_is_an_error(tmp_path: Path) -> None:
    config, file = user(tmp_path), tmp_path / PROJECT_FILE

    def check(complaint: str) -> None:
        with pytest.raises(ConfigError) as caught:
            narrowed(config, None, str(tmp_path))
        assert complaint in str(caught.value)

    file.symlink_to("config.toml")
    check("make it a plain file, or remove it")
    file.unlink()
    os.mkfifo(file)
    check("not a plain file of settings")
    file.unlink()
    file.mkdir()
    check("not a plain file of settings")
    file.rmdir()
    file.write_bytes(b"# \xff\n")
    check("not UTF-8")
    file.write_bytes(b"#" * 300_000)
    check("not a plain file of settings")


def test_the_machine_s_file_narrows_first_and_the_project_s_file_no_less(tmp_path: Path) -> None:
    machine = tmp_path / "etc.toml"
    machine.write_text(
        'permission = "ask"\n[permissions]\ndeny = ["shell curl"]\nallow = ["shell"]\n',
        encoding="utf-8",
    )
    (tmp_path / PROJECT_FILE).write_text('permission = "workspace-write"', encoding="utf-8")
    found = narrowed(user(tmp_path), machine, str(tmp_path))
    assert found.config.permission == "ask"
    assert told(found) == [*OWN, f"deny shell curl ({machine})"]
    assert [one.split(" is left out")[0].rpartition(" ")[2] for one in found.remarks] == [
        "permissions.allow",
        "permission",
    ]
