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
    sums = by_currency(costs)
    return sums[-1] if sums else None


def by_currency(costs: Iterable[Cost | None]) -> list[Cost]:
    """All of it in each currency, the one that came last at the end."""
    sums: dict[str, float] = {}
    for cost in costs:
        if cost is not None:
            sums[cost.currency] = sums.pop(cost.currency, 0.0) + cost.amount
    return [Cost(round(amount, _DIGITS), currency) for currency, amount in sums.items()]


def told(costs: Iterable[Cost | None]) -> str:
    """All of it in words: two digits after the point, and more for what is less than that."""
    return " and ".join(
        f"{_decimal(cost.amount)} {cost.currency}" for cost in reversed(by_currency(costs))
    )


def _decimal(amount: float) -> str:
    """No amount but 0 is told as 0."""
    text = f"{amount:.2f}"
    return text if amount == 0 or float(text) else f"{amount:.{_DIGITS}f}".rstrip("0")
