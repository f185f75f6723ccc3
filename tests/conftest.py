"""What every test shares."""

import os

import pytest
from hypothesis import settings

# No test judges how busy the machine is. CI judges the change and not its luck: there the examples
# are the same every time.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite what transcripts expect")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
