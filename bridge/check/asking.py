"""Checks of the configuration, the key, the server and the model: each asks one small question.

It must not know what an answer means: bridge/check/judge.py does.
"""

import ssl
from collections.abc import Mapping, Sequence

from bridge.check import judge
from bridge.check.finding import Finding, fault, ok
from bridge.check.judge import TOOL, WORD, Heard
from bridge.check.look import Look
from bridge.check.settings import Origins, general, of_model
from bridge.complaints import nearest
from bridge.config import Model, Provider, file_in_use, load
from bridge.core.effects import Effect
from bridge.core.response import Response
from bridge.errors import BridgeError
from bridge.keys import expiry
from bridge.responses import quirks
from bridge.responses.events import Ended
from bridge.responses.proxies import proxy_to, source_of_proxy
from bridge.responses.request import body, function_tool

_COUNT = "Count from 1 to 40 in digits, separated by blanks. Write nothing else."
_CALL = f"Call the tool `{TOOL}` with the word {WORD}. Write no text."
_THINK = "How often does the letter r stand in 'strawberry raspberry'? Answer with the number."
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "description": "The word"}},
    "required": ["word"],
}


async def config(look: Look) -> list[Finding]:
    """Whether the configuration can be read."""
    try:
        file = file_in_use(look.named, look.environment)
        read = load(look.named, look.environment)
    except BridgeError as error:
        return [fault(str(error))]
    key = look.chosen or read.default_model
    if key not in read.models:
        return [fault(f"there is no model {key[:80]}", nearest(key, read.models))]
    look.config, look.model_key = read, key
    return [ok(str(file) if file else "there is no file: the environment serves")]


async def settings(look: Look) -> list[Finding]:
    """Every setting in force, and where it comes from."""
    file, read = file_in_use(look.named, look.environment), look.settings
    text = "" if file is None else file.read_bytes().decode("utf-8-sig", "replace")
    origins = Origins(file, text, look.environment)
    keys = [look.model_key] if look.chosen else list(read.models)
    return [general(read, origins), *(of_model(read, key, origins) for key in keys)]


async def key(look: Look) -> list[Finding]:
    """Whether there is a key, where it comes from, and how long it is good."""
    provider = look.provider
    try:
        look.key = await look.keys.key(provider)
    except BridgeError as error:
        return [fault(str(error))]
    if look.key is None:
        return [ok("none is needed")]
    return [judge.key_end(source(provider), expiry(look.key), look.now())]


def source(provider: Provider) -> str:
    """Where the key of a provider comes from."""
    if provider.api_key_command is not None:
        return f"printed by {provider.api_key_command[0]}"
    if provider.api_key_file is not None:
        return f"from the file {provider.api_key_file}"
    return f"from {provider.api_key_env} in the environment"


async def proxy(look: Look) -> list[Finding]:
    """Which proxy leads to the server."""
    base_url = look.provider.base_url
    if proxy_to(base_url) is None:
        return [ok("none")]
    return [ok(f"{source_of_proxy(base_url)} names the one that is used")]


async def server(look: Look) -> list[Finding]:
    """Whether the server can be reached."""
    begun = look.clock()
    try:
        look.reached = await look.transport.greet(look.provider.endpoint(look.key))
    except BridgeError as error:
        return [fault(str(error))]
    took = look.clock() - begun
    return [ok(f"{look.provider.base_url} answers after {took * 1000:.0f} ms")]


async def certificate(look: Look) -> list[Finding]:
    """Who vouches for the server."""
    if not look.provider.base_url.startswith("https:"):
        return [ok("not encrypted: the server is on this machine or its network")]
    given = look.greeting.certificate
    return [judge.certificate(given, _end(given), look.now())]


def _end(certificate: Mapping[str, object]) -> float | None:
    end = certificate.get("notAfter")
    return ssl.cert_time_to_seconds(end) if isinstance(end, str) else None


async def model(look: Look) -> list[Finding]:
    """Whether the server knows the model."""
    return [judge.model(look.model.model, look.greeting.status, look.greeting.body)]


async def streaming(look: Look) -> list[Finding]:
    """Whether text comes as the model writes it."""
    return [judge.streaming(await _heard(look, _plain(look.model), _COUNT))]


async def tool_calling(look: Look) -> list[Finding]:
    """Whether the model calls a tool."""
    settings = _plain(look.model)
    strict = quirks.in_force(look.provider, settings).strict
    tool = function_tool(TOOL, "Reports one word.", _SCHEMA, strict=strict)
    return [judge.tool_calling(await _heard(look, settings, _CALL, [tool]))]


async def summaries(look: Look) -> list[Finding]:
    """Whether the reasoning is told of, where that is wanted."""
    if look.model.summary is None:
        return []
    return [judge.summaries(await _heard(look, look.model, _THINK))]


def _plain(model: Model) -> Model:
    """The model without what a check of its own is about, and without what costs extra."""
    return model.model_copy(update={"summary": None, "hosted_tools": ()})


async def _heard(
    look: Look, settings: Model, text: str, tools: Sequence[dict[str, object]] = ()
) -> Heard:
    """Ask one small question and hear the answer to its end; raises BridgeError."""
    asked = {"role": "user", "content": [{"type": "input_text", "text": text}]}
    request = body(
        settings,
        quirks.in_force(look.provider, settings),
        effort=settings.effort,
        instructions="You are being tested. Do exactly what is asked.",
        input=[{"type": "message", **asked}],
        tools=tools,
        cache_key="responses-acp-check",
    )
    begun = look.clock()
    effects: list[Effect] = []
    times: list[float] = []
    worked: float | None = None
    response = Response()
    async with look.transport.stream(look.provider.endpoint(look.key), request) as batches:
        async for batch in batches:
            times.append(look.clock())
            for event in batch:
                effects += response.feed(event)
                worked = _worked(event.response) if isinstance(event, Ended) else worked
    effects += [] if response.over else response.end()
    first = times[0] if times else begun
    return Heard(tuple(effects), first - begun, (times or [first])[-1] - first, worked)


def _worked(response: Mapping[str, object]) -> float | None:
    """How long the server took for a response, if it says so."""
    begun, ended = response.get("created_at"), response.get("completed_at")
    if isinstance(begun, int | float) and isinstance(ended, int | float):
        return float(ended - begun)
    return None
