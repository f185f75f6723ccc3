"""What every test shares."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import pairing, wheels
from tests import toad as terminal_client

# A shell has what it runs beside itself ignore the interrupt, and with it all that this starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# CI judges the change and not its luck: there the examples are the same every time.
# How long an example takes says more of the machine than of the program.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite what transcripts expect")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """A test fails in which a request was made that a server would refuse."""
    pairing.BROKEN.clear()
    yield
    assert not pairing.BROKEN


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual variables name neither a proxy nor a certificate."""
    for name in ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all packages that come with the program, for the Python that runs the tests."""
    return wheels.fetch(tmp_path_factory.mktemp("house"))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("built")
    wheels.build(wheels.HOME, folder)
    return folder


@pytest.fixture(scope="session")
def toad(tmp_path_factory: pytest.TempPathFactory) -> terminal_client.Toad:
    """Toad, installed."""
    return terminal_client.installed(tmp_path_factory.mktemp("toad"))
