"""How much of a request the next one begins with."""

from typing import Any

from bridge.core.prefix import Kept, Prefix


def body(*items: object, instructions: str = "Be.", **more: Any) -> dict[str, Any]:
    return {"model": "m", "instructions": instructions, "tools": ["t"], "input": [*items], **more}


def kept(*bodies: dict[str, Any]) -> Kept | None:
    """What the last of these requests has of the one before it."""
    prefix = Prefix()
    return [prefix.feed("p/m", one) for one in bodies][-1]


SIZE = len('"Be."' + '["t"]')


def test_a_request_that_goes_on_keeps_all_of_the_one_before() -> None:
    assert kept(body()) is None
    assert kept(body(), body()) == Kept(SIZE, SIZE)
    assert kept(body("a"), body("a", "b")) == Kept(SIZE + 3, SIZE + 3)
    assert kept(body("a"), body("a", "b"), body("a", "b", "c")) == Kept(SIZE + 6, SIZE + 6)
    assert kept(body("a"), body("a", reasoning={"effort": "low"})) == Kept(SIZE + 3, SIZE + 3)
    assert kept({"input": []}, {"input": ["a"]}) == Kept(4, 4)


def test_what_differs_first_is_named_and_what_comes_before_it_counted() -> None:
    def check(before: dict[str, Any], after: dict[str, Any], same: int, broke: str) -> None:
        found = kept(before, after)
        assert found == Kept(found.of if found else 0, same, broke)

    check(body("a"), body("a", instructions="Be!"), 3, "instructions")
    check(body("a"), body("a", instructions="Bee"), 3, "instructions")
    check(body("a"), body("a", tools=["u"]), 5 + 2, "tools")
    check(body("a"), body("a", tools=["t", "u"]), 5 + 4, "tools")
    check(body("one", "two"), body("one", "tWo"), SIZE + 5 + 2, "input")
    check(body("one", "two"), body("one"), SIZE + 5, "input")
    check(body("é"), body("è"), SIZE + 2, "input")
    check(body({"a": 1, "b": 2}), body({"b": 2, "a": 1}), SIZE + 2, "input")


def test_another_model_begins_anew() -> None:
    prefix = Prefix()
    makers = ["p/a", "p/a", "p/b", "p/a", "p/a"]
    found = [prefix.feed(maker, body("x")) is not None for maker in makers]
    assert found == [False, True, False, False, True]
