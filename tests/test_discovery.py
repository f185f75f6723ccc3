"""Servers are asked for their models; the sessions are offered them, now and at the next start."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio
import httpx
import pytest

from bridge.acp.editor import SessionEditor
from bridge.catalogues import Catalogues
from bridge.config import Config, Provider, load
from bridge.core.handshake import Capabilities
from bridge.core.records import Opened
from bridge.core.wire import Json
from bridge.discovery import Discovery
from bridge.errors import BadStream, ConfigError, ModelError
from bridge.options import set_option
from bridge.responses.transport import Transport
from bridge.session import Session
from bridge.store import Store
from tests.test_transport import Place

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:1/v1"
SETTINGS = f"""
[providers.p]
base_url = "{URL}"
discover = true
[models.m]
provider = "p"
[models.big]
provider = "p"
context_window = 100000
"""


def listed(*names: str, owner: str = "x", **windows: int) -> Json:
    entries = [{"id": name, "owned_by": owner} for name in names]
    entries += [{"id": name, "max_model_len": window} for name, window in windows.items()]
    return cast("Json", {"data": entries})


@dataclass(eq=False)
class Machine:
    """A state directory, a configuration, and servers that answer what a test says."""

    folder: Path
    settings: str = SETTINGS
    answers: dict[str, Json] = field(default_factory=dict[str, Json])
    asked: list[str] = field(default_factory=list[str])
    told: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    now: float = 0.0
    sessions: list[Session] = field(default_factory=list[Session])

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin a new process."""
        self.catalogues = Catalogues(self.folder / "state")
        self.discovery = Discovery(self.catalogues, self.fetch, clock=lambda: self.now)
        self.sessions.clear()

    def config(self) -> Config:
        file = self.folder / "config.toml"
        file.write_text(self.settings, encoding="utf-8")
        return self.catalogues.opened(load(str(file), {}))

    async def fetch(self, provider: Provider, url: str, body: Json) -> Json:
        self.asked.append(url.removeprefix("http://127.0.0.1:1"))
        if url not in self.answers:
            raise ConfigError("nothing there")
        return self.answers[url]

    def raw(self, line: bytes) -> None:
        self.told.append(json.loads(line)["params"]["update"])

    def editor(self, session: Session) -> SessionEditor:
        return SessionEditor(cast("Any", self), Capabilities(notices=True), session.id)

    async def session(self) -> Session:
        """Open a session; when it is given, the servers have been asked."""
        config = self.config()
        opened = Opened(f"s{len(self.sessions)}", "/w", "t", "default", "m", None, "ask")
        session = Session(config, opened, Store(None).create(opened))
        self.sessions.append(session)
        with anyio.fail_after(10):
            await self.discovery.run(config, lambda: [(s, self.editor(s)) for s in self.sessions])
        return session

    def choices(self) -> list[str]:
        """The models that the last update offers."""
        option = next(one for one in self.told[-1]["configOptions"] if one["id"] == "model")
        return [choice["value"] for choice in option["options"]]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


async def test_models_are_offered_and_known_at_the_next_start(machine: Machine) -> None:
    machine.answers[f"{URL}/models"] = listed("m", "whisper-1", new=5)
    session = await machine.session()
    assert [update["sessionUpdate"] for update in machine.told] == ["config_option_update"]
    assert machine.choices() == ['["p","m"]', '["p","big"]', '["p","p/new"]']
    set_option(session, "model", '["p","p/new"]')
    assert (session.model.model, session.model.context_window) == ("new", 5)

    machine.told.clear()
    machine.start()
    assert list(machine.config().models) == ["m", "big", "p/new"]
    await machine.session()
    assert machine.told == []
    assert (machine.folder / "state" / "models.json").stat().st_mode & 0o077 == 0


async def test_only_the_servers_are_asked_that_the_user_names_for_it(machine: Machine) -> None:
    machine.settings += '[providers.q]\nbase_url = "http://127.0.0.1:2/v1"\n'
    machine.answers[f"{URL}/models"] = listed(n=5)
    await machine.session()
    assert machine.asked == ["/v1/models"]


async def test_all_open_sessions_are_told_and_a_server_is_asked_once_an_hour(
    machine: Machine,
) -> None:
    machine.answers[f"{URL}/models"] = listed("m", big=200000)
    await machine.session()
    machine.answers[f"{URL}/models"] = listed("m", "n", big=200000)
    machine.now = 3599
    await machine.session()
    assert machine.asked.count("/v1/models") == 1
    machine.now = 3600
    await machine.session()
    assert machine.asked.count("/v1/models") == 2
    assert len(machine.told) == 3
    assert machine.choices()[-1] == '["p","p/n"]'


async def test_a_server_that_does_not_answer_changes_nothing(machine: Machine) -> None:
    machine.answers[f"{URL}/models"] = listed("m", "n")
    await machine.session()
    machine.answers.clear()
    machine.told.clear()
    machine.start()
    await machine.session()
    assert machine.told == []
    assert "p/n" in machine.config().models


async def test_a_server_that_is_not_to_be_asked_is_not(machine: Machine) -> None:
    machine.settings = SETTINGS.replace("discover = true", "")
    machine.answers[f"{URL}/models"] = listed("n")
    session = await machine.session()
    assert (machine.asked, list(session.config.models)) == ([], ["m", "big"])


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ({"/v1/models": listed("m", "big", owner="llamacpp"),
          "/props": {"default_generation_settings": {"n_ctx": 4096}}}, ["/v1/models", "/props"]),
        ({"/v1/models": listed("m:latest", "big", owner="library"),
          "/api/ps": {"models": [{"name": "m:latest", "context_length": 4096},
                                 {"name": "big:latest", "context_length": 4096}]}},
         ["/v1/models", "/api/ps"]),
        ({"/v1/models": listed("m", "big", owner="library"), "/api/ps": {"models": []},
          "/api/show": {"parameters": "num_ctx 4096"}},
         ["/v1/models", "/api/ps", "/api/show", "/api/show"]),
        ({"/v1/models": listed(m=4096, big=4096)}, ["/v1/models"]),
    ],
)  # fmt: skip
async def test_the_context_that_a_local_server_gives_is_filled_in_or_warned_of_once(
    answers: Mapping[str, Json], asked: list[str], machine: Machine
) -> None:
    machine.answers = {f"http://127.0.0.1:1{path}": answer for path, answer in answers.items()}
    session = await machine.session()
    assert machine.asked == asked
    assert session.config.models["m"].context_window == 4096
    assert session.config.models["big"].context_window == 100000
    warnings = [one["title"] for one in machine.told if one["sessionUpdate"] == "notice"]
    assert len(warnings) == 1
    assert warnings[0].startswith(
        "big is configured with context_window = 100000, but its server gives it 4096: what is"
    )
    machine.told.clear()
    machine.now = 3600
    await machine.session()
    assert machine.told == []


async def test_a_window_that_was_filled_in_follows_the_server(machine: Machine) -> None:
    for window in (8192, 4096):
        machine.start()
        machine.answers[f"{URL}/models"] = listed(m=window)
        session = await machine.session()
        assert session.config.models["m"].context_window == window
    assert not any(one["sessionUpdate"] == "notice" for one in machine.told)


async def test_a_server_that_tells_no_context_is_asked_no_more_than_it_knows(
    machine: Machine,
) -> None:
    machine.answers[f"{URL}/models"] = listed("m")
    session = await machine.session()
    assert session.config.models["m"].context_window is None
    assert machine.told == []
    machine.settings = SETTINGS.replace(URL, "https://h.example/v1")
    machine.answers["https://h.example/v1/models"] = listed("m")
    machine.asked.clear()
    await machine.session()
    assert machine.asked == ["https://h.example/v1/models"]


@pytest.mark.parametrize("text", ["{", "[]", '{"u": [{"x": 1}]}', '{"u": 7}', '{"u": [7]}'])
async def test_a_list_on_disk_that_is_damaged_is_none(text: str, machine: Machine) -> None:
    (machine.folder / "state").mkdir()
    (machine.folder / "state" / "models.json").write_text(text)
    assert list(machine.config().models) == ["m", "big"]


async def test_a_list_that_cannot_be_kept_is_still_offered(machine: Machine) -> None:
    (machine.folder / "state").write_text("no folder")
    machine.answers[f"{URL}/models"] = listed("n")
    await machine.session()
    assert machine.choices()[-1] == '["p","p/n"]'
    machine.catalogues = Catalogues(None)
    machine.discovery = Discovery(machine.catalogues, machine.fetch)
    await machine.session()
    assert machine.choices()[-1] == '["p","p/n"]'


# -- the request


async def fetch(handle: Any, body: Json = None) -> Json:
    place = Place(query={"v": "1"})
    with anyio.fail_after(10):
        async with Transport(httpx.MockTransport(handle)) as transport:
            return await transport.fetch(place, "http://model.test/v1/models", body)


async def test_a_list_is_fetched_with_the_key_and_the_query() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"].startswith("Bearer ")
        body = json.loads(request.content or b"null")
        return httpx.Response(200, json=[request.method, request.url.raw_path.decode(), body])

    assert await fetch(handle) == ["GET", "/v1/models?v=1", None]
    assert await fetch(handle, {"model": "m"}) == ["POST", "/v1/models?v=1", {"model": "m"}]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (httpx.Response(404, json={}), ModelError),
        (httpx.Response(302, headers={"location": "http://evil.test"}), ModelError),
        (httpx.Response(200, text="<html>"), BadStream),
        (httpx.ConnectError("x"), ModelError),
        (httpx.ProxyError("407 Proxy Authentication Required"), ConfigError),
    ],
)
async def test_a_list_that_cannot_be_fetched_is_a_typed_failure(
    answer: httpx.Response | Exception, kind: type[Exception]
) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(kind):
        await fetch(handle)


# -- windows, where no list was asked for

OLLAMA = SETTINGS.replace("discover = true", 'quirks = "ollama"')


async def test_a_server_that_cuts_off_in_silence_is_asked_for_its_windows_in_any_case(
    machine: Machine,
) -> None:
    async def check(kind: str, expected: list[str]) -> None:
        machine.settings = OLLAMA.replace("ollama", kind)
        machine.answers = {
            f"{URL}/models": listed("m", "big", "other", owner="llamacpp"),
            "http://127.0.0.1:1/props": {"default_generation_settings": {"n_ctx": 4096}},
        }
        machine.asked.clear()
        machine.told.clear()
        machine.start()
        session = await machine.session()
        assert (machine.asked, list(session.config.models)) == (expected, ["m", "big"])
        assert session.config.models["m"].context_window == (4096 if expected else None)
        assert [one["title"][:30] for one in machine.told] == (
            ["big is configured with context"] if expected else []
        )

    await check("vllm", [])
    await check("llama.cpp", ["/v1/models", "/props"])
    await check("ollama", ["/v1/models", "/props"])


async def test_a_window_is_known_at_the_next_start_though_no_model_is_added(
    machine: Machine,
) -> None:
    machine.settings = OLLAMA
    machine.answers[f"{URL}/models"] = listed("other", m=4096)
    await machine.session()
    machine.start()
    assert list(machine.config().models) == ["m", "big"]
    assert machine.config().models["m"].context_window == 4096


async def test_only_a_server_of_ones_own_is_asked_for_its_windows(machine: Machine) -> None:
    machine.settings = OLLAMA.replace(URL, "https://ollama.example/v1")
    await machine.session()
    assert machine.asked == []
