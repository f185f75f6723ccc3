"""Behind a company's proxy and certificate, with keys that programs print: what the editor sees.

Each hindrance has its frames and its one sentence, and no password or key stands in any of them.
"""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.fake_proxy import FakeProxy
from tests.fake_responses import FakeResponses, Pause, Reply, said, stream
from tests.laws import Message
from tests.skipped_time import BACKEND, no_waiting
from tests.stage import Stage, stage
from tests.test_keys import runs
from tests.test_proxy import CERTIFICATE, PASSWORD, behind_a_proxy

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_proxy")]

KEY = "sk-0123456789abcdef"
SERVER = {"base_url": "https://model.test/v1", "max_retries": 0}
HELLO = stream(said("Hello"))
REFUSED = Reply([b'{"error":{"code":"invalid_api_key","message":"No such key"}}'], 401)


@pytest.fixture
def anyio_backend() -> Any:
    return BACKEND


Play = Callable[[Stage], Awaitable[None]]


async def plays_well(play: Stage) -> None:
    """One prompt, answered: the title, the words in order, the end."""
    assert await play.prompt("Hi") == {"stopReason": "end_turn"}
    kinds = [update["sessionUpdate"] for update in play.news()]
    assert kinds[0] == "session_info_update"
    assert set(kinds[1:]) == {"agent_message_chunk"}
    assert play.editor.text() == "Hello"


def fails(kind: str, sentence: str) -> Play:
    """One prompt that fails: the title, and an error of this kind that begins with a sentence."""

    async def check(play: Stage) -> None:
        error = await play.prompt("Hi")
        assert error.get("message", error).startswith(sentence)
        said_in = [error["data"][name] for name in ("details", "error")]
        assert said_in == [error["message"]] * 2
        assert error["data"]["kind"] == kind
        assert error["code"] == (-32000 if kind == "auth" else -32603)
        assert [one["sessionUpdate"] for one in play.news()] == ["session_info_update"]
        secrets = (PASSWORD, KEY)
        assert not any(secret in json.dumps(play.editor.received) for secret in secrets)
        assert not any(secret in kept(play) for secret in secrets)

    return check


def kept(play: Stage) -> str:
    """All that is written down of the session."""
    files = (file for file in (play.folder / "state").rglob("*") if file.is_file())
    return "".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


# -- proxies and certificates


@pytest.mark.parametrize(
    ("variables", "settings", "password", "then"),
    [
        pytest.param(
            {"HTTPS_PROXY": "http://PLACE"}, {"ca_file": str(CERTIFICATE)}, None, plays_well,
            id="a proxy without a password",
        ),
        pytest.param(
            {"ALL_PROXY": f"http://me:{PASSWORD}@PLACE", "SSL_CERT_FILE": str(CERTIFICATE)}, {},
            f"me:{PASSWORD}", plays_well, id="a proxy with a password, an authority by variable",
        ),
        pytest.param(
            {"HTTPS_PROXY": "http://PLACE"}, {"ca_file": str(CERTIFICATE)}, f"me:{PASSWORD}",
            fails("config", "The proxy of HTTPS_PROXY wants a user and a password (HTTP 407): "),
            id="no password where one is wanted",
        ),
        pytest.param(
            {"HTTPS_PROXY": f"http://me:{PASSWORD}x@PLACE"}, {"ca_file": str(CERTIFICATE)},
            f"me:{PASSWORD}",
            fails("config", "The proxy of HTTPS_PROXY wants a user and a password (HTTP 407): "),
            id="another password",
        ),
        pytest.param(
            {"HTTPS_PROXY": "http://PLACE"}, {}, None,
            fails("unreachable", "The TLS certificate of model.test is not trusted: set ca_file"),
            id="an authority that nobody named",
        ),
        pytest.param(
            {"HTTPS_PROXY": "http://PLACE", "SSL_CERT_FILE": "/none.pem"}, {}, None,
            fails("config", "SSL_CERT_FILE cannot be used (No such file or directory): name a"),
            id="a file that is not there, by variable",
        ),
        pytest.param(
            {"HTTPS_PROXY": "http://PLACE"}, {"ca_file": __file__}, None,
            fails("config", "ca_file cannot be used ("), id="a file that holds no certificates",
        ),
        pytest.param(
            {"HTTPS_PROXY": f"http://me:{PASSWORD}@127.0.0.1:9"}, {}, None,
            fails("unreachable", "No connection to model.test (nobody answers there, by way of "
                  "HTTPS_PROXY)"),
            id="a proxy that is not there",
        ),
        pytest.param(
            {"HTTPS_PROXY": f"http://me:{PASSWORD}@host:port"}, {}, None,
            fails("config", "HTTPS_PROXY cannot be used: it must hold a URL such as http://"),
            id="a proxy that is none",
        ),
        pytest.param(
            {"ALL_PROXY": f"socks5://me:{PASSWORD}@127.0.0.1:9"}, {}, None,
            fails("config", "ALL_PROXY names a SOCKS proxy, which needs the package socksio"),
            id="a proxy of another kind",
        ),
    ],
)  # fmt: skip
async def test_the_way_to_the_server_works_or_is_explained(
    variables: Mapping[str, str],
    settings: Mapping[str, str],
    password: str | None,
    then: Play,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = FakeResponses(HELLO)
    async with behind_a_proxy(model, password) as (_, place):
        for name, value in variables.items():
            monkeypatch.setenv(name, value.replace("PLACE", place))
        provider = {**SERVER, **settings}
        async with stage(tmp_path, model, provider=provider, wired=True) as play:
            await then(play)
    assert len(model.asked) == (then is plays_well)
    assert "proxy-authorization" not in str(model.asked)


async def test_a_proxy_that_holds_the_stream_back_shows_all_of_it_at_once_and_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = FakeResponses([*HELLO[:5], Pause(50), *HELLO[5:]])
    async with model.serve() as base_url, FakeProxy(base_url).serve() as place:
        monkeypatch.setenv("HTTP_PROXY", f"http://{place}")
        provider = {"base_url": "http://gpu-box/v1"}
        with no_waiting():
            async with stage(tmp_path, model, provider=provider, wired=True) as play:
                with anyio.fail_after(200):
                    assert await play.prompt("Hi") == {"stopReason": "end_turn"}
        told = [(one["sessionUpdate"], one.get("title", one.get("content"))) for one in play.news()]
    assert [asked.target for asked in model.asked] == ["http://gpu-box/v1/responses"]
    assert told == [
        ("session_info_update", "Hi"),
        ("notice", "No word from the model for 20 s; still waiting"),
        ("agent_message_chunk", {"type": "text", "text": "Hello"}),
    ]


# -- keys that programs print


def printing(script: str, **settings: Any) -> dict[str, Any]:
    """A server whose key this shell script prints."""
    return {"api_key_command": ["sh", "-c", script], "max_retries": 0, **settings}


def counting(folder: Path, key: str = "key-$n") -> str:
    """A script that counts its runs and prints a key made of their number."""
    return f"echo >> {folder}/runs; n=$(($(wc -l < {folder}/runs))); echo {key}"


def keys(model: FakeResponses) -> list[str]:
    return [one.headers["authorization"].removeprefix("Bearer ") for one in model.asked]


def token(end: int) -> str:
    """A JSON Web Token that ends then."""
    body = base64.urlsafe_b64encode(json.dumps({"exp": end}).encode()).decode().rstrip("=")
    return f"e30.{body}.$n"


@pytest.mark.parametrize(
    ("script", "settings", "then"),
    [
        (f"echo {KEY}; exit 7", {}, fails("auth", "api_key_command sh failed (exit code 7): run")),
        ("exec sleep 600", {"api_key_timeout": 0.2},
         fails("auth", "api_key_command sh did not end within 0.2 s: run it in a terminal to see")),
        (f"echo Welcome; echo {KEY}", {},
         fails("config", "api_key_command sh printed something else than a key: it must print")),
        ("head -c 10000000 /dev/zero | tr '\\0' a", {},
         fails("config", "api_key_command sh printed something else than a key: it must print")),
        ("exit 0", {}, fails("auth", "api_key_command sh printed nothing: it must print the key")),
        ("read answer && echo $answer", {}, fails("auth", "api_key_command sh failed (exit code")),
        (f"head -c 10000000 /dev/zero >&2; echo {KEY}", {}, plays_well),
        (f"sleep 600 & echo {KEY}", {}, plays_well),
        (f"cat; echo {KEY}", {}, plays_well),
        (f"printf '\\033[1m{KEY}\\033[0m\\r\\n'", {}, plays_well),
    ],
)  # fmt: skip
async def test_a_program_prints_the_key_or_is_explained(
    script: str, settings: Mapping[str, Any], then: Play, tmp_path: Path
) -> None:
    model = FakeResponses(HELLO)
    async with stage(tmp_path, model, provider=printing(script, **settings)) as play:
        with anyio.fail_after(60):
            await then(play)
    assert keys(model) == ([KEY] if then is plays_well else [])


async def test_a_session_outlives_its_key(tmp_path: Path) -> None:
    async def check(name: str, expected: list[str], *scripts: Any, **settings: Any) -> None:
        folder = tmp_path / name
        folder.mkdir()
        script = counting(folder, settings.pop("key", "key-$n"))
        model = FakeResponses(*scripts)
        async with stage(folder, model, provider=printing(script, **settings)) as play:
            for _ in range(3):
                with anyio.fail_after(60):
                    assert await play.prompt("Hi") == {"stopReason": "end_turn"}
            kinds = {update["sessionUpdate"] for update in play.news()}
            assert kinds == {"session_info_update", "agent_message_chunk"}
        assert [key.rpartition(".")[2] for key in keys(model)] == expected

    one, two, three = "key-1", "key-2", "key-3"
    await check("long", [one, one, one], HELLO, HELLO, HELLO)
    await check("refused", [one, one, two, two], HELLO, REFUSED, HELLO, HELLO)
    await check("short", [one, two, three], HELLO, HELLO, HELLO, api_key_ttl=1e-6)
    await check("over", ["1", "2", "3"], HELLO, HELLO, HELLO, key=token(1000))
    await check("far", ["1", "1", "1"], HELLO, HELLO, HELLO, key=token(10**11))


async def test_a_program_that_gives_out_in_mid_session_is_explained_and_asked_again(
    tmp_path: Path,
) -> None:
    good = tmp_path / "good"
    good.touch()
    script = f"rm {good} && echo {KEY}"
    model = FakeResponses(HELLO, REFUSED, HELLO)
    async with stage(tmp_path, model, provider=printing(script)) as play:
        with anyio.fail_after(60):
            await plays_well(play)
            error = await play.prompt("Again")
            assert error["message"].startswith("api_key_command sh failed (exit code 1): run it")
            assert (error["code"], error["data"]["kind"]) == (-32000, "auth")
            good.touch()
            assert await play.prompt("And again") == {"stopReason": "end_turn"}
        assert KEY not in json.dumps(play.editor.received)
    assert keys(model) == [KEY] * 3


async def test_two_sessions_get_one_key_at_once_and_one_new_one(tmp_path: Path) -> None:
    model = FakeResponses(REFUSED, REFUSED, HELLO, HELLO)
    ends: list[Message] = []
    async with stage(tmp_path, model, provider=printing(counting(tmp_path))) as play:
        other = await play.editor.new_session(play.workspace)

        async def ask(session: str) -> None:
            prompt = [{"type": "text", "text": "Hi"}]
            params = {"sessionId": session, "prompt": prompt}
            ends.append(await play.editor.request("session/prompt", params))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, play.session)
                tasks.start_soon(ask, other)
    assert ends == [{"stopReason": "end_turn"}] * 2
    assert keys(model) == ["key-1", "key-1", "key-2", "key-2"]


async def test_cancel_ends_the_program(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    model = FakeResponses()
    script = f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600"
    async with stage(tmp_path, model, provider=printing(script)) as play:
        with anyio.fail_after(60):
            prompt = [{"type": "text", "text": "Hi"}]
            params = {"sessionId": play.session, "prompt": prompt}
            call = await play.editor.begin("session/prompt", params)
            while not pid.exists():
                await anyio.lowlevel.checkpoint()
            await play.editor.notify("session/cancel", {"sessionId": play.session})
            assert await play.editor.result(call) == {"stopReason": "cancelled"}
        assert not runs(pid.read_text().strip())


async def test_a_key_that_the_server_repeats_is_hidden(tmp_path: Path) -> None:
    echo = Reply([json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()], 400)
    async with stage(tmp_path, FakeResponses(echo), provider=printing(f"echo {KEY}")) as play:
        error = await play.prompt("Hi")
        assert "bad key [hidden]" in error["message"]
        assert KEY not in json.dumps(play.editor.received)
        assert KEY not in kept(play)
