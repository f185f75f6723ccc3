"""When the person is told that a provider's cache does nothing."""

from itertools import count

import pytest

from bridge.core.caching import Caching
from bridge.core.effects import Usage

OPENAI = "api.openai.com"
HIT, MISS, SHORT = Usage(5000, 9, 1), Usage(5000, 9), Usage(4000, 9)


def told(*usages: Usage, host: str = "p.example", pause: float = 1.0) -> list[int]:
    """After which answers, counted from 1, something was said."""
    caching = Caching()
    said = [caching.feed(usage, "p/m", host, number * pause) for number, usage in enumerate(usages)]
    return [number for number, text in zip(count(1), said, strict=False) if text]


@pytest.mark.parametrize(
    ("usages", "host", "expected"),
    [
        ([MISS] * 3, OPENAI, []),
        ([MISS] * 4, OPENAI, [4]),
        ([MISS] * 9, OPENAI, [4]),
        ([MISS] * 9, "r.openai.azure.com", [4]),
        ([MISS] * 9, "p.example", []),
        ([HIT, MISS, MISS, MISS], "p.example", [4]),
        ([MISS, MISS, MISS, MISS, HIT, MISS, MISS, MISS], "p.example", [8]),
        ([HIT, MISS, MISS, HIT, MISS, MISS], OPENAI, []),
        ([HIT, MISS, MISS, SHORT, MISS, MISS], OPENAI, []),
        ([SHORT] * 9, OPENAI, []),
    ],
)
def test_three_misses_in_a_row_on_a_server_that_caches_are_told_once(
    usages: list[Usage], host: str, expected: list[int]
) -> None:
    assert told(*usages, host=host) == expected


def test_what_a_server_forgets_meanwhile_is_no_miss() -> None:
    assert told(*[MISS] * 9, host=OPENAI, pause=241) == []
    assert told(*[MISS] * 9, host=OPENAI, pause=239) == [4]


def test_another_model_begins_with_an_empty_cache() -> None:
    caching = Caching()
    makers = ["p/a", "p/a", "p/a", "p/b", "p/b", "p/b", "p/a", "p/a", "p/a"]
    assert not any(caching.feed(MISS, maker, OPENAI, 1.0) for maker in makers)
    caching.feed(HIT, "p/c", "p.example", 1.0)
    assert not any(caching.feed(MISS, "p/d", "p.example", 1.0) for _ in range(9))


def test_the_sentence_names_the_tokens() -> None:
    caching = Caching()
    said = [caching.feed(MISS, "p/m", OPENAI, 1.0) for _ in range(4)]
    assert "all 15,000 tokens of input count in full" in (said[-1] or "")
