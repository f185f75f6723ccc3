"""Whole sessions, counted: what the streams gave is what is told, and what the limits look at."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bridge import log
from tests.fake_editor import choose
from tests.fake_responses import (
    EVENT_STREAM,
    Event,
    FakeResponses,
    Reply,
    called,
    failed,
    said,
    stream,
)
from tests.laws import Message
from tests.stage import Stage, stage

pytestmark = pytest.mark.anyio

PRICE = {"input": 1.75, "cached_input": 0.175, "output": 14.0, "currency": "EUR"}
SETTINGS = {"context_window": 400_000, "price": PRICE}
MILLION = 1_000_000


def usage(taken: int, given: int, cached: int = 0, **more: Any) -> dict[str, Any]:
    details = {"input_tokens_details": {"cached_tokens": cached}}
    return {"input_tokens": taken, "output_tokens": given, **details, **more}


def turn(number: int) -> list[list[Event]]:
    """A turn that reads a file: two answers, of which the second one finds much in the cache."""
    first = usage(1000 + 37 * number, 11 + number, 900 * (number > 0))
    second = usage(1100 + 37 * number, 23 + 3 * number, 1000 + 37 * number)
    call = called(f"c{number}", "read", '{"file_path":"a.txt"}')
    return [stream(call, usage=first), stream(said(f"Answer {number}"), usage=second)]


def usages(scripts: Sequence[Sequence[Event]]) -> list[dict[str, Any]]:
    """What the streams gave."""
    return [script[-1]["response"]["usage"] for script in scripts]


def price(given: dict[str, Any]) -> Fraction:
    """What one answer costs, to the last digit."""
    cached = given["input_tokens_details"]["cached_tokens"]
    fresh = given["input_tokens"] - cached
    tokens = ((fresh, "input"), (cached, "cached_input"), (given["output_tokens"], "output"))
    rates = {name: Fraction(str(rate)) for name, rate in PRICE.items() if name != "currency"}
    return sum((count * rates[name] for count, name in tokens), Fraction()) / MILLION


def updates(play: Stage) -> list[Message]:
    return play.editor.updates("usage_update")


async def status(play: Stage) -> str:
    """What /status says, but for the lines that are about no sum."""
    before = len(play.editor.text())
    await play.prompt("/status")
    lines = play.editor.text()[before:].splitlines()
    names = ("- Context", "- Tokens", "- Cost", "- Last answer", "- Requests kept")
    return "\n".join(line for line in lines if line.startswith(names))


async def load(play: Stage, session: str) -> None:
    play.session = session
    cwd = str(play.workspace)
    await play.editor.request("session/load", {"sessionId": session, "cwd": cwd, "mcpServers": []})


async def test_twenty_turns_cost_what_their_streams_gave_before_and_after_a_load(
    tmp_path: Path,
) -> None:
    scripts = [script for number in range(20) for script in turn(number)]
    given = usages(scripts)
    last = turn(20)
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("hello\n")
    async with stage(tmp_path, FakeResponses(*scripts), settings=SETTINGS) as play:
        for number in range(20):
            assert await play.prompt(f"Turn {number}") == {"stopReason": "end_turn"}
        sums = [price(one) for one in given]
        for number, update in enumerate(updates(play)):
            one = given[number]
            assert update["used"] == one["input_tokens"] + one["output_tokens"]
            assert update["size"] == 400_000
            cost = round(float(sum(sums[: number + 1], Fraction())), 9)
            assert update["cost"] == {"amount": cost, "currency": "EUR"}
        assert len(updates(play)) == 40
        before, final = await status(play), updates(play)[-1]

        taken = sum(one["input_tokens"] for one in given)
        cached = sum(one["input_tokens_details"]["cached_tokens"] for one in given)
        out = sum(one["output_tokens"] for one in given)
        cost = f"{float(sums[-1]):.9f}".rstrip("0")
        assert before.splitlines() == [
            f"- Context: about {final['used']} of 400000 tokens (0 %)",
            f"- Tokens: 40 answers: {taken:,} tokens in ({cached:,} from the cache, "
            f"{100 * cached // taken} %), {out:,} out",
            f"- Cost: {final['cost']['amount']:.2f} EUR",
            "- Last answer: 1,803 tokens in (1,703 from the cache, 94 %), 80 out; "
            f"{cost} EUR; began with 100 % of the request before",
            "- Requests kept: 100 % of the bytes of each request began the next one; "
            "39 of 39 went on from the whole one before",
        ]
        session = play.session

    async with stage(tmp_path, FakeResponses(*last), settings=SETTINGS) as play:
        await load(play, session)
        assert await status(play) == before
        assert updates(play)[-1] == final
        assert await play.prompt("Turn 20") == {"stopReason": "end_turn"}
        cost = round(float(sum(map(price, [*given, *usages(last)]), Fraction())), 9)
        assert updates(play)[-1]["cost"] == {"amount": cost, "currency": "EUR"}


async def test_what_breaks_the_row_of_requests_is_told(tmp_path: Path) -> None:
    model = FakeResponses(*[stream(said("Yes")) for _ in range(5)], forgets=True)
    async with stage(tmp_path, model) as play:
        await play.prompt("One")
        await play.prompt("/plan Two")
        told = await status(play)
        assert "0 of 1 went on from the whole one before; the last that did not " in told
        assert told.endswith("differed in its instructions")
        await play.prompt("Three")
        assert "1 of 2 went on from the whole one before; the last that" in await status(play)
        await play.prompt("/compact")
        await play.prompt("Four")
        told = await status(play)
    assert told.endswith("2 of 4 went on from the whole one before; the last that did not differed "
                         "in its input")  # fmt: skip
    assert {asked.body["prompt_cache_key"] for asked in model.asked} == {play.session}


async def test_every_attempt_is_counted_once(tmp_path: Path) -> None:
    broken = failed(said("Hel"))
    broken[-1]["response"]["usage"] = usage(100, 1)
    thought = stream(usage=usage(200, 2))
    whole = stream(said("Hello"), usage=usage(300, 3))
    model = FakeResponses(thought, broken, whole)
    provider = {"max_retries": 1}
    async with stage(tmp_path, model, provider=provider, settings=SETTINGS) as play:
        assert await play.prompt() == {"stopReason": "end_turn"}
        told = await status(play)
        assert "- Tokens: 1 answer: 600 tokens in (0 from the cache, 0 %), 6 out" in told


async def test_who_served_a_request_is_told_and_logged(tmp_path: Path) -> None:
    headers = {**EVENT_STREAM, "x-ms-region": "West US 3"}
    scripts = [Reply(stream(said("One")), headers=headers), stream(said("Two"), provider="Nebius")]
    log.start(tmp_path / "log")
    try:
        async with stage(tmp_path, FakeResponses(*scripts, stream(said("Three")))) as play:
            for served in ("; served by West US 3", "; served by Nebius", "request before"):
                await play.prompt()
                assert (await status(play)).splitlines()[2].endswith(served)
            session = play.session
        async with stage(tmp_path, FakeResponses()) as play:
            await load(play, session)
            assert "served by" not in await status(play)
    finally:
        log.start(None)
    written = (tmp_path / "log" / "responses-acp.log").read_text(encoding="utf-8")
    assert written.count("a request was served by") == 2
    assert "served by Nebius" in written


# -- limits


def calls_for_ever(most: int) -> list[list[Event]]:
    """Answers that each cost 0.5 by their own word, and take 100 tokens."""
    return [
        stream(
            called(f"c{number}", "glob", f'{{"pattern":"{number}"}}'),
            usage=usage(90, 10, cost=0.5),
        )
        for number in range(most)
    ]


@pytest.mark.parametrize(
    ("limit", "requests"),
    [
        ({"max_cost": 0.01}, 1),
        ({"max_cost": 1}, 2),
        ({"max_cost": 1.2}, 3),
        ({"max_tokens_total": 1}, 1),
        ({"max_tokens_total": 300}, 3),
        ({"max_tokens_total": 301}, 4),
        ({"max_cost": 2, "max_tokens_total": 200}, 2),
        ({"max_cost": 1, "max_tokens_total": 400}, 2),
    ],
)
@pytest.mark.parametrize("prompt", ["Work", "/goal Work"])
async def test_a_limit_stops_before_the_request_that_would_pass_it(
    prompt: str, limit: dict[str, Any], requests: int, tmp_path: Path
) -> None:
    model = FakeResponses(*calls_for_ever(9))
    async with stage(tmp_path, model, top=limit) as play:
        assert await play.prompt(prompt) == {"stopReason": "max_turn_requests"}
        assert len(model.asked) == requests
        assert "Stopped before the next request: this session has" in play.editor.text()
        assert await play.prompt("And on") == {"stopReason": "max_turn_requests"}
        assert len(model.asked) == requests


async def test_rounds_on_a_goal_count_and_a_yes_allows_as_much_again(tmp_path: Path) -> None:
    rounds = [stream(said("Not yet."), usage=usage(90, 10, cost=0.5)) for _ in range(9)]
    model = FakeResponses(*rounds)
    async with stage(tmp_path, model, top={"max_cost": 1, "goal_rounds": 6}) as play:
        play.editor.answers["session/request_permission"] = choose("allow_once")
        assert await play.prompt("/goal Ship it") == {"stopReason": "end_turn"}
        assert len(model.asked) == 6
        titles = [one["title"] for one in play.editor.updates("tool_call")]
        assert titles == [
            f"Go on? This session has cost {cost} USD, of 1 allowed at a time"
            for cost in ("1.00", "2.00")
        ]


async def test_a_limit_holds_after_a_load_though_prices_are_gone(tmp_path: Path) -> None:
    limit, expensive = {"max_cost": 1}, {"price": {"input": 10_000.0, "output": 10_000.0}}
    cheap = {"name": "Now without a price"}
    answer = stream(said("Hi"), usage=usage(90, 10))
    async with stage(tmp_path, FakeResponses(answer), settings=expensive, top=limit) as play:
        await play.prompt()
        session = play.session
    async with stage(tmp_path, FakeResponses(), settings=cheap, top=limit) as play:
        await load(play, session)
        assert await play.prompt() == {"stopReason": "max_turn_requests"}
        assert "this session has cost 1.00 USD, of 1 allowed" in play.editor.text()
        assert "- Cost: 1.00 USD" in await status(play)


async def test_a_limit_of_money_that_cannot_be_held_is_told_of_once(tmp_path: Path) -> None:
    async def check(name: str, expected: int, settings: Any, *costs: Any, **limit: Any) -> None:
        folder = tmp_path / name
        folder.mkdir()
        scripts = [stream(said("Yes"), usage=usage(90, 10, cost=cost)) for cost in costs]
        async with stage(folder, FakeResponses(*scripts), settings=settings, top=limit) as play:
            for _ in costs:
                await play.prompt()
            titles = [one["title"] for one in play.editor.updates("notice")]
            sentence = (
                "max_cost cannot be held: nobody tells what m costs; give it a price in the "
                "configuration, or set max_tokens_total"
            )
            assert titles == [sentence] * expected

    await check("blind", 1, {}, None, None, None, max_cost=9)
    await check("late", 1, {}, 0.5, None, None, max_cost=9)
    await check("seldom", 1, {}, None, 0.5, 0.5, max_cost=9)
    await check("told", 0, {}, 0.5, 0.5, max_cost=9)
    await check("priced", 0, {"price": PRICE}, None, None, max_cost=9)
    await check("no-limit", 0, {}, None, None)


async def test_costs_of_two_currencies_are_told_apart_and_limited_together(tmp_path: Path) -> None:
    scripts = [
        stream(said("One"), usage=usage(1_000_000, 0)),
        stream(said("Two"), usage=usage(10, 0, cost=0.75)),
    ]
    settings, limit = {"price": PRICE}, {"max_cost": 2.5}
    async with stage(tmp_path, FakeResponses(*scripts), settings=settings, top=limit) as play:
        for _ in range(2):
            assert await play.prompt() == {"stopReason": "end_turn"}
        assert await play.prompt() == {"stopReason": "max_turn_requests"}
        assert "has cost 0.75 USD and 1.75 EUR, of 2.5 allowed at a time" in play.editor.text()


@pytest.mark.parametrize("odd", [-5, "a", None, True, 1e300, [3], {"usd": 1}])
async def test_numbers_that_are_none_spoil_no_sum(odd: Any, tmp_path: Path) -> None:
    scripts = [
        stream(said("One"), usage=usage(90, 10, cost=0.5)),
        stream(said("Two"), usage={"input_tokens": odd, "output_tokens": odd, "cost": odd}),
        stream(said("Three"), usage=usage(90, 10, cost=0.25)),
    ]
    async with stage(tmp_path, FakeResponses(*scripts), settings={"context_window": 9999}) as play:
        for _ in scripts:
            assert await play.prompt() == {"stopReason": "end_turn"}
        assert updates(play)[-1]["cost"] == {"amount": 0.75, "currency": "USD"}
        assert "180 tokens in" in await status(play)
