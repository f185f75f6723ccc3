"""Logging in and out: the commands, the methods of the protocol, and the file of kept keys."""

import json
import os
import stat
import subprocess
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

from bridge import kept
from bridge.config import load
from bridge.errors import ConfigError
from bridge.login import run
from tests.agent_process import PROGRAM, Machine, begin_prompt, machine
from tests.fake_editor import Refused
from tests.fake_responses import FakeResponses, Reply
from tests.laws import Message
from tests.test_setup import Told

KEY = "sk-kept-0987654321"
URL = "http://127.0.0.1:9/v1"


# -- the file


def test_a_kept_key_is_for_one_address_and_for_one_person(tmp_path: Path) -> None:
    file = tmp_path / "new" / "keys.json"
    assert kept.key_for(file, URL) is None
    assert not kept.forget(file, URL)
    kept.keep(file, URL, KEY)
    kept.keep(file, "https://other.example/v1", "other")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert kept.key_for(file, URL) == KEY
    assert kept.key_for(file, f"{URL}/") is None
    assert kept.forget(file, URL)
    assert kept.key_for(file, URL) is None
    assert kept.key_for(file, "https://other.example/v1") == "other"
    assert [one.name for one in file.parent.iterdir()] == ["keys.json"]
    assert kept.key_for(None, URL) is None
    assert not kept.forget(None, URL)


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("{", 0o600, "is damaged: delete it, and run responses-acp login"),
        ("{}", 0o640, "could be read or changed by others; make it a plain file"),
    ],
)
def test_a_file_of_keys_that_is_odd_is_named(
    content: str, mode: int, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(ConfigError, match=why):
        kept.key_for(file, URL)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "keys.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="Too many levels of symbolic links"):
        kept.key_for(tmp_path / "keys.json", URL)


def test_what_is_no_key_in_it_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    for content in ("[]", json.dumps({URL: 5})):
        kept.replace_private(file, content)
        assert kept.key_for(file, URL) is None


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "keys.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        kept.replace_private(tmp_path / "keys.json", "{}")
    assert [one.name for one in tmp_path.iterdir()] == ["keys.json"]


def test_what_a_crash_left_behind_is_in_nobody_s_way(tmp_path: Path) -> None:
    left = tmp_path / f".keys.json.{os.getpid()}"
    left.write_text("half")
    kept.replace_private(tmp_path / "keys.json", "{}")
    assert (tmp_path / "keys.json").read_text() == "{}"
    assert not left.exists()


# -- the commands


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("K", raising=False)
    return tmp_path / "config" / "responses-acp"


def configured(tmp_path: Path, base_url: str = URL, more: str = 'api_key_env = "K"') -> str:
    file = tmp_path / "config.toml"
    file.write_text(
        f'[providers.p]\nbase_url = "{base_url}"\n{more}\n'
        '[providers.q]\nbase_url = "http://127.0.0.1:8/v1"\n[models.m]\nprovider = "p"\n'
    )
    return str(file)


def command(
    command: str, config: str, *secrets: str, provider: str | None = None
) -> tuple[int, str]:
    told = Told(secrets=list(secrets))
    options = Namespace(command=command, config=config, provider=provider)
    return run(options, told), told.text


def keys(folder: Path) -> Any:
    return json.loads((folder / "keys.json").read_text())


@pytest.mark.anyio
async def test_a_key_that_the_server_takes_is_kept(tmp_path: Path, folder: Path) -> None:
    fake = FakeResponses(Reply([b"{}"]), any_body=True)
    async with fake.serve() as url:
        config = configured(tmp_path, url)
        code, text = await run_sync(partial(command, "login", config, KEY))
    assert code == 0
    assert keys(folder) == {url: KEY}
    assert fake.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert "The server takes the key." in text
    assert KEY not in text
    environment = {"XDG_CONFIG_HOME": str(folder.parent)}
    assert load(config, environment).providers["p"].credentials(environment) == KEY
    code, text = await run_sync(partial(command, "logout", config))
    assert (code, keys(folder)) == (0, {})
    assert f"The key for {url} is forgotten." in text
    code, text = await run_sync(partial(command, "logout", config))
    assert (code, keys(folder)) == (0, {})
    assert f"The key for {url} is not kept here." in text


@pytest.mark.anyio
async def test_a_key_that_the_server_refuses_is_not(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeResponses(Reply(status=401), any_body=True).serve() as url:
        code, _ = await run_sync(partial(command, "login", configured(tmp_path, url), KEY))
    assert code == 1
    assert "the server refuses this key (HTTP 401); it was not kept" in capsys.readouterr().err
    assert not kept.key_for(folder / "keys.json", url)


@pytest.mark.anyio
async def test_a_key_that_may_not_list_models_is_kept(tmp_path: Path, folder: Path) -> None:
    async with FakeResponses(Reply(status=403), any_body=True).serve() as url:
        code, text = await run_sync(partial(command, "login", configured(tmp_path, url), KEY))
    assert (code, keys(folder)) == (0, {url: KEY})
    assert "does not let this key list its models" in text


def test_a_key_is_kept_untried_where_nobody_answers(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K", "mine")
    code, text = command("login", configured(tmp_path), KEY)
    assert code == 0
    assert "the key was not tried" in text
    assert "K is set here and comes first" in text
    code, text = command("login", configured(tmp_path), "other", provider="q")
    assert keys(folder) == {URL: KEY, "http://127.0.0.1:8/v1": "other"}
    code, text = command("logout", configured(tmp_path), provider="p")
    assert keys(folder) == {"http://127.0.0.1:8/v1": "other"}
    assert "still comes from K" in text


@pytest.mark.parametrize(
    ("more", "provider", "secrets", "code", "why"),
    [
        ('api_key_file = "k"', None, [KEY], 1, "the key comes from /"),
        ('api_key_command = ["pass"]', None, [KEY], 1, "the key comes from the program pass"),
        ("", "r", [KEY], 1, "there is no provider r; known are: p, q"),
        ("", None, [""], 1, "it is empty"),
        ("", None, ["two words"], 1, "blanks"),
        ("basee = 1", None, [KEY], 2, "config.toml:3: providers.p.basee is not known"),
    ],
)
def test_what_stands_in_the_way_of_a_login_is_said(
    more: str, provider: str | None, secrets: list[str], code: int, why: str, tmp_path: Path,
    folder: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    config = configured(tmp_path, more=more)
    assert command("login", config, *secrets, provider=provider)[0] == code
    told = capsys.readouterr().err
    assert told.startswith("responses-acp login: ")
    assert why in told
    assert not folder.exists()


def test_a_login_that_is_given_up_or_cannot_be_written_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Gone(Told):
        def secret(self, question: str) -> str:
            raise EOFError

    config = configured(tmp_path)
    assert run(Namespace(command="login", config=config, provider=None), Gone()) == 1
    assert "stopped; no key was kept" in capsys.readouterr().err
    (tmp_path / "config").touch()
    assert command("login", config, KEY)[0] == 1
    assert "Not a directory" in capsys.readouterr().err


@pytest.mark.parametrize("before", [[], ["--config", "CONFIG"]])
def test_login_works_alone_and_behind_the_agents_own_arguments(
    before: list[str], tmp_path: Path, folder: Path
) -> None:
    config = configured(tmp_path)
    arguments = [config if one == "CONFIG" else one for one in before]
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "OPENAI_BASE_URL": URL,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }  # fmt: skip

    def started(*more: str, given: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, *arguments, *more], input=given, env=environment, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip

    ended = started("login", given=f"{KEY}\n")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert KEY not in ended.stdout
    assert keys(folder) == {URL: KEY}
    assert started("login", given="").returncode == 1


# -- the protocol


async def refused(editor: Any, method: str, params: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as error:
        await editor.request(method, params)
    return error.value.code, str(error.value)


def keyless(here: Machine) -> dict[str, str]:
    return {name: one for name, one in here.environment.items() if name != "TEST_KEY"}


@pytest.mark.anyio
async def test_the_methods_fit_what_the_client_can_do(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent(greet=False) as agent:
        params = {"protocolVersion": 1, "clientCapabilities": {"auth": {"terminal": True}}}
        told = await agent.editor.request("initialize", params)
        assert [one["id"] for one in told["authMethods"]] == ["config", "login"]
        assert told["authMethods"][1]["args"] == ["login"]
        assert told["agentCapabilities"]["auth"] == {"logout": {}}
        code, text = await refused(agent.editor, "authenticate", {"methodId": "login"})
        assert (code, "in a terminal" in text) == (-32602, True)


@pytest.mark.anyio
async def test_after_a_logout_nothing_goes_to_the_model_until_a_login(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent() as agent:
        editor = agent.editor
        session = await editor.new_session(here.workspace)
        assert await editor.request("logout", {}) == {}
        new: Message = {"cwd": str(here.workspace), "mcpServers": []}
        again: Message = {**new, "sessionId": session}
        prompt: Message = {"sessionId": session, "prompt": [{"type": "text", "text": "Go."}]}
        for method, params in (
            ("session/new", new), ("session/prompt", prompt),
            ("session/load", {**again, "sessionId": "other"}), ("session/resume", again),
        ):  # fmt: skip
            code, text = await refused(editor, method, params)
            assert code in (-32000, -32602), method
            if "resume" not in method:
                assert (code, "log in" in text) == (-32000, True), method
        assert await editor.request("authenticate", {"methodId": "config"}) == {}
        await editor.new_session(here.workspace)
        call = await begin_prompt(editor, session)
        await (await here.model.request()).answer()
        assert (await editor.result(call))["stopReason"] == "end_turn"


@pytest.mark.anyio
async def test_a_key_that_is_kept_meanwhile_is_read_and_a_logout_forgets_it(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as here, here.agent(env=keyless(here)) as agent:
        editor = agent.editor
        session = await editor.new_session(here.workspace)
        code, text = await refused(editor, "authenticate", {"methodId": "config"})
        assert (code, "responses-acp login" in text) == (-32000, True)
        code, text = await refused(
            editor, "session/prompt",
            {"sessionId": session, "prompt": [{"type": "text", "text": "Go."}]},
        )  # fmt: skip
        assert (code, "set TEST_KEY" in text) == (-32000, True)
        file = Path(here.environment["XDG_CONFIG_HOME"]) / "responses-acp" / "keys.json"
        kept.keep(file, here.model.base_url, KEY)
        assert await editor.request("authenticate", {"methodId": "config"}) == {}
        call = await begin_prompt(editor, session)
        asked = await here.model.request()
        assert f"bearer {KEY}" in asked.head.lower().replace(KEY.lower(), KEY)
        await asked.answer()
        await editor.result(call)
        assert await editor.request("logout", {}) == {}
        assert json.loads(await anyio.Path(file).read_text()) == {}
        code, _ = await refused(editor, "authenticate", {"methodId": "config"})
        assert code == -32000


def printing(here: Machine, script: str) -> None:
    """Have a shell script print the key of the model's server."""
    text = here.config.read_text(encoding="utf-8")
    source = f"api_key_command = {json.dumps(['sh', '-c', script])}"
    assert 'api_key_env = "TEST_KEY"' in text
    here.config.write_text(text.replace('api_key_env = "TEST_KEY"', source), encoding="utf-8")


@pytest.mark.anyio
async def test_to_log_in_runs_the_program_that_prints_the_key(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        runs, secret = tmp_path / "runs", tmp_path / "secret"
        printing(here, f"echo >> {runs}; cat {secret}")
        async with here.agent() as agent:
            editor = agent.editor
            code, text = await refused(editor, "authenticate", {"methodId": "config"})
            assert (code, "api_key_command sh failed (exit code 1)" in text) == (-32000, True)
            code, text = await refused(editor, "authenticate", {"methodId": "other"})
            assert (code, "unknown authentication method" in text) == (-32602, True)
            secret.write_text(KEY)
            await editor.request("logout", {})
            assert await editor.request("authenticate", {"methodId": "config"}) == {}
            assert await editor.request("authenticate", {"methodId": "config"}) == {}
            session = await editor.new_session(here.workspace)
            call = await begin_prompt(editor, session)
            asked = await here.model.request()
            assert KEY in asked.head
            await asked.answer()
            await editor.result(call)
            assert runs.read_text() == "\n" * 4, "each log in runs it once, and the prompt does not"


@pytest.mark.anyio
async def test_a_log_in_that_waits_for_a_program_can_be_given_up(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        begun = tmp_path / "begun"
        os.mkfifo(begun)
        begun_by = os.open(begun, os.O_RDONLY | os.O_NONBLOCK)
        printing(here, f"echo > {begun}; exec sleep 600")
        async with here.agent() as agent:
            editor = agent.editor
            call = await editor.begin("authenticate", {"methodId": "config"})
            await anyio.wait_readable(begun_by)
            await editor.notify("$/cancel_request", {"requestId": call})
            with pytest.raises(Refused) as error:
                await editor.result(call)
            assert error.value.code == -32800
        os.close(begun_by)
