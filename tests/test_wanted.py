"""Which MCP servers a session has, how they are reached, and what of them is secret."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from bridge.acp.schema import WorkspaceParams, read
from bridge.config import load
from bridge.core.records import Opened
from bridge.session import Session
from bridge.store import Store
from bridge.wanted import Address, Program, Unreachable, Wanted, secrets_of, wanted

CONFIG = """
mcp_wait = 3
[providers.p]
base_url = "http://127.0.0.1:9/v1"
[models.m]
provider = "p"
"""
ENVIRONMENT = {"PATH": "/bin", "TOKEN": "token-of-ours", "HTTPS_PROXY": "http://proxy:1"}


def session(folder: Path, config: str = "", sent: list[Any] | None = None) -> Session:
    file = folder / "config.toml"
    file.write_text(CONFIG + config, encoding="utf-8")
    loaded = load(str(file), ENVIRONMENT)
    opened = Opened("s", "/w", "now", "default", "m", None, "ask")
    made = Session(loaded, opened, Store(folder / "state").create(opened))
    params = read(WorkspaceParams, {"cwd": "/w", "mcpServers": sent or []})
    made.servers = tuple(params.mcp_servers)
    return made


def only(folder: Path, config: str = "", sent: list[Any] | None = None) -> Wanted:
    made = session(folder, config, sent)
    (one,) = wanted(made, ENVIRONMENT)
    made.close()
    return one


def test_a_program_of_the_editors_gets_its_values_and_none_of_our_secrets(tmp_path: Path) -> None:
    pairs = [{"name": "A_KEY", "value": "value-of-the-key"}, {"name": "PATH", "value": "/own"}]
    one = only(tmp_path, sent=[{"name": "n", "command": "/c", "args": ["a", ""], "env": pairs}])
    assert isinstance(one.reach, Program)
    assert (one.reach.argv, one.reach.cwd) == (("/c", "a", ""), "/w")
    environment = one.reach.environment
    assert (environment["A_KEY"], environment["PATH"]) == ("value-of-the-key", "/own")
    assert environment["HTTPS_PROXY"] == "http://proxy:1"
    assert "TOKEN" not in environment
    assert one.secrets == ("value-of-the-key",)
    assert (one.origin, one.wait, one.trust_read_only) == ("editor", 3, False)
    assert "value-of-the-key" not in repr(one)


@pytest.mark.parametrize(
    ("sent", "reach"),
    [
        ({"type": "http", "url": "http://h/mcp", "headers": [{"name": "A", "value": "b"}]},
         Address("http://h/mcp", {"A": "b"})),
        ({"type": "sse", "url": "http://h/sse", "headers": []},
         Unreachable("servers over SSE are not supported; give its streamable HTTP URL")),
        ({"type": "acp", "serverId": "x"},
         Unreachable('servers of type "acp" are not supported')),
    ],
)  # fmt: skip
def test_every_kind_of_server_is_reached_or_told_of(
    sent: dict[str, Any], reach: Any, tmp_path: Path
) -> None:
    assert only(tmp_path, sent=[{"name": "n", **sent}]).reach == reach


def test_a_configured_program_is_started_as_the_file_says(tmp_path: Path) -> None:
    config = """
    [mcp.own]
    command = "./run"
    args = ["x"]
    env = { MODE = "fast" }
    env_keep = ["TOKEN", "MISSING"]
    cwd = "sub"
    tools = ["a*"]
    trust_read_only = true
    wait = 0.5
    start_timeout = 7
    call_timeout = 8
    rest_after = 9
    """
    one = only(tmp_path, config)
    assert isinstance(one.reach, Program)
    assert one.reach.argv == (str(tmp_path / "run"), "x")
    assert one.reach.cwd == str(tmp_path / "sub")
    environment = one.reach.environment
    assert (environment["MODE"], environment["TOKEN"]) == ("fast", "token-of-ours")
    assert "MISSING" not in environment
    assert one.secrets == ("token-of-ours",)
    assert (one.tools, one.trust_read_only, one.wait) == (("a*",), True, 0.5)
    assert (one.start_timeout, one.call_timeout, one.origin) == (7, 8, "configuration")
    assert one.rest_after == 9


def test_a_name_is_looked_for_and_runs_in_the_sessions_folder(tmp_path: Path) -> None:
    one = only(tmp_path, '[mcp.own]\ncommand = "npx"\n')
    assert isinstance(one.reach, Program)
    assert (one.reach.argv, one.reach.cwd, one.wait) == (("npx",), "/w", 3)


@pytest.mark.parametrize(
    ("key", "reach"),
    [
        ("", Address("https://h/mcp", {"X-A": "b"})),
        ('api_key_env = "TOKEN"\n',
         Address("https://h/mcp", {"X-A": "b", "authorization": "Bearer token-of-ours"})),
        ('api_key_file = "no-such-file"\n', None),
        ('api_key_env = "UNSET"\n', None),
    ],
)  # fmt: skip
def test_a_configured_url_gets_its_key(key: str, reach: Any, tmp_path: Path) -> None:
    one = only(tmp_path, f'[mcp.own]\nurl = "https://h/mcp"\nheaders = {{ X-A = "b" }}\n{key}')
    if reach is None:
        assert isinstance(one.reach, Unreachable)
        assert "api_key_file" in one.reach.why or "UNSET" in one.reach.why
    else:
        assert one.reach == reach
        assert ("token-of-ours" in one.secrets) == ("TOKEN" in key)


def test_a_server_of_the_editors_wins_as_a_whole(tmp_path: Path) -> None:
    config = '[mcp.a]\ncommand = "x"\ntrust_read_only = true\n[mcp.b]\ncommand = "y"\n'
    sent: list[Any] = [
        {"name": "c", "command": "/c", "args": []},
        {"name": "a", "command": "/a", "args": []},
    ]
    made = session(tmp_path, config, sent)
    found = wanted(made, os.environ)
    made.close()
    assert [one.name for one in found] == ["a", "b", "c"]
    assert (found[0].origin, found[0].trust_read_only) == ("editor", False)


@pytest.mark.parametrize(
    ("values", "secrets"),
    [
        ({"A_TOKEN": "long-enough", "PLAIN": "long-enough-too"}, ("long-enough",)),
        ({"Authorization": "Bearer long-enough"}, ("Bearer long-enough", "long-enough")),
        ({"KEY": "short"}, ()),
        ({"Cookie": "a=b; c=d-e-f"}, ("a=b; c=d-e-f",)),
    ],
)
def test_what_is_secret_is_known_by_its_name(
    values: dict[str, str], secrets: tuple[str, ...]
) -> None:
    assert secrets_of(values) == secrets


def test_values_that_occur_by_chance_are_no_secrets(tmp_path: Path) -> None:
    given = {**ENVIRONMENT, "EMPTY": "", "ONE": "1", "LONG": "long-enough"}
    kept = '[mcp.own]\ncommand = "x"\nenv_keep = ["EMPTY", "ONE", "LONG", "UNSET"]\n'
    made = session(tmp_path, kept)
    (one,) = wanted(made, given)
    made.close()
    assert one.secrets == ("long-enough",)
    assert one.scrubbed("1 is long-enough") == "1 is [redacted]"
    assert isinstance(one.reach, Program)
    assert (one.reach.environment["EMPTY"], one.reach.environment["ONE"]) == ("", "1")


def test_of_two_secrets_that_begin_alike_nothing_is_left() -> None:
    one = Wanted("s", Address("s", {}), "editor", ("long-enough", "long-enough-and-longer"))
    assert one.scrubbed("a long-enough-and-longer b") == "a [redacted] b"


def test_without_a_place_for_temporary_files_no_program_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    for one in (
        only(tmp_path, sent=[{"name": "n", "command": "/c", "args": [], "env": []}]),
        only(tmp_path, "[mcp.n]\ncommand = '/c'\n"),
    ):
        assert isinstance(one.reach, Unreachable)
        assert "no folder for temporary files" in one.reach.why
    far = only(tmp_path, "[mcp.n]\nurl = 'http://127.0.0.1:9'\n")
    assert isinstance(far.reach, Address)
