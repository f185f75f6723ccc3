"""`check`: what its questions show, what their answers mean, and that it always comes to an end."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.check import asking, here, judge, run, servers
from bridge.check.finding import Finding, entry, exit_code, fault, line, ok, warning
from bridge.check.judge import Heard
from bridge.check.look import Look
from bridge.check.run import CHECKS, Check, checked
from bridge.core.effects import Effect, Failed, Finished, FunctionCall, Say, Think
from bridge.core.remote import RemoteTool
from bridge.errors import Fault, LoginRequired
from bridge.keys import Keys
from bridge.responses.transport import Transport
from bridge.wanted import Address, Wanted
from tests.fake_responses import FakeResponses, Item, Reply, called, said, stream, thought
from tests.test_keys import token
from tests.test_proxy import CERTIFICATE, behind_a_proxy
from tools.layers import Layers

pytestmark = pytest.mark.usefixtures("no_proxy")

DAY = 86400.0
DONE = Finished("completed", (), ())


def check(found: Finding, level: str, *parts: str) -> None:
    text = line(found)
    assert found.level == level, text
    for part in parts:
        assert part in text


# -- what answers mean


@pytest.mark.parametrize(
    ("left", "level", "part"),
    [
        (5 * DAY + 1, "ok", "from K: it is good for 5 days"),
        (7201.0, "ok", "good for 2 hours"),
        (600.0, "warning", "good for 10 minutes; get a new one soon"),
        (0.0, "fault", "its time has been over for 0 seconds"),
        (-3 * DAY, "fault", "its time has been over for 3 days; get a new one"),
    ],
)
def test_a_key_that_ends_is_told_of_in_time(left: float, level: str, part: str) -> None:
    check(judge.key_end("from K", 1e9 + left, 1e9), level, part)
    check(judge.key_end("from K", None, 1e9), "ok", "from K\n")


ISSUER = ((("countryName", "US"),), (("organizationName", "Zed Trust"),), (("commonName", "Z1"),))


@pytest.mark.parametrize(
    ("given", "end", "level", "part"),
    [
        ({}, None, "ok", "does not tell who issued it"),
        ({"issuer": ISSUER}, None, "ok", "issued by Zed Trust, Z1"),
        ({"issuer": ISSUER}, 90 * DAY, "ok", "issued by Zed Trust, Z1, valid for 90 days"),
        ({"issuer": ISSUER}, 3 * DAY, "warning", "valid for 3 days; have it renewed"),
    ],
)
def test_a_certificate_names_who_vouches_for_it(
    given: Mapping[str, object], end: float | None, level: str, part: str
) -> None:
    check(judge.certificate(given, end, 0.0), level, part)


LIST: Any = {"data": [{"id": "gpt-5"}, {"id": "gpt-5-mini"}]}


@pytest.mark.parametrize(
    ("name", "status", "listed", "level", "part"),
    [
        ("gpt-5", 200, LIST, "ok", "gpt-5 is in the server's list of 2"),
        ("gpt-5-mimi", 200, LIST, "warning", "not in the server's list; nearest: gpt-5-mini"),
        ("llama", 200, LIST, "warning", "known are: gpt-5, gpt-5-mini"),
        ("gpt-5", 404, None, "ok", "tells no list"),
        ("gpt-5", 200, {"data": []}, "ok", "tells no list"),
        ("gpt-5", 401, LIST, "fault", "refuses the key (HTTP 401)"),
        ("gpt-5", 403, None, "warning", "does not let this key list its models (HTTP 403)"),
        ("gpt-5", 302, None, "warning", "HTTP 302 to GET /models; check base_url"),
    ],
)
def test_a_model_is_looked_for_in_the_list(
    name: str, status: int, listed: Any, level: str, part: str
) -> None:
    check(judge.model(name, status, listed), level, part)


def heard(*effects: Effect, waited: float = 0.1, lasted: float = 0.5, worked: float | None = None,
          end: Effect = DONE) -> Heard:  # fmt: skip
    return Heard((*effects, end), waited, lasted, worked)


PIECES = [Say(0, "x")] * 9
BROKEN = Failed(Fault("server_error", "The provider failed: try again"))


@pytest.mark.parametrize(
    ("given", "level", "part"),
    [
        (heard(*PIECES), "ok", "9 pieces of text, the first after 0.1 s"),
        (heard(*PIECES, waited=30, lasted=5), "ok", "9 pieces"),
        (heard(*PIECES, waited=9, lasted=0.01), "warning", "all 9 pieces came at once after 9.0 s"),
        (heard(*PIECES, waited=0.2, lasted=0.0, worked=4), "warning", "came at once after 4.0 s"),
        (heard(*PIECES, waited=9, lasted=0.01, worked=0.5), "ok", "9 pieces"),
        (heard(*PIECES, waited=1.0, lasted=0.0), "ok", "9 pieces"),
        (heard(Say(0, "all")), "warning", "came in 1 piece; the server does not stream"),
        (heard(), "warning", "held no text"),
        (heard(*PIECES, end=BROKEN), "fault", "The provider failed: try again"),
        (heard(end=Finished("stopped", (), ())), "fault", "stopped early"),
        (Heard(()), "fault", "stopped early"),
        (heard(*PIECES, end=Finished("max_tokens", (), ())), "ok", "9 pieces"),
    ],
)
def test_a_stream_that_is_held_back_is_told_from_one_that_is_quick(
    given: Heard, level: str, part: str
) -> None:
    check(judge.streaming(given), level, part)


def calls(name: str, arguments: str) -> Finished:
    return Finished("completed", (), (FunctionCall(0, "c", name, arguments),))


@pytest.mark.parametrize(
    ("given", "level", "part"),
    [
        (heard(end=calls("report", '{"word":"ready"}')), "ok", "as it was told to"),
        (heard(end=calls("report", '{"text":1}')), "warning", "other arguments"),
        (heard(end=calls("report", "[]")), "warning", "other arguments"),
        (heard(end=calls("report", '{"word"')), "warning", "no JSON"),
        (heard(end=calls("other", "{}")), "warning", "did not call"),
        (heard(Say(0, "I am rea"), Say(0, "dy.")), "warning", "did not call"),
        (heard(Say(0, "<call>rep"), Say(0, "ort(ready)")), "fault", "--enable-auto-tool-choice"),
        (heard(end=BROKEN), "fault", "The provider failed"),
    ],
)
def test_a_call_is_told_from_its_text(given: Heard, level: str, part: str) -> None:
    check(judge.tool_calling(given), level, part)


@pytest.mark.parametrize(
    ("given", "level", "part"),
    [
        (heard(Think(0, "Let me"), Say(1, "5")), "ok", "6 characters"),
        (heard(Say(1, "5")), "warning", "if it never shows, unset"),
        (heard(end=BROKEN), "fault", "The provider failed"),
    ],
)
def test_reasoning_that_is_not_told_of_is_no_fault(given: Heard, level: str, part: str) -> None:
    check(judge.summaries(given), level, part)


@pytest.mark.parametrize(
    ("layers", "required", "level", "part"),
    [
        (Layers("NLS", 6, ()), True, "ok", "layers NLS: commands are held in full"),
        (Layers("LS", 2, ("N: no",)), True, "warning", "keys in the home folder can be read"),
        (Layers("", 0, ("there is none for x",)), False, "warning", "none for x): every command"),
        (Layers("", 0, ("N: no",)), True, "fault", "`require` is set: no command runs"),
    ],
)
def test_layers_that_are_missing_are_told_of(
    layers: Layers, required: bool, level: str, part: str
) -> None:
    check(here.held(layers, required=required), level, part)


def test_a_finding_is_one_line_whatever_a_server_said() -> None:
    told = line(Finding("warning", "odd\n\x1b[31mred", "mend it", ("a = 1",), "model"))
    assert told == f"warning  model       odd  [31mred; mend it\n{'':20} a = 1\n"
    assert entry(Finding("warning", "odd", "mend it", ("a = 1",), "model")) == {
        "check": "model", "level": "warning", "text": "odd", "remedy": "mend it",
        "details": ["a = 1"],
    }  # fmt: skip
    assert entry(ok("fine")) == {"check": "", "level": "ok", "text": "fine"}


@pytest.mark.parametrize(
    ("findings", "configured", "code"),
    [([ok("")], True, 0), ([warning("")], True, 0), ([ok(""), fault("")], True, 1),
     ([fault("")], False, 2)],
)  # fmt: skip
def test_the_exit_code_says_how_bad_it_is(
    findings: list[Finding], configured: bool, code: int
) -> None:
    assert exit_code(findings, configured=configured) == code


# -- the program's own files


class Files:
    """What an installer wrote down."""

    def __init__(self, home: Path, *names: str, value: str | None = None) -> None:
        self.files = [_File(home, name, value) for name in names]


class _File:
    def __init__(self, home: Path, name: str, value: str | None) -> None:
        self.place, self.name, self.hash = home / name, name, _Hash(value)

    def locate(self) -> Path:
        return self.place

    def __str__(self) -> str:
        return self.name


class _Hash:
    mode = "sha256"

    def __init__(self, value: str | None) -> None:
        self.value = value


HOME = Path(__file__).parent.parent
EMPTY = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


@pytest.mark.parametrize(
    ("files", "level", "part"),
    [
        (None, "ok", "run from its sources"),
        (Files(HOME, "other/x.py"), "ok", "run from its sources"),
        (Files(HOME, "bridge/__init__.py", "tools/base.py", "bridge/x.txt"), "ok", "2 files"),
        (Files(HOME, "bridge/cli.py", value=EMPTY), "fault", "(bridge/cli.py); install it anew"),
        (Files(HOME, "bridge/gone.py"), "fault", "1 of its files are not as installed"),
    ],
)
def test_files_that_another_installation_changed_are_found(
    files: Any, level: str, part: str
) -> None:
    check(here.installed(HOME, files), level, part)


def test_tools_of_another_distribution_are_found(tmp_path: Path) -> None:
    check(here.installed(tmp_path, None), "fault", "but `tools` comes from", "its own: uv tool")


# -- asking


def config(folder: Path, base_url: str, more: str = "", model: str = "") -> str:
    file = folder / "config.toml"
    text = f'[providers.p]\nbase_url = "{base_url}"\n{more}\n[models.m]\nprovider = "p"\n{model}'
    file.write_text(text, encoding="utf-8")
    return str(file)


async def looked(
    file: str | None,
    environment: Mapping[str, str] | None = None,
    table: Any = CHECKS,
    model: str | None = None,
    state: Path | None = None,
    seconds: float = 50.0,
) -> tuple[dict[str, Finding], bool, Look]:
    """The findings by name, the last of each; whether something hung."""
    given = {"HOME": "/root", **(environment or {})}
    shown: list[Finding] = []
    with anyio.fail_after(60):
        async with Transport() as transport:
            keys = Keys(given, lambda _: None)
            look = Look(given, transport, keys, anyio.current_time, time.time, file, model, state)
            found, hung = await checked(look, shown.append, table, seconds)
    assert shown == found
    return {one.name: one for one in found}, hung, look


def answers(*items: Item) -> FakeResponses:
    listed = Reply([b'{"data":[{"id":"m"}]}'])
    number = said(" ".join(map(str, range(1, 41))))
    call = called("c1", "report", '{"word":"ready"}')
    summary = thought("Let me count.")
    return FakeResponses(
        listed,
        stream(*(items or (number,))),
        stream(call),
        stream(summary, said("5")),
        any_body=True,
    )


@pytest.mark.anyio
async def test_all_that_is_well_is_told_to_be_well(tmp_path: Path) -> None:
    fake, key = answers(), token({"exp": time.time() + 9 * DAY + 60})
    async with fake.serve() as url:
        file = config(tmp_path, url, 'api_key_env = "K"', 'summary = "auto"')
        found, hung, _ = await looked(file, {"K": key}, state=tmp_path)
    told = {name: one.level for name, one in found.items()}
    expected = {check.name: "ok" for check in CHECKS if check.name != "mcp"}
    assert told == {**expected, "sandbox": told["sandbox"]}
    assert not hung
    check(found["key"], "ok", "from K in the environment: it is good for 9 days")
    check(found["config"], "ok", file)
    check(
        found["settings"], "ok", 'summary = "auto"  (config.toml:6)', 'model = "m"  (config.toml:4)'
    )
    check(found["certificate"], "ok", "not encrypted")
    models, counted, called_, told_of = (asked.body for asked in fake.asked)
    assert models is None
    assert "reasoning" not in counted
    assert [tool["name"] for tool in called_["tools"]] == ["report"]
    assert told_of["reasoning"] == {"summary": "auto"}
    assert {asked.headers["authorization"] for asked in fake.asked} == {f"Bearer {key}"}


@pytest.mark.anyio
async def test_a_stream_that_was_held_back_is_told_of(tmp_path: Path) -> None:
    events = stream(said("1 2 3 4 5 6 7 8 9 10 11 12 13 14"), created_at=100, completed_at=107)
    whole = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)
    fake = FakeResponses(Reply(status=404), whole, stream(said("no")), any_body=True)
    async with fake.serve() as url:
        found, _, _ = await looked(config(tmp_path, url))
    check(found["streaming"], "warning", "came at once after 7.0 s", "switch off buffering")
    check(found["tools"], "warning", "did not call the tool")
    check(found["model"], "ok", "no list")
    assert "reasoning" not in found


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "body", "failed", "parts"),
    [
        (401, {"error": {"message": "Bad"}}, "model", ["refuses the key (HTTP 401)"]),
        (404, {"error": {"message": "No model m", "code": "model_not_found"}}, "streaming",
         ["No model m", "check the model and its settings"]),
        (400, {"error": {"message": "Unknown x", "param": "store"}}, "streaming", ["Unknown x"]),
    ],
)  # fmt: skip
async def test_what_the_server_refuses_is_told_once(
    tmp_path: Path, status: int, body: Any, failed: str, parts: list[str]
) -> None:
    said_no = Reply([json.dumps(body).encode()], status, {"content-type": "application/json"})
    async with FakeResponses(said_no, said_no, any_body=True).serve() as url:
        found, _, _ = await looked(config(tmp_path, url))
    check(found[failed], "fault", *parts)
    assert [one.name for one in found.values() if one.level == "fault"] == [failed]
    check(found["rest"], "warning", "not tried: ", "tools, reasoning")


@pytest.mark.anyio
async def test_a_server_that_says_nothing_does_not_hold_it_up(tmp_path: Path) -> None:
    fake = FakeResponses(Reply([b"{}"]), Reply(hold=True), any_body=True)
    table = [
        Check(one.name, one.ask, one.needs, 0.2 if one.name == "streaming" else 9.0)
        for one in CHECKS
    ]
    async with fake.serve() as url:
        found, hung, _ = await looked(config(tmp_path, url), table=table)
    check(found["streaming"], "fault", "no answer within 0 s; a local server may still load")
    assert hung


@pytest.mark.anyio
async def test_when_the_time_is_over_the_rest_says_so() -> None:
    async def never(_: Look) -> list[Finding]:
        raise AssertionError

    found, hung, _ = await looked(None, table=[Check("a", never), Check("b", never)], seconds=0.0)
    check(found["b"], "fault", "no time left")
    assert hung


@pytest.mark.anyio
async def test_what_cannot_be_asked_is_a_sentence() -> None:
    def raising(error: Exception) -> Callable[[Look], Awaitable[list[Finding]]]:
        async def ask(_: Look) -> list[Finding]:
            raise error

        return ask

    table = [
        Check("a", raising(LoginRequired("no key: set K"))),
        Check("b", raising(PermissionError(13, "Permission denied"))),
    ]
    found, _, _ = await looked(None, table=table)
    check(found["a"], "fault", "no key: set K")
    check(found["b"], "warning", "Permission denied")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("more", "environment", "failed", "part"),
    [
        ('api_key_env = "K"', {}, "key", "no API key: set K in the environment"),
        ('api_key_file = "gone"', {}, "key", "No such file"),
        ("basee_url = 1", {}, "config", "config.toml:3: providers.p.basee_url is not known"),
        ("x = [", {}, "config", "config.toml:"),
    ],
)
async def test_a_wrong_turn_names_its_place(
    tmp_path: Path, more: str, environment: dict[str, str], failed: str, part: str
) -> None:
    found, _, look = await looked(config(tmp_path, "http://127.0.0.1:1/v1", more), environment)
    check(found[failed], "fault", part)
    assert (look.config is None) == (failed == "config")


@pytest.mark.anyio
async def test_nobody_there_and_no_such_model(tmp_path: Path) -> None:
    file = config(tmp_path, "http://127.0.0.1:1/v1")
    found, _, _ = await looked(file)
    check(found["server"], "fault", "nobody answers there")
    found, _, _ = await looked(file, model="n")
    check(found["config"], "fault", "there is no model n; known are: m")
    found, _, _ = await looked(str(tmp_path / "gone.toml"))
    check(found["config"], "fault", "gone.toml: No such file")


@pytest.mark.anyio
async def test_without_a_home_and_a_place_for_state_it_still_works(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    none, _, _ = await looked(None, {"HOME": "", "OPENAI_BASE_URL": "http://127.0.0.1:1"})
    check(none["host"], "warning", "HOME is not set")
    check(none["state"], "warning", "nothing is kept; set HOME")
    check(none["config"], "ok", "the environment serves")
    shut, _, _ = await looked(None, state=tmp_path / "file" / "state")
    check(shut["state"], "warning", "Not a directory", "set XDG_STATE_HOME")


@pytest.mark.anyio
async def test_the_way_through_a_proxy_and_who_vouches_for_the_server_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeResponses(Reply([b"{}"]), any_body=True)
    async with behind_a_proxy(fake) as (_, place):
        monkeypatch.setenv("HTTPS_PROXY", f"http://{place}")
        file = config(tmp_path, "https://model.test/v1", f'ca_file = "{CERTIFICATE}"')
        found, _, _ = await looked(file, table=CHECKS[:11])
    check(found["proxy"], "ok", "HTTPS_PROXY names the one that is used")
    check(found["server"], "ok", "https://model.test/v1 answers after")
    check(found["certificate"], "ok", "issued by ", "valid for")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("more", "part"),
    [
        ('api_key_file = "key"', "from the file "),
        ('api_key_command = ["echo", "key-1"]', "printed by echo"),
        ("", "none is needed"),
    ],
)
async def test_a_key_says_where_it_comes_from(tmp_path: Path, more: str, part: str) -> None:
    (tmp_path / "key").write_text("key-1")
    (tmp_path / "key").chmod(0o600)
    file = config(tmp_path, "http://127.0.0.1:1/v1", more, '[sandbox]\nmode = "off"')
    environment = {"PATH": "/usr/bin:/bin", "SSH_CONNECTION": "1 2 3 4"}
    found, _, _ = await looked(file, environment)
    check(found["key"], "ok", part)
    check(found["host"], "ok", "over SSH")
    check(found["sandbox"], "warning", "switched off")
    assert "key-1" not in line(found["key"])


@pytest.mark.anyio
async def test_secrets_are_not_among_the_settings(tmp_path: Path) -> None:
    more = 'headers = { x-team = "s3cret" }\nquery = { sig = "s3cret" }\napi_key_env = "K"'
    found, _, _ = await looked(
        config(
            tmp_path, "http://127.0.0.1:1/v1", more, 'extra_body = { note = "Bearer s3cret99" }'
        ),
        {"K": "s3cret-key"},
    )
    text = json.dumps([entry(one) for one in found.values()])
    assert "s3cret" not in text
    assert "headers = x-team (values not shown)  (config.toml:3)" in text


@pytest.mark.anyio
async def test_mcp_servers_are_started_and_ended(tmp_path: Path) -> None:
    program = str(Path(__file__).parent / "mcp_server.py")
    file = config(
        tmp_path,
        "http://127.0.0.1:1/v1",
        model=f'[mcp.good]\ncommand = "{sys.executable}"\nargs = ["{program}"]\n'
        '[mcp.gone]\ncommand = "/nowhere/at-all"\n'
        '[mcp.locked]\nurl = "https://x.invalid/mcp"\napi_key_env = "NOT_THERE"\n',
    )
    async with Transport() as transport:
        look = Look({"HOME": str(tmp_path)}, transport, Keys({}, lambda _: None),
                    time.monotonic, time.time, file)  # fmt: skip
        await asking.config(look)
        good, gone, locked = await servers.mcp(look)
    check(good, "ok", "good: ready, ", "tools")
    check(gone, "fault", "gone: ", "take [mcp.gone] out")
    check(locked, "fault", "set NOT_THERE")


@pytest.mark.anyio
async def test_one_tool_of_a_server_is_not_called_several() -> None:
    class One:
        async def tools(self) -> tuple[RemoteTool, ...]:
            return (RemoteTool("find", "", {}),)

    @asynccontextmanager
    async def connect(*_: object) -> AsyncGenerator[Any]:
        yield One()

    server = Wanted("s", Address("http://127.0.0.1:1", {}), "configuration")
    assert await servers._started(server, connect) == ok("s: ready, 1 tool")  # pyright: ignore[reportPrivateUsage] (what is asked of each)


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_tells_lines_or_json(
    as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    options = Namespace(json=as_json, config=config(tmp_path, "http://127.0.0.1:1/v1"), model=None)
    assert run.run(options) == 1
    out = capsys.readouterr().out
    if as_json:
        told = json.loads(out)
        assert not told["ok"]
        assert "server" in {one["check"] for one in told["findings"]}
    else:
        assert "\nfault    server      No connection to 127.0.0.1" in out
