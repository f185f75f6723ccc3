"""What answers cost: tokens and prices in, an amount out.

Rule 1: what the server itself reports counts more than a table of prices.
Rule 2: amounts of one currency are added up and never those of two.
"""

from collections.abc import Iterable
from typing import Protocol

from bridge.core.effects import Usage
from bridge.core.records import Cost

_MILLION = 1_000_000
_DIGITS = 9
"""After the point: sums of binary fractions have no use for more."""


class Price(Protocol):
    """What a million tokens cost."""

    @property
    def input(self) -> float: ...
    @property
    def cached_input(self) -> float | None: ...
    @property
    def output(self) -> float: ...
    @property
    def currency(self) -> str: ...


def cost_of(usage: Usage, price: Price | None) -> Cost | None:
    """What one answer cost; None where nobody knows."""
    if usage.cost is not None:
        return Cost(usage.cost, "USD")
    if price is None:
        return None
    cached = min(usage.cached_tokens, usage.input_tokens)
    rate = price.input if price.cached_input is None else price.cached_input
    fresh = (usage.input_tokens - cached) * price.input
    amount = (fresh + cached * rate + usage.output_tokens * price.output) / _MILLION
    return Cost(round(amount, _DIGITS), price.currency)


def total(costs: Iterable[Cost | None]) -> Cost | None:
    """All of it in the currency of the last one; None where there is none."""
    known = [cost for cost in costs if cost is not None]
    if not known:
        return None
    currency = known[-1].currency
    amounts = (cost.amount for cost in known if cost.currency == currency)
    return Cost(round(sum(amounts), _DIGITS), currency)
