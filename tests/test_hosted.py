"""How the provider's own calls look."""

from typing import Any

import pytest

from bridge.core.hosted import LOOKS, has_failed, look_of
from tools.base import Console, Text


def check(
    item: dict[str, Any], title: str, kind: str = "other", arguments: str = "{}", *shown: Any
) -> None:
    look = look_of(item)
    assert (look.card.title, look.card.kind, look.arguments) == (title, kind, arguments)
    assert look.shown == shown
    assert f"{look.name}_call" == item["type"]


def test_a_search_of_the_web_names_what_it_seeks_and_what_it_found() -> None:
    def search(**action: Any) -> dict[str, Any]:
        return {"type": "web_search_call", "id": "ws", "action": action}

    sources = [
        {"type": "url", "url": "https://a"},
        {"type": "url", "url": "https://a"},
        {"type": "url", "url": "https://b", "title": "B"},
        {"type": "api", "name": "weather"},
        {"type": "odd"},
        "odd",
    ]
    found = Text("- <https://a>\n- [B](https://b)\n- weather")
    check(search(type="search", query="q", sources=sources),
          "Search the web: q", "search", '{"query":"q"}', found)  # fmt: skip
    check(search(type="search", queries=["a", "b", 3, ""]),
          "Search the web: a, b", "search", '{"queries":["a","b",3,""]}')  # fmt: skip
    check(search(type="open_page", url="https://a"),
          "Open https://a", "fetch", '{"url":"https://a"}')  # fmt: skip
    check(search(type="open_page"), "Open a page", "fetch")
    check(search(type="find", pattern="p", url="https://a"),
          'Find "p" in https://a', "fetch", '{"pattern":"p","url":"https://a"}')  # fmt: skip
    check(search(type="find_in_page"), "Find text in a page", "fetch")
    check(search(), "Search the web", "search")
    check({"type": "web_search_call"}, "Search the web", "search")
    check(search(type="search", query=3, sources="odd"), "Search the web", "search", '{"query":3}')


def test_other_calls_say_what_they_do() -> None:
    files = {"type": "file_search_call", "queries": ["q"],
             "results": [{"filename": "a.md"}, {"filename": "a.md"}, {"score": 1}]}  # fmt: skip
    check(files, "Search files: q", "search", '{"queries":["q"]}', Text("- a.md"))
    check({"type": "file_search_call", "results": None}, "Search files", "search")
    code = {"type": "code_interpreter_call", "code": "1+1",
            "outputs": [{"type": "logs", "logs": "2"}, {"type": "image", "url": "u"}]}  # fmt: skip
    check(code, "Run code", "other", '{"code":"1+1"}', Console("2"))
    check({"type": "code_interpreter_call", "code": None}, "Run code")
    image = {"type": "image_generation_call", "result": "QQ==", "revised_prompt": "A cat"}
    check(image, "Generate an image", "other", '{"prompt":"A cat"}')
    check({"type": "image_generation_call"}, "Generate an image")
    tool = {"type": "mcp_call", "server_label": "db", "name": "query", "arguments": '{"a":1}'}
    check({**tool, "output": "rows"}, "db query", "other", '{"a":1}', Text("rows"))
    check({**tool, "error": "no"}, "db query", "other", '{"a":1}', Text("no"))
    check({**tool, "error": {"message": "no"}}, "db query", "other", '{"a":1}', Text("no"))
    check({"type": "mcp_call"}, "Call a tool", "other", "")


def test_an_item_says_whether_its_call_failed() -> None:
    def failed(**item: Any) -> bool:
        return has_failed(item)

    assert failed(status="failed")
    assert failed(status="incomplete")
    assert failed(status="completed", error={"message": "no"})
    assert not failed(status="completed", error=None)
    assert not failed()


@pytest.mark.parametrize("kind", LOOKS)
def test_whatever_an_item_holds_it_has_a_look(kind: str) -> None:
    names = ("action", "queries", "results", "outputs", "code", "error", "arguments", "output",
             "name", "server_label", "revised_prompt")  # fmt: skip
    odds: list[Any] = [None, 3, "text", [], [None], {}, {"type": 3, "sources": {}}]
    for odd in odds:
        assert look_of({"type": kind, **dict.fromkeys(names, odd)}).card.title
