"""What every test shares."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite what transcripts expect")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
