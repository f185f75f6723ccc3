"""Who behind a server answered, as far as the server says it."""

from typing import Any

import pytest

from bridge.responses.upstream import HEADERS, upstream_in, upstream_of

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize("name", HEADERS)
def test_every_header_that_says_it_is_read(name: str) -> None:
    assert upstream_of({name: "West US 3"}) == "West US 3"


def test_only_what_can_be_a_name_or_a_host_is_taken() -> None:
    def check(value: str, expected: str) -> None:
        assert upstream_of({"x-litellm-model-api-base": value}) == expected

    check("", "")
    check("https://api.fireworks.ai/inference/v1", "api.fireworks.ai")
    check("https://me:secret@host:8443/v1?key=1", "host:8443")
    check("http://127.0.0.1:11434", "127.0.0.1:11434")
    check("https://[::1", "")
    check("https://", "")
    check("Provider (EU), fast", "")
    check("a\nb", "")
    check("x" * 81, "")
    check("Mistral é", "")


def test_a_key_that_comes_back_is_not_taken() -> None:
    assert upstream_of({"x-ms-region": KEY}, [f"Bearer {KEY}"]) == ""
    assert upstream_of({"x-ms-region": f"a-{KEY}"}, [KEY]) == ""
    assert upstream_of({"x-ms-region": "Bearer"}, [f"Bearer {KEY}"]) == "Bearer"


def test_the_first_header_that_says_something_counts() -> None:
    assert upstream_of({}) == ""
    assert upstream_of({"x-request-id": "r1"}) == ""
    assert upstream_of({"x-ms-region": "UK South", "x-inference-provider": "groq"}) == "groq"
    assert upstream_of({"x-ms-region": "UK South", "x-inference-provider": ""}) == "UK South"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({}, ""),
        ({"provider": "Amazon Bedrock"}, "Amazon Bedrock"),
        ({"provider": {"name": "x"}}, ""),
        ({"provider": "a\x1b[31m"}, ""),
        ({"openrouter_metadata": {"endpoints": {"available": [
            {"provider": "A", "selected": False}, 7, {"provider": "B", "selected": True}]}}}, "B"),
        ({"openrouter_metadata": {"endpoints": {"available": [{"selected": True}]}}}, ""),
        ({"openrouter_metadata": {"endpoints": {"available": [{"provider": "A"}]}}}, ""),
        ({"openrouter_metadata": {"endpoints": {"available": 7}}}, ""),
        ({"openrouter_metadata": {"endpoints": []}}, ""),
        ({"openrouter_metadata": "x"}, ""),
    ],
)  # fmt: skip
def test_a_response_that_says_it_is_read(response: Any, expected: str) -> None:
    assert upstream_in(response) == expected
