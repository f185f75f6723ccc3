"""The fake server is held to the types of the official client."""

from importlib import import_module
from typing import Any

import anyio
import pytest
from pydantic import TypeAdapter

from tests.fake_responses import (
    Event,
    FakeResponses,
    called,
    failed,
    incomplete,
    refused,
    said,
    stream,
    thought,
)

pytestmark = pytest.mark.anyio

SCRIPTS: dict[str, list[Event]] = {
    "everything": stream(
        thought("One.", "Two."), said("Hello there"), called("c", "read", '{"a":1}')
    ),
    "refusal": stream(refused("I will not.")),
    "nothing": stream(),
    "incomplete": incomplete(said("Cut")),
    "failed": failed(said("Half"), code="server_error"),
    "cut": stream(said("Half"), end=""),
}


@pytest.fixture
def openai() -> Any:
    """The official client; it takes seconds to load, which a run without these tests can spare."""
    import_module("openai.types.responses")
    return import_module("openai")


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_event_is_of_the_official_types(openai: Any, name: str) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(openai.types.responses.ResponseStreamEvent)
    for number, event in enumerate(SCRIPTS[name]):
        read = adapter.validate_python(event, strict=True)
        assert read.type == event["type"]
        assert read.sequence_number == number
        assert not read.model_extra


@pytest.mark.parametrize("name", SCRIPTS)
async def test_the_official_client_reads_a_stream_to_its_end(openai: Any, name: str) -> None:
    fake = FakeResponses(SCRIPTS[name], any_body=True)
    with anyio.fail_after(10):
        async with fake.serve() as base_url, client(openai, base_url) as own:
            events = await own.responses.create(model="m", input="hi", stream=True)
            kinds = [event.type async for event in events]
    assert kinds == [event["type"] for event in SCRIPTS[name]]
    assert fake.asked[0].body == {"model": "m", "input": "hi", "stream": True}
    assert fake.asked[0].headers["authorization"] == "Bearer k"


@pytest.mark.parametrize("name", ["everything", "refusal", "nothing"])
async def test_the_official_client_puts_the_same_response_together(openai: Any, name: str) -> None:
    fake = FakeResponses(SCRIPTS[name], cut=7, any_body=True)
    with anyio.fail_after(10):
        async with (
            fake.serve() as base_url,
            client(openai, base_url) as own,
            own.responses.stream(model="m", input="hi") as events,
        ):
            response = await events.get_final_response()
    official = openai.types.responses.Response
    expected = official.model_validate(SCRIPTS[name][-1]["response"], strict=True)
    ours = expected.model_dump(exclude_none=True, mode="json")
    theirs = response.model_dump(exclude_none=True, mode="json", exclude={"output": {"__all__": {
        "parsed_arguments": True, "content": {"__all__": {"parsed"}}}}})  # fmt: skip
    assert theirs == ours


def client(openai: Any, base_url: str) -> Any:
    return openai.AsyncOpenAI(api_key="k", base_url=base_url, max_retries=0)
