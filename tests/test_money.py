"""What answers cost."""

from bridge.config import Price
from bridge.core.effects import Usage
from bridge.core.money import cost_of, told, total
from bridge.core.records import Cost

PRICE = Price(input=2.0, cached_input=0.5, output=10.0, currency="EUR")
FLAT = Price(input=2.0, output=10.0)
USD, EUR = "USD", "EUR"


def test_an_answer_costs_what_its_tokens_cost() -> None:
    def check(usage: Usage, price: Price | None, expected: Cost | None) -> None:
        assert cost_of(usage, price) == expected

    check(Usage(1_000_000, 100_000), PRICE, Cost(3.0, EUR))
    check(Usage(1_000_000, 100_000, cached_tokens=500_000), PRICE, Cost(2.25, EUR))
    check(Usage(1_000_000, 0, cached_tokens=500_000), FLAT, Cost(2.0, USD))
    check(Usage(10, 0, cached_tokens=500), PRICE, Cost(0.000005, EUR))
    check(Usage(), PRICE, Cost(0.0, EUR))
    check(Usage(10, 10), None, None)
    # the server's own word
    check(Usage(10, 10, cost=0.25), PRICE, Cost(0.25, USD))
    check(Usage(10, 10, cost=0.0), PRICE, Cost(0.0, USD))
    check(Usage(10, 10, cost=0.25), None, Cost(0.25, USD))


def test_only_amounts_of_one_currency_are_added_up() -> None:
    def check(*costs: Cost | None, expected: Cost | None) -> None:
        assert total(costs) == expected

    check(expected=None)
    check(None, expected=None)
    check(Cost(0.1, USD), None, Cost(0.2, USD), expected=Cost(0.3, USD))
    check(Cost(0.1, USD), Cost(1.0, EUR), None, expected=Cost(1.0, EUR))
    check(Cost(0.1, USD), Cost(1.0, EUR), Cost(0.1, USD), expected=Cost(0.2, USD))
    check(Cost(1.0, USD), Cost(4e-10, USD), expected=Cost(1.0, USD))
    check(Cost(1.0, EUR), Cost(0.0, USD), Cost(1.0, EUR), expected=Cost(2.0, EUR))


def test_amounts_are_told_by_currency_the_last_one_first() -> None:
    def check(*costs: Cost | None, expected: str) -> None:
        assert told(costs) == expected

    check(None, expected="")
    check(Cost(0.0, USD), expected="0.00 USD")
    check(Cost(1234.5, USD), expected="1234.50 USD")
    check(Cost(0.005, USD), expected="0.01 USD")
    check(Cost(0.0021, USD), expected="0.0021 USD")
    check(Cost(0.000000001, USD), expected="0.000000001 USD")
    check(Cost(1.0, EUR), None, Cost(2.0, USD), Cost(1.0, EUR), expected="2.00 EUR and 2.00 USD")
