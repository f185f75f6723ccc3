"""Keys that a program prints: who runs it when, and what is never said of what it printed."""

import base64
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bridge.config import Config, Model, Provider
from bridge.errors import BridgeError, ConfigError, Fault, LoginRequired, Refused
from bridge.keys import Keys, expiry
from bridge.responses.transport import Transport
from bridge.workshop import Models
from tests.fake_responses import FakeResponses, Reply, said, stream
from tests.test_transport import BODY, Heard

pytestmark = pytest.mark.anyio

KEY = "sk-0123456789abcdef"


@dataclass(eq=False)
class Machine:
    """A folder with one program that prints keys, and the clock it lives by."""

    folder: Path
    now: float = 1000.0
    printed: list[str] = field(default_factory=list[str])
    keys: Keys = field(init=False)

    def __post_init__(self) -> None:
        self.keys = Keys({"PATH": os.environ["PATH"]}, self.printed.append, clock=lambda: self.now)

    @property
    def runs(self) -> int:
        """How often the program was started."""
        log = self.folder / "runs"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def provider(self, script: str, **settings: Any) -> Provider:
        """A server whose key this shell script prints."""
        script = f"echo run >> {self.folder}/runs; {script}"
        return Provider.model_validate({
            "base_url": "https://p.example/v1", "api_key_command": ["sh", "-c", script], **settings
        })  # fmt: skip

    def counting(self, **settings: Any) -> Provider:
        """The n-th run prints key-n."""
        return self.provider(f"echo key-$(wc -l < {self.folder}/runs | tr -d ' ')", **settings)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def ignore(key: str) -> None:
    """Nothing is hidden from anybody."""


async def failure_of(keys: Keys, provider: Provider) -> BridgeError:
    with anyio.fail_after(20), pytest.raises(BridgeError) as raised:
        await keys.key(provider)
    assert KEY not in str(raised.value)
    return raised.value


def token(claims: object) -> str:
    """A JSON Web Token with these claims."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


# -- one run


@pytest.mark.parametrize(
    "script", [f"echo {KEY}", f"printf '\\n {KEY} \\r\\n'", f"echo noise >&2; echo {KEY}",
               f"cat; echo {KEY}", f"pwd > PLACE; echo {KEY}"]
)  # fmt: skip
async def test_what_a_program_prints_is_the_key(script: str, machine: Machine) -> None:
    place = machine.folder / "place"
    with anyio.fail_after(20):
        assert await machine.keys.key(machine.provider(script.replace("PLACE", str(place)))) == KEY
    assert not place.exists() or place.read_text() == "/\n"


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        (f"echo {KEY}; exit 3", LoginRequired, "sh failed (exit code 3): run it in a terminal"),
        (f"echo {KEY} >&2; kill -9 $$", LoginRequired, "sh failed (SIGKILL): run it"),
        ("true", LoginRequired, "sh printed nothing: it must print the key"),
        (f"echo Your key: {KEY}", ConfigError, "sh printed something else than a key"),
        (f"echo {KEY}é", ConfigError, "sh printed something else than a key"),
        (f"printf '{KEY}\\377'", ConfigError, "sh printed something else than a key"),
        (f"echo {KEY}; echo {KEY}", ConfigError, "sh printed something else than a key"),
        (f"yes {KEY} | tr -d '\\n' | head -c 200000", ConfigError, "sh printed something else"),
    ],
)
async def test_a_program_that_prints_no_key_is_named_and_not_what_it_printed(
    script: str, kind: type[BridgeError], words: str, machine: Machine
) -> None:
    error = await failure_of(machine.keys, machine.provider(script))
    assert type(error) is kind
    assert str(error).startswith(f"api_key_command {words}")


async def test_a_program_that_hangs_is_ended_with_all_that_it_started(machine: Machine) -> None:
    script = f"(sleep 600 & echo $! > {machine.folder}/pid; wait); echo {KEY}"
    error = await failure_of(machine.keys, machine.provider(script, api_key_timeout=0.3))
    assert str(error).startswith("api_key_command sh did not end within 0.3 s: run it in a")
    assert not runs((machine.folder / "pid").read_text().strip())


async def test_a_program_that_is_none_is_named(tmp_path: Path) -> None:
    async def check(program: str, words: str) -> None:
        given = {"base_url": "https://p.example/v1", "api_key_command": [program]}
        keys = Keys({"PATH": f"here:{tmp_path}/bin"}, ignore)
        error = await failure_of(keys, Provider.model_validate(given))
        assert isinstance(error, ConfigError)
        assert str(error).startswith(f"api_key_command {program}{words}")

    (tmp_path / "bin").mkdir()
    for name in ("bad", "plain"):
        (tmp_path / "bin" / name).write_bytes(b"\x7fELF")
    (tmp_path / "bin" / "bad").chmod(0o755)
    await check("no-such-program", ": there is no such program; name one in PATH, or give")
    await check(f"{tmp_path}/none", ": there is no such program")
    await check("plain", ": there is no such program")
    await check("bad", " cannot be started: Exec format error")


async def test_a_program_in_a_relative_folder_of_path_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text(f"#!/bin/sh\necho {KEY}\n")
    (tmp_path / "key").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    given = {"base_url": "https://p.example/v1", "api_key_command": ["key"]}
    found = Provider.model_validate(given)
    await failure_of(Keys({"PATH": ".:"}, ignore), found)
    with anyio.fail_after(20):
        assert await Keys({"PATH": f"/bin:{tmp_path}"}, ignore).key(found) == KEY


# -- how often


async def test_a_key_is_kept_until_shortly_before_its_time_is_over(machine: Machine) -> None:
    async def check(later: float, expected: str, provider: Provider) -> None:
        machine.now += later
        with anyio.fail_after(20):
            assert await machine.keys.key(provider) == expected

    hourly = machine.counting()
    for later, expected in [(0, "key-1"), (3539, "key-1"), (1, "key-2"), (3539, "key-2")]:
        await check(later, expected, hourly)
    short = machine.counting(api_key_ttl=10)
    machine.__post_init__()
    for later, expected in [(0, "key-3"), (8.9, "key-3"), (0.2, "key-4")]:
        await check(later, expected, short)


async def test_a_token_that_names_its_end_is_not_used_beyond_it(machine: Machine) -> None:
    provider = machine.provider(f"echo {token({'exp': 1100})}")
    for now, runs in [(1000, 1), (1089, 1), (1091, 2), (1200, 3), (1200, 4)]:
        machine.now = now
        with anyio.fail_after(20):
            assert await machine.keys.key(provider)
        assert machine.runs == runs


@pytest.mark.parametrize(
    ("key", "end"),
    [
        (token({"exp": 1100}), 1100),
        (token({"exp": 1100.5}), 1100.5),
        (token({"exp": 10**400}), 1e12),
        (token({"exp": True}), None),
        (token({"exp": "1100"}), None),
        (token({}), None),
        (token([]), None),
        ("a.b", None),
        ("a.\xe9.c", None),
        ("a.b.c", None),
        ("a.w-8.c", None),
        (KEY, None),
    ],
)
def test_the_end_of_a_token_is_read_where_it_is_one(key: str, end: float | None) -> None:
    assert expiry(key) == end


async def test_one_run_serves_all_who_wait(machine: Machine) -> None:
    found: list[str | None] = []

    async def wait(provider: Provider) -> None:
        found.append(await machine.keys.key(provider))

    async def check(provider: Provider) -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(wait, provider)

    await check(machine.counting())
    assert found == ["key-1"] * 5
    await check(machine.counting(key_header="api-key"))  # another server, the same program
    assert machine.runs == 1


async def test_one_failure_serves_all_who_waited_and_nobody_later(machine: Machine) -> None:
    errors: list[BridgeError] = []
    provider = machine.provider("exit 1")

    async def wait() -> None:
        errors.append(await failure_of(machine.keys, provider))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(wait)
    assert {type(error) for error in errors} == {LoginRequired}
    assert len({id(error) for error in errors}) == 5
    assert machine.runs == 1
    await wait()
    assert machine.runs == 2


async def test_a_configuration_that_is_wrong_stays_so_for_all_who_waited(machine: Machine) -> None:
    provider = machine.provider("echo a b")
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(failure_of, machine.keys, provider)
    assert machine.runs == 1
    assert isinstance(await failure_of(machine.keys, provider), ConfigError)


async def test_a_run_ends_with_the_last_who_waits(machine: Machine) -> None:
    pipe = machine.folder / "pipe"
    os.mkfifo(pipe)
    provider = machine.provider(f"echo $$ >> {machine.folder}/pids; cat {pipe}")
    found: list[str | None] = []

    async def wait() -> None:
        found.append(await machine.keys.key(provider))

    def pids() -> list[int]:
        file = machine.folder / "pids"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    with anyio.fail_after(20):
        async with anyio.create_task_group() as others:
            async with anyio.create_task_group() as first:
                first.start_soon(wait)
                await until(lambda: len(pids()) == 1)
                others.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                first.cancel_scope.cancel()
            assert not runs(str(pids()[0]))
            await until(lambda: len(pids()) == 2)
            await anyio.to_thread.run_sync(pipe.write_text, "late-key\n")
    assert found == ["late-key"]


def runs(pid: str) -> bool:
    """Whether there is such a process that is no zombie."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, check=False)
    return told.stdout.strip()[:1] not in (b"", b"Z")


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await anyio.lowlevel.checkpoint()


# -- a key that the server refuses

REFUSED = Reply([b'{"error":{"code":"invalid_api_key"}}'], 401, {"content-type": "text/json"})
HELLO = stream(said("Hello"))


def unheard(fault: Fault, attempt: int, most: int, seconds: float) -> None:
    raise AssertionError("nothing is waited for")


async def ask(fake: FakeResponses, keys: Keys, provider: Provider) -> str:
    """What the model says to one request; the keys it was asked with are in fake.asked."""
    heard = Heard()
    with anyio.fail_after(20):
        async with (
            Transport(fake.inner) as transport,
            Models(transport, keys).stream(provider, BODY, unheard) as batches,
        ):
            async for batch in batches:
                heard.batches.append(batch)
    return heard.text


def sent(fake: FakeResponses) -> list[str]:
    return [one.headers["authorization"].removeprefix("Bearer ") for one in fake.asked]


async def test_a_refused_key_is_got_anew_and_the_request_repeated_once(machine: Machine) -> None:
    provider = machine.counting(max_retries=0)
    fake = FakeResponses(REFUSED, HELLO, HELLO)
    assert await ask(fake, machine.keys, provider) == "Hello"
    assert await ask(fake, machine.keys, provider) == "Hello"
    assert sent(fake) == ["key-1", "key-2", "key-2"]

    fake = FakeResponses(REFUSED, REFUSED)
    with pytest.raises(Refused):
        await ask(fake, machine.keys, provider)
    assert sent(fake) == ["key-2", "key-3"]


async def test_the_same_key_again_is_not_sent_again(machine: Machine) -> None:
    fake = FakeResponses(REFUSED)
    with pytest.raises(Refused):
        await ask(fake, machine.keys, machine.provider(f"echo {KEY}"))
    assert (sent(fake), machine.runs) == ([KEY], 2)


async def test_other_refusals_say_nothing_of_the_key(machine: Machine) -> None:
    for status in (400, 403, 404):
        with pytest.raises(Refused):
            await ask(FakeResponses(Reply([], status)), machine.keys, machine.counting())
    assert machine.runs == 1


async def test_a_key_that_another_session_got_meanwhile_is_taken(machine: Machine) -> None:
    provider = machine.counting()
    with anyio.fail_after(20):
        assert await machine.keys.key(provider) == "key-1"
        assert await machine.keys.instead(provider, "key-1") == "key-2"
        assert await machine.keys.instead(provider, "key-1") == "key-2"
        assert machine.runs == 2


async def test_a_program_that_fails_when_a_key_was_refused_is_named(machine: Machine) -> None:
    provider = machine.provider(f"rm {machine.folder}/good && echo {KEY}")
    (machine.folder / "good").touch()
    with pytest.raises(LoginRequired, match=r"api_key_command sh failed \(exit code 1\)"):
        await ask(FakeResponses(REFUSED), machine.keys, provider)
    with pytest.raises(LoginRequired):
        await machine.keys.instead(provider, KEY)


async def test_a_key_file_is_read_again_when_its_key_was_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("old")
    file.chmod(0o600)
    given = {"base_url": "https://p.example/v1", "api_key_file": str(file), "max_retries": 0}
    provider, keys = Provider.model_validate(given), Keys({}, ignore)

    fake = FakeResponses(REFUSED)
    with pytest.raises(Refused):
        await ask(fake, keys, provider)
    assert sent(fake) == ["old"]
    file.write_text("new")
    assert await keys.instead(provider, "old") == "new"
    assert await keys.instead(provider, "new") is None


async def test_a_key_of_the_environment_is_sent_once() -> None:
    given = {"base_url": "https://p.example/v1", "api_key_env": "K"}
    fake = FakeResponses(REFUSED)
    with pytest.raises(Refused):
        await ask(fake, Keys({"K": KEY}, ignore), Provider.model_validate(given))
    assert sent(fake) == [KEY]


# -- what must not be seen


async def test_printed_keys_are_secrets_from_then_on(machine: Machine) -> None:
    provider = machine.counting()
    model = Model.model_validate({"provider": "p", "model": "m"})
    config = Config(default_model="m", providers={"p": provider}, models={"m": model})
    assert machine.keys.secrets(config) == ()
    with anyio.fail_after(20):
        await machine.keys.key(provider)
        await machine.keys.instead(provider, "key-1")
    assert set(machine.keys.secrets(config)) == {"key-1", "key-2"}
    assert machine.printed == ["key-1", "key-2"]


async def test_a_server_that_repeats_a_printed_key_does_not_make_it_known(machine: Machine) -> None:
    echo = Reply([f'{{"error":{{"message":"no {KEY}"}}}}'.encode()], 401)
    with pytest.raises(Refused, match=r"no \[hidden\]") as raised:
        await ask(FakeResponses(echo), machine.keys, machine.provider(f"echo {KEY}"))
    assert KEY not in repr(raised.value.fault)
