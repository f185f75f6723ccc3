"""What answers mean: measurements and answers in, findings out.

It must not know how anything is asked or measured.

Rule 1: only what is certain is a fault. A model that did not do as it was told once is a warning.
"""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import cast

from bridge.check.finding import Finding, fault, ok, warning
from bridge.complaints import nearest
from bridge.core.catalogue import models_in, plain
from bridge.core.effects import Effect, Failed, Finished, FunctionCall, Say, Think
from bridge.core.wire import Json
from tools.frozen import frozen
from tools.seek import counted

_SOON = 3600.0
_DAY = 86400.0
_MANY = 5
"""Pieces of text from which on an answer counts as streamed."""
_SLOW, _SUDDEN = 1.5, 0.05
"""A wait, in seconds, long enough to tell; and the part of it that held-back events come in."""
_NO_LIST = (HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED,
            HTTPStatus.NOT_IMPLEMENTED)  # fmt: skip
"""What servers without a list of models answer to the question for it."""

TOOL, WORD = "report", "ready"
"""The tool that the model is to call, and what it is to say by it."""


@frozen
class Heard:
    """One answer, as it came."""

    effects: tuple[Effect, ...]
    waited: float = 0.0
    """Seconds to its first event."""
    lasted: float = 0.0
    """Seconds from its first event to its last."""
    worked: float | None = None
    """Seconds that the server took by its own clock, where it tells them."""


def key_end(source: str, end: float | None, now: float) -> Finding:
    """About a key and the end of its time; both in seconds of the epoch."""
    if end is None:
        return ok(source)
    left = end - now
    if left <= 0:
        return fault(f"{source}: its time has been over for {_span(abs(left))}", "get a new one")
    told = f"{source}: it is good for {_span(left)}"
    if left < _SOON:
        return warning(told, "get a new one soon, or name a program in api_key_command")
    return ok(told)


def certificate(given: Mapping[str, object], end: float | None, now: float) -> Finding:
    """About the certificate of a server that was reached."""
    issuer = _issuer(given)
    if issuer is None:
        return ok("trusted; this system does not tell who issued it")
    told = f"issued by {issuer}"
    if end is None:
        return ok(told)
    told = f"{told}, valid for {_span(end - now)}"
    return ok(told) if end - now > 7 * _DAY else warning(told, "have it renewed")


def _issuer(given: Mapping[str, object]) -> str | None:
    """The organisation, or else the name, that stands in the issuer of ssl's getpeercert()."""
    names: dict[str, str] = {}
    for part in cast("Sequence[Sequence[tuple[str, str]]]", given.get("issuer") or ()):
        names |= dict(part)
    found = [names[key] for key in ("organizationName", "commonName") if names.get(key)]
    return ", ".join(dict.fromkeys(found)) or None


def model(name: str, status: int, listed: Json) -> Finding:
    """About the model's name, by what the server answered to GET /models."""
    if status == HTTPStatus.UNAUTHORIZED:
        remedy = "check the key, where it comes from, and key_header"
        return fault(f"the server refuses the key (HTTP {status})", remedy)
    if status == HTTPStatus.FORBIDDEN:  # the key may be good for answers all the same
        what = f"the server does not let this key list its models (HTTP {status})"
        return warning(what, "what comes next shows whether it may ask for answers")
    found = models_in(listed) if status == HTTPStatus.OK else ()
    known = {plain(one.id): one.id for one in found}
    if plain(name) in known:
        return ok(f"{name} is in the server's list of {len(known)}")
    if known:
        # Lists may be short of aliases and deployments: the answer will tell.
        remedy = nearest(name, known.values())[:300]
        return warning(f"{name} is not in the server's list", remedy)
    if status in _NO_LIST:
        return ok(f"{name}; the server tells no list of models")
    return warning(f"the server answers HTTP {status} to GET /models", "check base_url")


def answered(heard: Heard) -> Finding | None:
    """The fault of an answer that did not end well; None for one that did."""
    last = heard.effects[-1] if heard.effects else None
    match last:
        case Finished(outcome="completed" | "max_tokens" | "refusal"):
            return None
        case Failed(fault=found):
            return fault(found.message)
        case _:
            return fault("the answer stopped early", "try again; if it stays, look at the server")


def streaming(heard: Heard) -> Finding:
    """Whether text comes as the model writes it."""
    failed = answered(heard)
    if failed is not None:
        return failed
    pieces = sum(isinstance(effect, Say) for effect in heard.effects)
    if not pieces:
        return warning("the answer held no text", "check that it is a model for conversations")
    if pieces < _MANY:
        what = f"the text came in {counted(pieces, 'piece')}"
        return warning(what, "the server does not stream word by word; answers show when they end")
    whole = heard.waited + heard.lasted
    paced = whole if heard.worked is None else heard.worked
    if paced >= _SLOW and heard.lasted < _SUDDEN * paced:
        what = f"all {pieces} pieces came at once after {paced:.1f} s"
        remedy = "something between here and the model holds the stream back: switch off buffering"
        return warning(what, f"{remedy} (nginx: proxy_buffering off), or set NO_PROXY")
    return ok(f"{counted(pieces, 'piece')} of text, the first after {heard.waited:.1f} s")


def tool_calling(heard: Heard) -> Finding:
    """Whether the model calls a tool when it is told to."""
    failed = answered(heard)
    if failed is not None:
        return failed
    last = heard.effects[-1]
    calls = last.calls if isinstance(last, Finished) else ()
    call = next((call for call in calls if call.name == TOOL), None)
    if call is not None:
        return _arguments(call)
    text = "".join(effect.text for effect in heard.effects if isinstance(effect, Say))
    if TOOL in text and WORD in text:
        what = "the model wrote its call as text, which the server did not understand"
        remedy = "vLLM: --enable-auto-tool-choice and --tool-call-parser; llama.cpp: --jinja"
        return fault(what, f"start the server with a parser for it ({remedy})")
    return warning("the model did not call the tool it was told to call", "try a larger model")


def _arguments(call: FunctionCall) -> Finding:
    try:
        given = json.loads(call.arguments)
    except ValueError:
        return warning("the model called the tool with arguments that are no JSON")
    if isinstance(given, dict) and set(cast("dict[str, object]", given)) == {"word"}:
        return ok("the model called a tool as it was told to")
    return warning("the model called the tool with other arguments than it has")


def summaries(heard: Heard) -> Finding:
    """Whether the reasoning is told of."""
    failed = answered(heard)
    if failed is not None:
        return failed
    thoughts = "".join(effect.text for effect in heard.effects if isinstance(effect, Think))
    if thoughts:
        return ok(f"{len(thoughts)} characters of reasoning were told")
    what = "no reasoning was told of, though `summary` is set"
    return warning(what, "a small question may need none; if it never shows, unset `summary`")


def _span(seconds: float) -> str:
    for size, unit in ((_DAY, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}s"
    return f"{seconds:.0f} seconds"
