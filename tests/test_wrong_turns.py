"""What goes wrong in the first five minutes ends in one sentence that is enough to mend it."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.agent_process import KEY, PROGRAM, Machine, Request, begin_prompt, machine
from tests.fake_editor import Refused

pytestmark = pytest.mark.anyio

CONFIG = """\
[providers.p]
base_url = "{url}"
api_key_env = "TEST_KEY"
max_retries = 0
[models.m]
provider = "p"
[sandbox]
mode = "off"
"""

Serve = Callable[[Request], Awaitable[None]]


def refusing(status: str, body: bytes, kind: str = "application/json") -> Serve:
    async def serve(request: Request) -> None:
        await request.refuse(status, body, kind=kind)

    return serve


@dataclass(frozen=True)
class Turn:
    """One wrong turn, and what is said of it; where: which request is answered so."""

    config: str = CONFIG
    without: tuple[str, ...] = ()
    """Variables that are not there."""
    serve: Serve | None = None
    where: str = "session/prompt"
    code: int = -32603
    kind: str = ""
    parts: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])


WRONG: dict[str, Turn] = {
    "no key": Turn(
        without=("TEST_KEY",), code=-32000, kind="auth",
        parts=("no API key: set TEST_KEY in the environment", "run `responses-acp login`"),
    ),
    "wrong key": Turn(
        serve=refusing("401 Unauthorized", b'{"error":{"message":"Incorrect API key"}}'),
        code=-32000, kind="auth",
        parts=("refused the credentials (HTTP 401)", "check the API key that the configuration"),
    ),
    "wrong path in the address": Turn(
        serve=refusing("404 Not Found", b"<html>nginx</html>", "text/html"), kind="bad_request",
        parts=("no Responses API at this address (HTTP 404)", "check base_url"),
    ),
    "an address that holds the endpoint": Turn(
        config=CONFIG.replace("{url}", "{url}/responses"), where="session/new", kind="config",
        parts=("config.toml:2: providers.p.base_url must end before /responses",),
    ),
    "a web page in the place of the API": Turn(
        serve=refusing("200 OK", b"<html>hello</html>", "text/html"), kind="bad_stream",
        parts=("not a Responses stream", "check that base_url leads to a server"),
    ),
    "typo in a setting": Turn(
        config=CONFIG.replace("base_url", "base_ulr"), where="session/new", kind="config",
        parts=("config.toml:2: providers.p.base_ulr is not known; nearest: base_url",),
    ),
    "no TOML": Turn(
        config=CONFIG.replace('"p"', "p"), where="session/new", kind="config",
        parts=("config.toml:6: not TOML",),
    ),
    "the key itself in the file": Turn(
        config=CONFIG.replace("api_key_env", "api_key"), where="session/new", kind="config",
        parts=("config.toml:3: providers.p.api_key is not known; a key does not belong",),
    ),
    "no such model": Turn(
        serve=refusing(
            "404 Not Found",
            b'{"error":{"code":"model_not_found","message":"The model `m` does not exist"}}',
        ),
        kind="bad_request",
        parts=("The model `m` does not exist", "check the model and its settings"),
    ),
    "nobody there": Turn(
        config=CONFIG.replace("{url}", "http://127.0.0.1:1/v1"), kind="unreachable",
        parts=("No connection to 127.0.0.1 (nobody answers there): check that the server runs",),
    ),
    "no such host": Turn(
        config=CONFIG.replace("{url}", "https://nowhere.invalid/v1"), kind="unreachable",
        parts=("No connection to nowhere.invalid (its name is not known): check",),
    ),
}  # fmt: skip


def prepare(here: Machine, turn: Turn) -> dict[str, str]:
    """Write the configuration; the environment."""
    here.config.write_text(turn.config.replace("{url}", here.model.base_url), encoding="utf-8")
    here.model.any_body = True
    given = {name: one for name, one in here.environment.items() if name not in turn.without}
    return {**given, **turn.env}


def check(error: Refused, turn: Turn) -> None:
    text = str(error)
    assert error.code == turn.code
    assert error.error["data"]["kind"] == turn.kind
    for part in turn.parts:
        assert part in text
    assert "\n" not in text
    assert "Traceback" not in text
    assert len(text) < 400
    assert KEY not in text
    assert error.error["data"]["details"] in text


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_turn_ends_in_one_sentence(name: str, tmp_path: Path) -> None:
    turn = WRONG[name]
    async with machine(tmp_path) as here:
        env = prepare(here, turn)
        async with here.agent(env=env) as agent:
            editor = agent.editor
            params: dict[str, Any] = {"cwd": str(here.workspace), "mcpServers": []}
            if turn.where == "session/new":
                with pytest.raises(Refused) as refused:
                    await editor.request("session/new", params)
            else:
                session = (await editor.request("session/new", params))["sessionId"]
                call = await begin_prompt(editor, session)
                if turn.serve is not None:
                    await turn.serve(await here.model.request())
                with pytest.raises(Refused) as refused:
                    await editor.result(call)
            check(refused.value, turn)


POOR: dict[str, Callable[[Machine], dict[str, str]]] = {
    "nothing but PATH": lambda here: {"PATH": os.environ["PATH"]},
    "no HOME": lambda here: {"PATH": os.environ["PATH"], "TEST_KEY": KEY},
    "a HOME that cannot be written to": lambda here: {
        "PATH": os.environ["PATH"], "HOME": "/proc/1/fdinfo", "TEST_KEY": KEY,
    },
    "a HOME that is not there": lambda here: {
        "PATH": os.environ["PATH"], "HOME": "/nowhere/at/all", "TEST_KEY": KEY,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", POOR)
async def test_a_poor_environment_is_enough(name: str, tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        turn = Turn(config=CONFIG.replace('api_key_env = "TEST_KEY"\n', ""))
        prepare(here, turn)
        async with here.agent(env=POOR[name](here)) as agent:
            editor = agent.editor
            session = await editor.new_session(here.workspace)
            call = await begin_prompt(editor, session)
            await (await here.model.request()).answer("Hello.")
            assert (await editor.result(call))["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("home", "arguments", "said"),
    [
        ("nowhere", ["setup"], "there is no place for a configuration: set HOME to a folder"),
        ("nowhere", ["login"], "there is no place for the key: set HOME to a folder"),
        ("nowhere", ["setup", "jetbrains", "--write", "--yes"], "there is no home /"),
        (
            "locked",
            ["setup"],
            "config.toml cannot be written: Not a directory; set XDG_CONFIG_HOME",
        ),
        ("locked", ["login"], "responses-acp: Not a directory; set XDG_CONFIG_HOME"),
        ("locked", ["setup", "jetbrains", "--write", "--yes"], "acp.json: Not a directory"),
    ],
)
async def test_a_home_that_takes_nothing_is_told_of_and_not_made(
    home: str, arguments: list[str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "locked").mkdir()
    for name in (".config", ".jetbrains"):  # a folder without rights would not stop root
        (tmp_path / "locked" / name).touch()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / home)}
    # The first answer is a server where nobody is, or else the key; then its key, no other address,
    # the model, yes.
    given = b"8\nhttp://127.0.0.1:1/v1\n5\n\nm\ny\n"
    with anyio.fail_after(60):
        ended = await anyio.run_process([*PROGRAM, *arguments], input=given, env=env, check=False)
    assert ended.returncode == 1
    assert said in ended.stderr.decode()
    assert ended.stderr.count(b"\n") == 1
    assert not (tmp_path / "nowhere").exists()


async def test_a_folder_of_another_machine_names_this_one(tmp_path: Path) -> None:
    async with machine(tmp_path) as here, here.agent() as agent:
        params: dict[str, Any] = {"cwd": "/home/me/on-my-desk", "mcpServers": []}
        with pytest.raises(Refused) as refused:
            await agent.editor.request("session/new", params)
        assert refused.value.code == -32602
        where = f"no folder /home/me/on-my-desk on {os.uname().nodename}, where this agent runs"
        assert where in str(refused.value)
