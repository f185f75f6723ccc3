"""A server reads the beginning of a session's first request before there is one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.fake_responses import FakeResponses, Reply, said, stream
from tests.laws import Message
from tests.stage import stage

pytestmark = pytest.mark.anyio

WARM = stream(said("H"), end="incomplete", incomplete_details={"reason": "max_output_tokens"})
HELLO = stream(said("Hello"))
PREWARM = {"prewarm": True}


async def until(model: FakeResponses, asked: int) -> None:
    with anyio.fail_after(20):
        while len(model.asked) < asked:
            await anyio.lowlevel.checkpoint()


def beginning(body: Message) -> tuple[object, object]:
    return body["instructions"], body["tools"]


async def test_the_first_request_begins_with_what_was_read_before_it(tmp_path: Path) -> None:
    model = FakeResponses(WARM, HELLO, any_body=True)
    async with stage(tmp_path, model, provider=PREWARM, settings={"max_output_tokens": 9}) as play:
        await until(model, 1)
        await anyio.wait_all_tasks_blocked()
        assert play.news() == []
        assert await play.prompt("Hi") == {"stopReason": "end_turn"}
    warm, first = (asked.body for asked in model.asked)
    assert beginning(warm) == beginning(first)
    assert (warm["max_output_tokens"], first["max_output_tokens"]) == (1, 9)
    assert warm["prompt_cache_key"] == first["prompt_cache_key"]
    assert len(warm["input"]) == 1
    assert "Hello" not in str(first["input"])


async def test_nothing_is_asked_unless_it_is_wanted(tmp_path: Path) -> None:
    async def check(name: str, provider: Mapping[str, Any], **settings: Any) -> None:
        folder = tmp_path / name
        folder.mkdir()
        model = FakeResponses(HELLO)
        async with stage(folder, model, provider=provider, settings=settings) as play:
            await anyio.wait_all_tasks_blocked()
            assert model.asked == []
            assert await play.prompt() == {"stopReason": "end_turn"}

    await check("by-default", {})
    await check("without-a-limit", PREWARM, omit=["max_output_tokens"])


async def test_the_first_prompt_stops_it(tmp_path: Path) -> None:
    model = FakeResponses(Reply([], hold=True), HELLO, any_body=True)
    async with model.serve() as base_url:
        provider = {**PREWARM, "base_url": base_url}
        async with stage(tmp_path, model, provider=provider, wired=True) as play:
            await until(model, 1)
            with anyio.fail_after(20):
                assert await play.prompt("Hi") == {"stopReason": "end_turn"}
                await model.hung_up.wait()
            assert play.editor.text() == "Hello"


async def test_the_end_of_the_session_stops_it(tmp_path: Path) -> None:
    model = FakeResponses(Reply([], hold=True), any_body=True)
    async with model.serve() as base_url:
        provider = {**PREWARM, "base_url": base_url}
        async with stage(tmp_path, model, provider=provider, wired=True) as play:
            await until(model, 1)
            await play.editor.request("session/close", {"sessionId": play.session})
            with anyio.fail_after(20):
                await model.hung_up.wait()


@pytest.mark.parametrize(
    "fault", [Reply([], 500), Reply([b"<html>"], 200), Reply([], 401), anyio.EndOfStream()]
)
async def test_a_failure_is_nobodys_business(fault: Any, tmp_path: Path) -> None:
    model = FakeResponses(fault, HELLO, any_body=True)
    async with model.serve() as base_url:
        provider = {**PREWARM, "base_url": base_url}
        async with stage(tmp_path, model, provider=provider, wired=True) as play:
            await until(model, 1)
            await anyio.wait_all_tasks_blocked()
            assert play.news() == []
            assert await play.prompt("Hi") == {"stopReason": "end_turn"}
    assert len(model.asked) == 2


async def test_what_it_costs_is_counted(tmp_path: Path) -> None:
    model = FakeResponses(WARM, HELLO, any_body=True)
    price = {"input": 100, "output": 1000}
    async with stage(tmp_path, model, provider=PREWARM, settings={"price": price}) as play:
        await until(model, 1)
        await anyio.wait_all_tasks_blocked()
        await play.prompt("Hi")
        await play.prompt("/status")
        assert "2 answers: 40 tokens in" in play.editor.text()
        assert "- Cost: 0.02 USD" in play.editor.text()
