"""Calls that the provider makes itself, such as a search of the web: an item in, its look out.

It must not know when an item is shown, nor where.

Rule 1: LOOKS holds one row per type of item; an item of another type is no such call.
Rule 2: nothing in an item is relied upon: when one opens, most of it is still to come.
"""

from collections.abc import Callable, Iterator

from bridge.core.wire import JsonObject, dump, list_of, object_of, objects_of, text_of
from tools.base import Card, Console, Kind, Text
from tools.frozen import frozen


@frozen
class Look:
    """How a call looks as far as its item tells."""

    name: str
    """Of the tool."""
    card: Card
    arguments: str
    """JSON text, or what the server sent in its place."""
    shown: tuple[Text | Console, ...] = ()
    """What came of it."""


def look_of(item: JsonObject) -> Look:
    """The look of an item whose type is in LOOKS."""
    kind = text_of(item, "type")
    title, card_kind, given, shown = LOOKS[kind](item)
    arguments = given if isinstance(given, str) else dump(given).decode()
    return Look(kind.removesuffix("_call"), Card(title, card_kind), arguments, tuple(shown))


def has_failed(item: JsonObject) -> bool:
    """Whether the item says that nothing came of its call."""
    return item.get("status") in ("failed", "incomplete") or bool(item.get("error"))


_Facts = tuple[str, Kind, JsonObject | str, Iterator[Text | Console]]
"""Title, kind, arguments and what came of it."""


def _web_search(item: JsonObject) -> _Facts:
    action = object_of(item, "action")
    url = text_of(action, "url")
    query = text_of(action, "query") or ", ".join(_texts(action, "queries"))
    asked = {key: value for key, value in action.items() if key not in ("type", "sources")}
    shown = _listed(_sources(action))
    if text_of(action, "type") == "open_page":
        return f"Open {url or 'a page'}", "fetch", asked, shown
    if text_of(action, "type") in ("find", "find_in_page"):
        return f"Find {_quoted(action, 'pattern')} in {url or 'a page'}", "fetch", asked, shown
    return f"Search the web: {query}" if query else "Search the web", "search", asked, shown


def _file_search(item: JsonObject) -> _Facts:
    queries = _texts(item, "queries")
    title = f"Search files: {', '.join(queries)}" if queries else "Search files"
    names = (text_of(result, "filename") for result in objects_of(item, "results"))
    asked: JsonObject = {"queries": [*queries]} if queries else {}
    return title, "search", asked, _listed(name for name in names if name)


def _code_interpreter(item: JsonObject) -> _Facts:
    code = text_of(item, "code")
    logs = (text_of(output, "logs") for output in objects_of(item, "outputs"))
    printed = (Console(text) for text in logs if text)
    return "Run code", "other", {"code": code} if code else {}, printed


def _image_generation(item: JsonObject) -> _Facts:
    prompt = text_of(item, "revised_prompt")
    return "Generate an image", "other", {"prompt": prompt} if prompt else {}, iter(())


def _mcp(item: JsonObject) -> _Facts:
    name, server = text_of(item, "name"), text_of(item, "server_label")
    said = (
        text_of(item, "error")
        or text_of(object_of(item, "error"), "message")
        or text_of(item, "output")
    )
    title = " ".join(word for word in (server, name) if word) or "Call a tool"
    return title, "other", text_of(item, "arguments"), iter((Text(said),) if said else ())


LOOKS: dict[str, Callable[[JsonObject], _Facts]] = {
    "web_search_call": _web_search,
    "file_search_call": _file_search,
    "code_interpreter_call": _code_interpreter,
    "image_generation_call": _image_generation,
    "mcp_call": _mcp,
}


def _listed(entries: Iterator[str]) -> Iterator[Text | Console]:
    lines = "\n".join(f"- {entry}" for entry in dict.fromkeys(entries))
    return iter((Text(lines),) if lines else ())


def _sources(action: JsonObject) -> Iterator[str]:
    for source in objects_of(action, "sources"):
        url, name = text_of(source, "url"), text_of(source, "title") or text_of(source, "name")
        if url:
            yield f"[{name}]({url})" if name else f"<{url}>"
        elif name:
            yield name


def _quoted(item: JsonObject, name: str) -> str:
    value = text_of(item, name)
    return f'"{value}"' if value else "text"


def _texts(item: JsonObject, name: str) -> list[str]:
    return [value for value in list_of(item, name) if isinstance(value, str) and value]
