"""Where things belong on Linux is where platformdirs, which is asked elsewhere, finds them."""

import os
import sys
from pathlib import Path

import pytest
from platformdirs import PlatformDirs

from bridge import folders

ENVIRONMENTS: list[dict[str, str]] = [
    {},
    {"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_CONFIG_DIRS": "/d"},
    {"XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_CONFIG_DIRS": ""},
    {"XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "./s", "XDG_CONFIG_DIRS": "d"},
    {"XDG_CONFIG_DIRS": "d:/e:/f"},
    {"XDG_CONFIG_DIRS": ":/e"},
    {"XDG_CONFIG_HOME": "~/c"},
    {"HOME": ""},
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="platformdirs is asked here")
@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_folders_are_those_of_platformdirs(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    known = PlatformDirs("responses-acp", appauthor=False)
    assert folders.user_folder(os.environ) == known.user_config_path
    assert folders.state_folder() == known.user_state_path
    assert folders.machine_file() == known.site_config_path / "config.toml"


def test_elsewhere_platformdirs_is_asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "freebsd")
    known = PlatformDirs("responses-acp", appauthor=False)
    assert folders.user_folder({}) == known.user_config_path
    assert folders.user_folder({}) == home / ".config" / "responses-acp"
    assert folders.state_folder({}) == known.user_state_path
    assert folders.machine_file({}) == known.site_config_path / "config.toml"


def test_nothing_belongs_into_a_home_that_is_not_there(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home / "nobody"))
    assert folders.default_file({}) is None
    assert folders.kept_file({}) is None
    assert folders.state_folder({}) is None
    assert folders.default_file({"XDG_CONFIG_HOME": "/c"}) == Path("/c/responses-acp/config.toml")
    assert folders.kept_file({"XDG_CONFIG_HOME": "/c"}) == Path("/c/responses-acp/keys.json")


def test_a_home_without_an_absolute_name_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", ".")
    assert folders.default_file({}) is None


def test_who_has_no_home_anywhere_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)  # nobody the system knows
    assert folders.default_file({}) is None
    assert folders.state_folder({}) is None
