"""The configuration: every setting, every complaint, and the example that shows them all."""

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridge.complaints import line_numbers
from bridge.config import (
    KEYS,
    KINDS,
    Config,
    Endpoint,
    Model,
    Provider,
    Sandbox,
    Server,
    Shell,
    default_file,
    load,
)
from bridge.errors import ConfigError, LoginRequired
from bridge.fields import KEY_SOURCES, is_local

EXAMPLE = Path(__file__).parent.parent / "config.example.toml"

PROVIDER = '[providers.p]\nbase_url = "https://p.example/v1"\n'
MODEL = '[models.m]\nprovider = "p"\n'
SECRET = "sk-live-0123456789abcdef"  # a canary: no complaint may hold it


def config(folder: Path, text: str) -> Config:
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8")
    return load(str(file), {})


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config(folder, text)
    return str(caught.value).removeprefix(str(folder / "config.toml"))


def provider(**settings: Any) -> Provider:
    return Provider.model_validate({"base_url": "https://p.example/v1", **settings})


# -- a file --------------------------------------------------------------------------------------


def test_a_short_file_gets_every_default(tmp_path: Path) -> None:
    found = config(tmp_path, PROVIDER + MODEL)
    model = found.models["m"]
    assert (found.default_model, found.default_mode, found.permission) == (
        "m",
        "default",
        "workspace-write",
    )
    assert (found.max_turn_requests, found.goal_rounds, found.sandbox.env_keep) == (200, 20, ())
    assert (model.model, model.name, model.efforts, model.effort) == ("m", None, (), None)
    assert (model.replay, model.replay_reasoning) == ("portable", None)
    assert (model.strict, model.parallel_tool_calls, model.images) == (None, None, False)
    assert (model.omit, model.price, found.providers["p"].quirks) == ((), None, None)
    assert found.providers["p"].endpoint(None) == Endpoint(
        base_url="https://p.example/v1",
        is_local=False,
        headers={},
        query={},
        ca_file=None,
        connect_timeout=10,
        first_event_timeout=300,
        idle_timeout=300,
        max_wait=60,
        max_retries=4,
    )


def test_the_first_model_is_the_default_one(tmp_path: Path) -> None:
    assert config(tmp_path, PROVIDER + '[models.b]\nprovider = "p"\n' + MODEL).default_model == "b"


def test_a_model_may_have_another_name_on_the_wire(tmp_path: Path) -> None:
    assert config(tmp_path, PROVIDER + MODEL + 'model = "org/m"\n').models["m"].model == "org/m"


def test_a_byte_order_mark_and_dos_line_ends_are_fine(tmp_path: Path) -> None:
    assert config(tmp_path, "\ufeff" + (PROVIDER + MODEL).replace("\n", "\r\n")).default_model


def test_files_are_found_from_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("Be brief.", encoding="utf-8")
    text = PROVIDER + 'ca_file = "ca.pem"\n' + MODEL + 'system_prompt_file = "prompt.md"\n'
    found = config(tmp_path, text)
    assert found.providers["p"].ca_file == str(tmp_path / "ca.pem")
    assert found.models["m"].system_prompt == "Be brief."


def test_a_program_is_found_from_the_folder_of_the_file_where_it_is_a_path(tmp_path: Path) -> None:
    def found(program: str) -> tuple[str, ...] | None:
        text = f'{PROVIDER}api_key_command = ["{program}", "./x", ""]\n{MODEL}'
        return config(tmp_path, text).providers["p"].api_key_command

    assert found("pass") == ("pass", "./x", "")
    assert found("bin/key") == (str(tmp_path / "bin/key"), "./x", "")
    assert found("/bin/key") == ("/bin/key", "./x", "")


def test_a_home_path_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert provider(ca_file="~/ca.pem").ca_file == str(tmp_path / "ca.pem")
    (tmp_path / "c.toml").write_text(PROVIDER + MODEL, encoding="utf-8")
    assert load("~/c.toml", {}).default_model == "m"


# -- what is wrong with a file -------------------------------------------------------------------

TWO = PROVIDER + MODEL


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # names
        ("goal_round = 3\n" + TWO, ":1: goal_round is not known; nearest: goal_rounds"),
        (TWO + "efort = 3\n", ":5: models.m.efort is not known; nearest: effort"),
        ("[providers.p]\nbase_url = 'http://localhost/v1'\n[models.m]\nprovidr = 'p'\n",
         ":4: models.m.providr is not known; nearest: provider (and 1 more)"),
        (
            TWO + "goal_rounds = 3\n",
            ":5: models.m.goal_rounds is not known; it belongs at the top of the file, before "
            "the first table",
        ),
        ("effort = 3\n" + TWO, ":1: effort is not known; it belongs in [models.NAME]"),
        (TWO + "env_keep = []\n", ":5: models.m.env_keep is not known; it belongs in [sandbox]"),
        (TWO + "env_from = 'agent'\n", ":5: models.m.env_from is not known; it belongs in [shell]"),
        ("[sandbox]\nzzz = 1\n" + TWO, ":2: sandbox.zzz is not known; known are: mode, network, "
         "git, require, writable_roots, env_keep"),
        (TWO + "system_prompt = 'x'\n", ":5: models.m.system_prompt is not known; nearest: "
         "system_prompt_file"),
        (TWO + f'{"x" * 41} = 1\n', ":5: models.m.(a name of 41 characters) is not known; "
         "known are: " + ", ".join(KEYS["models"])),
        ('[providers."a b"]\nx_y = 1\nbase_url = "https://h"\n' + MODEL,
         ':2: providers."a b".x_y is not known; known are: ' + ", ".join(KEYS["providers"])),
        # keys in the file
        (
            PROVIDER + f'api_key = "{SECRET}"\n' + MODEL,
            ":3: providers.p.api_key is not known; a key does not belong in this file, say where "
            f"it is: {KEY_SOURCES}",
        ),
        (
            PROVIDER + f'api_key_env = "{SECRET}"\n' + MODEL,
            ":3: providers.p.api_key_env must be the name of an environment variable, not what it "
            "holds",
        ),
        (
            PROVIDER + f'headers = {{ Authorization = "Bearer {SECRET}" }}\n' + MODEL,
            f":3: providers.p.headers must not hold a key; use {KEY_SOURCES}, and key_header",
        ),
        (
            PROVIDER + f'headers = {{ X-A = "{SECRET}\\n" }}\n' + MODEL,
            ":3: providers.p.headers must hold header names and values of printable ASCII "
            "characters",
        ),
        (
            PROVIDER + 'api_key_env = "A"\napi_key_file = "b"\n' + MODEL,
            ":4: providers.p.api_key_file and api_key_env name two sources of one key; keep one of "
            "them",
        ),
        (
            PROVIDER + 'api_key_command = ["a"]\napi_key_env = "A"\n' + MODEL,
            ":3: providers.p.api_key_command and api_key_env name two sources of one key; keep one "
            "of them",
        ),
        # values
        (PROVIDER + "api_key_command = 'az token'\n" + MODEL, ":3: providers.p.api_key_command "
         "must be a list"),
        (PROVIDER + "api_key_command = []\n" + MODEL, ":3: providers.p.api_key_command must not "
         "be empty"),
        (PROVIDER + "api_key_command = ['']\n" + MODEL, ":3: providers.p.api_key_command must "
         "begin with the name of a program"),
        (PROVIDER + 'api_key_command = ["a", "\\u0000"]\n' + MODEL, ":3: providers.p."
         "api_key_command must not hold the character NUL"),
        (TWO + f"context_window = '{SECRET}'\n", ":5: models.m.context_window must be a whole "
         "number"),
        (TWO + "context_window = 1.5\n", ":5: models.m.context_window must be a whole number"),
        (TWO + "context_window = true\n", ":5: models.m.context_window must be a whole number"),
        (TWO + "context_window = 0\n", ":5: models.m.context_window must be greater than 0"),
        ("goal_rounds = -1\n" + TWO, ":1: goal_rounds must be at least 0"),
        ("max_turn_requests = 0\n" + TWO, ":1: max_turn_requests must be greater than 0"),
        (PROVIDER + "idle_timeout = -1\n" + MODEL, ":3: providers.p.idle_timeout must be greater "
         "than 0"),
        (PROVIDER + "idle_timeout = inf\n" + MODEL, ":3: providers.p.idle_timeout must be a finite "
         "number"),
        (PROVIDER + "idle_timeout = '5'\n" + MODEL, ":3: providers.p.idle_timeout must be a "
         "number"),
        (TWO + "images = 1\n", ":5: models.m.images must be true or false"),
        (TWO + "name = 1\n", ":5: models.m.name must be a text in quotes"),
        (TWO + "name = ''\n", ":5: models.m.name must not be empty"),
        (TWO + "efforts = 'low'\n", ":5: models.m.efforts must be a list"),
        (TWO + "efforts = [1]\n", ":5: models.m.efforts.0 must be a text in quotes"),
        (TWO + "extra_body = 1\n", ":5: models.m.extra_body must be a table"),
        (TWO + "extra_body = { day = 2026-01-01 }\n", ":5: models.m.extra_body.day has a value of "
         "the wrong kind"),
        (TWO + "extra_body = { stream = false }\n", ":5: models.m.extra_body must not set stream, "
         "which every request needs as it is"),
        (TWO + "omit = ['store', 'stream']\n", ":5: models.m.omit must not hold stream, which "
         "every request needs"),
        (PROVIDER + "quirks = 'llama-cpp'\n" + MODEL, ":3: providers.p.quirks must be the name "
         "of a kind of server; nearest: llama.cpp"),
        (PROVIDER + "quirks = 'q'\n" + MODEL, ":3: providers.p.quirks must be the name of a "
         "kind of server; known are: " + ", ".join(KINDS)),
        (TWO + "price = { input = 1, ouput = 2 }\n", ":5: models.m.price.ouput is not known; "
         "nearest: output (and 1 more)"),
        (TWO + "[models.m.price]\ninput = 1\noutput = 2\ncached = 1\n",
         ":8: models.m.price.cached is not known; nearest: cached_input"),
        (TWO + "cached_input = 1\n", ":5: models.m.cached_input is not known; it belongs in "
         "[models.NAME.price]"),
        (TWO + "price = { input = -1, output = 2 }\n", ":5: models.m.price.input must be at least "
         "0"),
        (TWO + "price = { input = 1e10, output = 2 }\n", ":5: models.m.price.input must be at most "
         "1000000000"),
        ("max_cost = 0\n" + TWO, ":1: max_cost must be greater than 0"),
        ("max_cost = -1\n" + TWO, ":1: max_cost must be greater than 0"),
        ("max_cost = nan\n" + TWO, ":1: max_cost must be a finite number"),
        ("max_cost = 'much'\n" + TWO, ":1: max_cost must be a number"),
        ("max_tokens_total = 0\n" + TWO, ":1: max_tokens_total must be greater than 0"),
        (TWO + "price = { input = 1, output = 2, currency = 'Euro' }\n", ":5: "
         'models.m.price.currency must be a code of three capital letters, such as "USD"'),
        ("permission = 'all'\n" + TWO, ":1: permission must be 'ask', 'workspace-write' or "
         "'danger-full-access'"),
        ("default_mode = 'act'\n" + TWO, ":1: default_mode must be 'default' or 'plan'"),
        (TWO + "effort = 'low'\n", ":5: models.m.effort must be one of efforts; add it there, or "
         "change it"),
        (TWO + "system_prompt_file = 'none.md'\n", ":5: models.m.system_prompt_file names a file "
         "that cannot be read: No such file or directory"),
        # tables
        ("models = 1\n" + PROVIDER, ":1: models must be a table"),
        (PROVIDER, ": models is missing"),
        (PROVIDER + "[models]\n", ":3: models must not be empty"),
        (PROVIDER + "[models]\nm = 1\n", ":4: models.m must be a table"),
        ("[providers]\n" + MODEL, ":1: providers must not be empty"),
        (PROVIDER + "[models.m]\n", ":3: models.m.provider is missing"),
        (PROVIDER + "[models.m]\nprovider = 'q'\n", ":4: models.m.provider must be the NAME of a "
         "[providers.NAME] table; known are: p"),
        ("default_model = 'mm'\n" + TWO, ":1: default_model must be the NAME of a [models.NAME] "
         "table; nearest: m"),
        ("a = 1\n" + TWO + "b = 1\n", ":1: a is not known; known are: " + ", ".join(KEYS[""])
         + " (and 1 more)"),
        # MCP servers
        (TWO + "[mcp.s]\n", ":5: mcp.s needs one of command, a program to start, and url, a server "
         "that runs already"),
        (TWO + "[mcp.s]\ncommand = 'c'\nurl = 'https://h'\n", ":5: mcp.s needs one of command, a "
         "program to start, and url, a server that runs already"),
        (TWO + "[mcp.s]\nurl = 'http://h.example/mcp'\n", ":6: mcp.s.url must use https; only "
         "local and private hosts may be reached by http"),
        (TWO + "[mcp.s]\nurl = 'https://h/mcp'\napi_key_env = 'A'\napi_key_file = 'b'\n",
         ":8: mcp.s.api_key_file and api_key_env name two sources of one key; keep one of them"),
        (TWO + "[mcp.s]\ncommand = ''\n", ":6: mcp.s.command must not be empty"),
        (TWO + "[mcp.s]\ncommand = 'c'\nwait = -1\n", ":7: mcp.s.wait must be at least 0"),
        (TWO + "[mcp.s]\ncommand = 'c'\nmcp_wait = 1\n", ":7: mcp.s.mcp_wait is not known; it "
         "belongs at the top of the file, before the first table"),
        # not TOML
        ("\n\ngoal_rounds 3\n", ":3: not TOML: Expected '=' after a key in a key/value pair"),
        ("a = [", ":1: not TOML: Invalid value"),
        ("a = " + "[" * 2000, ": not TOML: it holds a number too long or tables too deep"),
        ("a = " + "9" * 5000, ": not TOML: it holds a number too long or tables too deep"),
    ],
)  # fmt: skip
def test_a_complaint_names_line_key_and_remedy(text: str, expected: str, tmp_path: Path) -> None:
    assert complaint(tmp_path, text) == expected
    assert SECRET not in expected


def test_a_file_that_is_not_utf8_is_named_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"a = 1\nb = '\xe9'\n")
    with pytest.raises(ConfigError, match=r"config.toml:2: not UTF-8"):
        load(str(file), {})
    (tmp_path / "prompt.md").write_bytes(b"\xe9")
    text = TWO + "system_prompt_file = 'prompt.md'\n"
    assert "names a file that is not UTF-8 text" in complaint(tmp_path, text)


def test_a_given_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.toml: No such file or directory; create it"):
        load(str(tmp_path / "none.toml"), {"OPENAI_API_KEY": "k"})
    with pytest.raises(ConfigError, match=r"Is a directory"):
        load(str(tmp_path), {})


def test_a_path_without_a_home_is_explained() -> None:
    with pytest.raises(ConfigError, match=r"give --config an absolute path"):
        load("~nobody-of-this-name/c.toml", {})
    with pytest.raises(ValueError, match=r"there is no home directory"):
        provider(ca_file="~nobody-of-this-name/ca.pem")


# -- lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\n\nb = 2", ("b",), 3),
        ("[t]\na = 1\n[u]\na = 2", ("u", "a"), 4),
        ("[t.'x.y'.\"z\"]\n a . b = 1", ("t", "x.y", "z", "a", "b"), 2),
        ("[[t]]\na = 1\n[[t]]\na = 2", ("t", "a"), 2),
        ('x = """\n[t]\na = 1\n\\""""""\nb = 2', ("b",), 5),
        ("x = '''\na = 1 ''\n'''\nb = 2", ("b",), 4),
        ('x = "#[{"  # [ {\nb = 2', ("b",), 2),
        ("x = '[\"'\nb = 2", ("b",), 2),
        ("x = [ # ]\n 1,\n { a = [2,\n] }\n]\nb = 2", ("b",), 6),
        ("x = 1\r\n\r\nb = 2\r\n", ("b",), 3),
    ],
)
def test_the_line_of_a_key_is_found(text: str, path: tuple[str, ...], line: int) -> None:
    assert line_numbers(text)[path] == line


def test_what_stands_inside_of_a_value_is_no_key() -> None:
    text = 'x = """\n[t]\na = 1\n"""\ny = [\n[1],\n]\nz = { b = 1 }\n'
    assert line_numbers(text) == {("x",): 1, ("y",): 5, ("z",): 8}


# -- hosts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/v1",
        "HTTPS://api.example.com",
        "http://localhost:8080/v1",
        "http://127.0.0.1:8080/v1",
        "http://[::1]:8080/v1",
        "http://10.1.2.3/v1",
        "http://192.168.0.9/v1",
        "http://100.64.0.9/v1",
        "http://[fd00::1]/v1",
        "http://gpu-box:8000/v1",
        "http://printer.local/v1",
        "http://model.lan/v1",
        "https://8.8.8.8/v1",
    ],
)
def test_a_url_is_taken(url: str) -> None:
    assert provider(base_url=url + "/").base_url == url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://api.example.com/v1", "must use https"),
        ("http://8.8.8.8/v1", "must use https"),
        ("http://[::ffff:8.8.8.8]/v1", "must use https"),
        ("http://localhost.example.com/v1", "must use https"),
        ("http://134744072/v1", "unusual form"),
        ("http://0x8080808/v1", "unusual form"),
        ("http://010.8.8.8/v1", "unusual form"),
        ("https://user:pass@h.example/v1", "must not hold a user or password"),
        ("http://localhost@h.example/v1", "must not hold a user or password"),
        ("https://h.example/v1#x", "must end with the path"),
        ("https://h.example/v1?api-version=1", "must end with the path"),
        ("https://h.example/v1/responses", "must end before /responses"),
        ("file:///etc/passwd", "must begin with https://HOST"),
        ("api.example.com/v1", "must begin with https://HOST"),
        ("https:///v1", "must begin with https://HOST"),
        ("https://h.example:99999/v1", "is not a URL"),
        ("https://[::1/v1", "is not a URL"),
        ("https://h.exa mple/v1", "plain characters"),
        ("https://h.example\\@evil.example/v1", "plain characters"),
        ("https://h\u00f6st.example/v1", "plain characters"),
        ("", "plain characters"),
    ],
)
def test_a_url_is_refused(url: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        provider(base_url=url)


def test_only_local_hosts_may_be_silent_for_any_time() -> None:
    local = provider(base_url="http://127.0.0.1:8080/v1").endpoint(None)
    assert (local.is_local, local.first_event_timeout) == (True, None)
    patient = provider(base_url="http://127.0.0.1:8080/v1", first_event_timeout=9)
    assert patient.endpoint(None).first_event_timeout == 9
    assert not is_local("h.example")


# -- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key_header", "expected"),
    [
        ("authorization", {"X-A": "b", "authorization": f"Bearer {SECRET}"}),
        ("api-key", {"X-A": "b", "api-key": SECRET}),
    ],
)
def test_the_key_travels_in_its_header(key_header: str, expected: dict[str, str]) -> None:
    given = provider(api_key_env="K", key_header=key_header, headers={"X-A": "b"})
    endpoint = given.endpoint(SECRET)
    assert endpoint.headers == expected
    assert SECRET not in repr(endpoint)


@pytest.mark.parametrize("environment", [{}, {"K": ""}, {"K": " \n"}])
def test_a_missing_key_is_a_missing_login(environment: dict[str, str]) -> None:
    given = provider(api_key_env="K")
    assert given.key(environment) is None
    with pytest.raises(LoginRequired, match=r"no API key: set K in the environment"):
        given.credentials(environment)


def test_a_provider_without_a_source_needs_no_key() -> None:
    assert provider().credentials({}) is None
    assert provider(api_key_command=["a"]).credentials({}) is None


@pytest.mark.parametrize("value", [f"{SECRET} x", f"{SECRET}\u00e9", f"{SECRET}\x00"])
def test_a_key_with_strange_characters_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(ConfigError, match=r"K does not hold a key") as caught:
        provider(api_key_env="K").key({"K": value})
    assert SECRET not in str(caught.value)


def key_file(folder: Path, mode: int = 0o600, text: str = SECRET + "\n") -> Path:
    file = folder / "key"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


def test_a_key_comes_from_a_file_that_is_ours_alone(tmp_path: Path) -> None:
    given = provider(api_key_file=str(key_file(tmp_path)))
    assert given.credentials({}) == SECRET


def test_an_empty_key_file_is_a_missing_login(tmp_path: Path) -> None:
    with pytest.raises(LoginRequired, match=r"put it into .*key, which is empty"):
        provider(api_key_file=str(key_file(tmp_path, text="\n"))).credentials({})


def make_nothing(folder: Path) -> Path:
    return folder / "none"


def make_link(folder: Path) -> Path:
    key_file(folder).rename(folder / "real")
    (folder / "key").symlink_to("real")
    return folder / "key"


def make_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "key", 0o600)
    return folder / "key"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (partial(key_file, mode=0o640), "could be read or changed by others"),
        (partial(key_file, mode=0o602), "could be read or changed by others"),
        (Path, "could be read or changed by others"),
        (make_nothing, "No such file"),
        (make_link, "symbolic links"),
        (make_pipe, "could be read or changed by others"),
    ],
)
def test_a_key_file_that_is_not_ours_alone_is_refused(
    make: Callable[[Path], Path], expected: str, tmp_path: Path
) -> None:
    file = make(tmp_path)
    given = provider(api_key_file=str(file))
    with pytest.raises(ConfigError, match=expected) as caught:
        given.key({})
    assert f"chmod 600 {file}" in str(caught.value)


def test_the_known_secrets_are_the_keys_that_can_be_found(tmp_path: Path) -> None:
    text = (
        PROVIDER + 'api_key_env = "A"\n[providers.q]\nbase_url = "https://q"\n'
        'api_key_env = "B"\n[providers.r]\nbase_url = "https://r"\napi_key_file = "none"\n'
        '[providers.s]\nbase_url = "https://s"\n' + MODEL
    )
    found = config(tmp_path, text)
    assert found.secrets({"A": SECRET, "C": "c"}) == (SECRET,)
    assert found.key_variables() == ("A", "B")


# -- without --config ----------------------------------------------------------------------------


def test_the_users_own_file_is_found(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "OPENAI_MODEL": "other"}
    file = default_file(environment)
    assert file is not None
    assert file == tmp_path / "responses-acp" / "config.toml"
    file.parent.mkdir()
    file.write_text(PROVIDER + MODEL, encoding="utf-8")
    assert load(None, environment).default_model == "m"


def test_the_systems_own_place_is_taken_without_xdg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    file = default_file({})
    assert file is not None
    assert file.is_relative_to(tmp_path)


@pytest.mark.parametrize("home", ["relative", "", "/dev/null", "/nonexistent"])
def test_a_home_that_cannot_be_used_holds_no_file(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert load(None, {}).providers["openai"].api_key_env == "OPENAI_API_KEY"


NOWHERE = {"XDG_CONFIG_HOME": "/nonexistent"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ("https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5.3-codex", "auto")),
        (
            {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"},
            ("https://api.openai.com/v1", "OPENAI_API_KEY", "m", None),
        ),
        (
            {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_MODEL": "m"},
            ("http://127.0.0.1:1/v1", None, "m", None),
        ),
        (
            {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "k"},
            ("http://127.0.0.1:1/v1", "OPENAI_API_KEY", "gpt-5.3-codex", "auto"),
        ),
        (
            {"OPENAI_BASE_URL": "https://p.example/v1"},
            ("https://p.example/v1", "OPENAI_API_KEY", "gpt-5.3-codex", "auto"),
        ),
    ],
)
def test_the_environment_serves_where_no_file_is(
    environment: dict[str, str], expected: tuple[str | None, ...]
) -> None:
    found = load(None, NOWHERE | environment)
    openai, model = found.providers["openai"], found.models[found.default_model]
    assert (openai.base_url, openai.api_key_env, model.model, model.summary) == expected


def test_a_dotenv_file_of_the_workspace_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "OPENAI_BASE_URL=https://evil.example/v1\nOPENAI_MODEL=m\nXDG_CONFIG_HOME=/evil\n"
    (tmp_path / ".env").write_text(lines, encoding="utf-8")
    found = load(None, {**NOWHERE, "OPENAI_API_KEY": "k"})
    assert found.providers["openai"].base_url == "https://api.openai.com/v1"


def test_a_wrong_url_in_the_environment_is_named_by_its_variable() -> None:
    with pytest.raises(ConfigError, match=r"^OPENAI_BASE_URL must use https"):
        load(None, {**NOWHERE, "OPENAI_BASE_URL": "http://h.example/v1"})


# -- the example ---------------------------------------------------------------------------------

COMMENTED = re.compile(r"^#(?=[\[A-Za-z_])", re.MULTILINE)


def example(folder: Path, text: str) -> Config:
    (folder / "prompt.md").touch()
    return config(folder, text)


def test_the_example_works_as_it_is(tmp_path: Path) -> None:
    assert example(tmp_path, EXAMPLE.read_text(encoding="utf-8")).default_model == "gpt"


def test_the_example_works_with_every_setting_switched_on(tmp_path: Path) -> None:
    found = example(tmp_path, COMMENTED.sub("", EXAMPLE.read_text(encoding="utf-8")))
    assert len(found.providers) == len(found.models) == 10


def test_each_part_of_the_example_works_alone(tmp_path: Path) -> None:
    parts = EXAMPLE.read_text(encoding="utf-8").split("\n# --- ")[1:]
    for part in parts:
        assert len(example(tmp_path, COMMENTED.sub("", part.partition("\n")[2])).models) == 1


def test_the_example_shows_every_setting() -> None:
    shown = line_numbers(COMMENTED.sub("", EXAMPLE.read_text(encoding="utf-8")))
    found = {(path[0] if len(path) > 1 else "", name) for path in shown for name in path[-1:]}
    tables = {kind: names for kind, names in KEYS.items() if "." not in kind}
    for kind, names in tables.items():
        missing = {name for name in names if (kind, name) not in found}
        assert missing - set(KEYS) == set(), kind


def test_defaults_shown_by_the_example_are_the_defaults() -> None:
    text = COMMENTED.sub("", EXAMPLE.read_text(encoding="utf-8"))
    tables = (Config, Provider, Model, Sandbox, Server, Shell)
    fields = {name: field for table in tables for name, field in table.model_fields.items()}
    shown = re.findall(r"^(\w+) = (\S+) +# default", text, re.MULTILINE)
    assert len(shown) == 19
    for name, value in shown:
        assert str(fields[name].default).lower() == value.strip('"'), name


# -- MCP servers ---------------------------------------------------------------------------------


def test_the_url_of_an_mcp_server_stays_as_it_is_written(tmp_path: Path) -> None:
    found = config(tmp_path, TWO + "[mcp.s]\nurl = 'https://h/mcp/?team=a'\n")
    assert found.mcp["s"].url == "https://h/mcp/?team=a"


def test_the_key_of_an_mcp_server_is_kept_from_commands_like_any_other(tmp_path: Path) -> None:
    found = config(tmp_path, TWO + "[mcp.s]\nurl = 'https://h/mcp'\napi_key_env = 'A'\n")
    assert found.key_variables() == ("A",)
    assert found.secrets({"A": "k"}) == ("k",)
