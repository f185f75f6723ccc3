"""The way to a server leads through a proxy, or not: as the usual variables say."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridge.errors import ConfigError, Unreachable
from bridge.responses.proxies import proxy_to, source_of_proxy
from tests.fake_proxy import FakeProxy
from tests.fake_responses import FakeResponses, Reply, said, stream
from tests.test_transport import HELLO, Place, ask, fault_of, secure

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_proxy")]

CERTIFICATE = Path(__file__).parent / "fixtures" / "responses" / "model.test.pem"
PASSWORD = "hunter2-and-more"
PLACE = Place(base_url="https://model.test/v1", ca_file=str(CERTIFICATE))


@asynccontextmanager
async def behind_a_proxy(
    fake: FakeResponses, password: str | None = None
) -> AsyncGenerator[tuple[FakeProxy, str]]:
    """The model's server with its own authority, reached by a proxy; gives it and its HOST:PORT."""
    async with secure(fake, CERTIFICATE) as base_url:
        proxy = FakeProxy(base_url, password)
        async with proxy.serve() as place:
            yield proxy, place


@pytest.mark.parametrize("scheme", ["http://", ""])
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
async def test_a_proxy_leads_to_a_server_of_a_private_authority(
    variable: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeResponses(HELLO)
    async with behind_a_proxy(fake) as (proxy, place):
        monkeypatch.setenv(variable, scheme + place)
        assert (await ask(None, PLACE)).text == "Hello"
    assert proxy.asked == ["CONNECT model.test:443 HTTP/1.1"]
    assert "proxy-authorization" not in fake.asked[0].headers


async def test_a_password_for_the_proxy_is_for_the_proxy_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeResponses(HELLO)
    async with behind_a_proxy(fake, f"me:{PASSWORD}") as (_, place):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:{PASSWORD}@{place}")
        assert (await ask(None, PLACE)).text == "Hello"
    assert PASSWORD not in repr(fake.asked)
    assert "proxy-authorization" not in fake.asked[0].headers


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("given", ["", f"me:{PASSWORD}x@"])
async def test_a_proxy_that_wants_another_password_is_named_by_its_variable(
    variable: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with behind_a_proxy(FakeResponses(), f"me:{PASSWORD}") as (proxy, place):
        monkeypatch.setenv(variable, f"http://{given}{place}")
        with pytest.raises(ConfigError) as raised:
            await ask(None, PLACE)
    assert str(raised.value).startswith(f"The proxy of {variable} wants a user and a password")
    assert PASSWORD not in str(raised.value)
    assert len(proxy.asked) == 1


async def test_a_proxy_for_plain_http_is_asked_for_the_whole_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeResponses(stream(said("Hello")), Reply([], 407))
    place = Place(base_url="http://gpu-box/v1")
    async with fake.serve() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.removesuffix("/v1"))
        assert (await ask(None, place)).text == "Hello"
        with pytest.raises(ConfigError, match=r"^The proxy of HTTP_PROXY wants a user"):
            await ask(None, place)
    assert [asked.target for asked in fake.asked] == ["http://gpu-box/v1/responses"] * 2


async def test_a_proxy_without_a_password_for_it_is_refused_though_no_variable_names_it() -> None:
    with pytest.raises(ConfigError, match=r"^The proxy of this system wants a user"):
        await ask(FakeResponses(Reply([], 407)), Place())


@pytest.mark.parametrize("host", ["model.test", ".test", "*"])
async def test_no_proxy_is_asked_for_a_host_that_is_named(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with behind_a_proxy(FakeResponses()) as (proxy, place):
        monkeypatch.setenv("HTTPS_PROXY", f"http://{place}")
        monkeypatch.setenv("NO_PROXY", f"other.test,{host}")
        with pytest.raises(Unreachable, match=r"^No connection to model\.test \(its name is"):
            await ask(None, PLACE)
    assert proxy.asked == []


@pytest.mark.parametrize(
    ("entries", "host", "spared"),
    [
        ("model.test", "model.test", True),
        ("model.test", "eu.model.test", True),
        ("model.test", "notmodel.test", False),
        ("a, *.model.test ,b", "eu.model.test", True),
        ("MODEL.test", "model.test", True),
        ("https://model.test", "model.test", True),
        ("*", "model.test", True),
        ("", "model.test", False),
        (",.,", "model.test", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "model.test", False),
        ("fd00::/8", "fd12::1", True),
        ("[fd12::1]", "fd12::1", True),
        ("10.1.2.3/8/9", "10.1.2.3", False),
    ],
)
def test_what_stands_in_no_proxy(
    entries: str, host: str, spared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.test:1")
    monkeypatch.setenv("NO_PROXY", entries)
    written = f"[{host}]" if ":" in host else host
    proxy = proxy_to(f"https://{written}/v1")
    assert proxy == (None if spared else "http://proxy.test:1")


def test_each_scheme_has_its_proxy_and_some_have_one_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://all.test")
    monkeypatch.setenv("HTTP_PROXY", "http://plain.test")
    assert proxy_to("http://gpu-box/v1") == "http://plain.test"
    assert proxy_to("https://model.test/v1") == "http://all.test"
    assert proxy_to("http://localhost:1/v1") is None
    assert (source_of_proxy("http://gpu-box/v1"), source_of_proxy("https://model.test/v1")) == (
        "HTTP_PROXY",
        "ALL_PROXY",
    )


async def test_no_proxy_stands_between_this_machine_and_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeResponses(HELLO)
    async with fake.serve() as base_url, behind_a_proxy(FakeResponses()) as (proxy, place):
        monkeypatch.setenv("ALL_PROXY", f"http://{place}")
        assert (await ask(None, Place(base_url=base_url))).text == "Hello"
    assert proxy.asked == []


async def test_a_proxy_that_is_not_there_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with behind_a_proxy(FakeResponses()) as (_, place):
        pass
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{PASSWORD}@{place}")
    fault = await fault_of(None, PLACE)
    assert "No connection to model.test (nobody answers there, by way of HTTPS_PROXY)" in (
        fault.message
    )
    assert PASSWORD not in repr(fault)
