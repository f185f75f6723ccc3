"""What a session has used and spent, and how that is told."""

import pytest

from bridge.config import Price
from bridge.core.effects import Failed, Finished, Usage
from bridge.core.meter import Meter, Taken
from bridge.core.prefix import Kept
from bridge.core.records import Compacted, Cost, Metered, Record, Responded, Told
from bridge.errors import Fault

FAULT = Fault("server_error", "It broke.")
PRICE = Price(input=1.0, output=2.0)


def finished(usage: Usage | None, upstream: str = "") -> Finished:
    return Finished("completed", (), (), usage, upstream=upstream)


def answered(metered: Metered | None = None, cost: Cost | None = None, used: int = 7) -> Record:
    return Responded(1, "p/m", (), (), used, cost, metered)


def metered(*records: Record) -> Meter:
    meter = Meter()
    for record in records:
        meter.add(record)
    return meter


def test_every_attempt_at_an_answer_counts() -> None:
    taken = Taken()
    assert (taken.metered, taken.cost) == (None, None)
    taken.add(Failed(FAULT), PRICE)
    taken.add(finished(None), PRICE)
    assert (taken.metered, taken.cost) == (None, None)
    taken.add(Failed(FAULT, Usage(1_000_000, 0)), PRICE)
    taken.add(finished(Usage(1_000_000, 500_000, 200_000), "Nebius"), PRICE)
    taken.went_on(None)
    assert taken.metered == Metered(2_000_000, 500_000, 200_000, "Nebius")
    assert taken.cost == Cost(3.0, "USD")
    taken.went_on(Kept(50, 40, "tools"))
    taken.add(finished(Usage(1, 0, 9)), None)  # more from the cache than there was
    expected = Metered(2_000_001, 500_000, 200_001, "Nebius", 50, 40, "tools")
    assert taken.metered == expected


def test_what_is_known_without_usage_is_kept_too() -> None:
    taken = Taken()
    taken.went_on(Kept(50, 50))
    taken.add(finished(None, "Nebius"), PRICE)
    assert taken.metered == Metered(upstream="Nebius", before=50, kept=50)


def test_the_first_answer_of_unknown_cost_is_noticed() -> None:
    meter, told = Meter(), list[bool]()
    for cost in (Cost(1.0, "USD"), None, Cost(1.0, "USD"), None):
        meter.add(answered(Metered(1, 4), cost))
        told.append(meter.has_lost_count)
    assert told == [False, True, False, False]
    assert not Meter().has_lost_count
    assert not metered(answered(Metered(upstream="Nebius"))).has_lost_count


def test_tokens_and_costs_are_added_up() -> None:
    def check(*records: Record, tokens: int, spent: float, cost: Cost | None) -> None:
        meter = metered(*records)
        assert (meter.tokens, meter.spent, meter.cost) == (tokens, spent, cost)

    euro, dollar = Cost(0.5, "EUR"), Cost(1.0, "USD")
    check(tokens=0, spent=0, cost=None)
    check(Told("n1", "Hi"), tokens=0, spent=0, cost=None)
    check(answered(), tokens=7, spent=0, cost=None)  # as older programs wrote it
    check(answered(used=0), tokens=0, spent=0, cost=None)
    check(answered(Metered(5, 4, 3)), tokens=9, spent=0, cost=None)
    check(
        answered(Metered(5, 4), dollar),
        Compacted(1, "S", 2, euro, Metered(50, 4)),
        tokens=63,
        spent=1.5,
        cost=euro,
    )


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], []),
        ([answered()], []),
        (
            [answered(Metered(1000, 20))],
            ["Tokens: 1 answer: 1,000 tokens in (0 from the cache, 0 %), 20 out",
             "Last answer: 1,000 tokens in (0 from the cache, 0 %), 20 out"],
        ),
        (
            [answered(Metered(upstream="Nebius"))],
            ["Tokens: 1 answer: 0 tokens in (0 from the cache, 0 %), 0 out",
             "Last answer: 0 tokens in (0 from the cache, 0 %), 0 out; served by Nebius"],
        ),
        (
            [answered(Metered(1000, 20, 0), Cost(0.5, "EUR")),
             answered(Metered(2000, 30, 1999, "West US", 3000, 3000), Cost(0.001, "USD"))],
            ["Tokens: 2 answers: 3,000 tokens in (1,999 from the cache, 66 %), 50 out",
             "Cost: 0.001 USD and 0.50 EUR",
             "Last answer: 2,000 tokens in (1,999 from the cache, 99 %), 30 out; 0.001 USD; "
             "began with 100 % of the request before; served by West US",
             "Requests kept: 100 % of the bytes of each request began the next one; "
             "1 of 1 went on from the whole one before"],
        ),
        (
            [answered(Metered(9, 1), Cost(0.5, "EUR")), answered(Metered(9, 1))],
            ["Tokens: 2 answers: 18 tokens in (0 from the cache, 0 %), 2 out",
             "Cost: 0.50 EUR, and 1 of unknown cost",
             "Last answer: 9 tokens in (0 from the cache, 0 %), 1 out"],
        ),
        (
            [answered(Metered(9, 1, before=100, kept=50, broke="instructions")),
             answered(Metered(9, 1, before=100, kept=100))],
            ["Tokens: 2 answers: 18 tokens in (0 from the cache, 0 %), 2 out",
             "Last answer: 9 tokens in (0 from the cache, 0 %), 1 out; "
             "began with 100 % of the request before",
             "Requests kept: 75 % of the bytes of each request began the next one; 1 of 2 went on "
             "from the whole one before; the last that did not differed in its instructions"],
        ),
    ],
)  # fmt: skip
def test_a_person_is_told_of_it(records: list[Record], expected: list[str]) -> None:
    assert [f"{name}: {text}" for name, text in metered(*records).report()] == expected
