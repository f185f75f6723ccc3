"""What every test shares."""

import os

import pytest
from hypothesis import settings

# CI judges the change and not its luck: there the examples are the same every time.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI") == "true":
    settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite what transcripts expect")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
