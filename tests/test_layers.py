"""Who may import whom: the layers, held against what the files say."""

import ast
import sys
from fnmatch import fnmatch
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
FILES = {
    ".".join(path.relative_to(HOME).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in ("bridge", "tools")
    for path in sorted((HOME / folder).rglob("*.py"))
}

PURE = [
    "bridge", "bridge.acp", "bridge.acp.peer", "bridge.acp.schema", "bridge.core", "bridge.core.*",
    "bridge.errors", "bridge.responses", "bridge.responses.events", "bridge.responses.faults",
    "bridge.responses.quirks", "bridge.responses.refused", "bridge.responses.request",
    "bridge.responses.sse", "bridge.responses.upstream", "bridge.setup.jsonc", "tools.argv",
    "tools.base", "tools.changed", "tools.charset", "tools.filetype", "tools.frozen",
    "tools.git_work", "tools.globs", "tools.hint", "tools.hunks", "tools.inner", "tools.late",
    "tools.layers", "tools.notebook", "tools.offers", "tools.output", "tools.page", "tools.paths",
    "tools.programs", "tools.quiet", "tools.seen", "tools.spelling", "tools.splice", "tools.told",
    "tools.trace", "tools.wrappers",
]  # fmt: skip
IMPURE = {"asyncio", "logging", "os", "random", "subprocess", "time", "threading", "socket"}

STDLIB_ONLY = [
    "bridge.__main__", "bridge.core.handshake", "bridge.core.hello", "bridge.windows",
    "bridge.acp.peer", "tools.confine", "tools.walk",
]  # fmt: skip

USERS = {
    "pydantic": ["*"],
    "pydantic_core": ["*"],
    "typing_extensions": ["bridge.lean"],
    "anyio": ["*"],
    "httpx": ["bridge.responses.transport", "bridge.responses.client"],
    "httpcore": [
        f"bridge.responses.{name}" for name in ("transport", "client", "lines", "sockets")
    ],
    "httpx_sse": ["bridge.responses.transport"],
    "tenacity": ["bridge.responses.again"],
    "truststore": ["bridge.responses.client"],
    "httpx2": ["bridge.mcp"],
    "mcp": ["bridge.mcp"],
    "tree_sitter": ["tools.shell_line"],
    "tree_sitter_bash": ["tools.shell_line"],
    "platformdirs": ["bridge.folders"],
}
"""Package -> who may import it."""

NEVER = [
    ("tools*", ["bridge*"]),
    ("bridge.acp.*", ["bridge.responses*", "tools.[!bs]*"]),
    ("bridge.responses.*", ["bridge.acp*", "tools*"]),
    ("bridge.config", ["bridge.acp*", "bridge.responses*", "tools*"]),
    ("bridge.[!a]*", ["bridge.acp.stdio", "bridge.acp.methods"]),
    ("bridge.[!_cl]*", ["bridge.app"]),
    ("bridge.l[!e]*", ["bridge.app"]),
]
"""Importer, and what it must not import. Of the tools, the editor's side knows the plain data."""

SAVE = {
    ("bridge.replay.player", "bridge.acp.methods"),
    ("bridge.replay.player", "bridge.acp.methods.take"),
}
"""A replay is an app of its own: it puts the agent together without an editor."""

ANYWHERE = {"tools.frozen", "tools.late"}
"""How plain data and patterns are written: part of the language rather than of a side."""


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


@cache
def imports(module: str) -> frozenset[str]:
    """Every module that a module names in its imports, submodules by their own names."""
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            whole = node.module or ""
            named = {f"{whole}.{alias.name}" for alias in node.names}
            found |= (named & FILES.keys()) or {whole}
    return frozenset(found)


def fits(name: str, patterns: list[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def forbidden(module: str, imported: str) -> str | None:
    """Why a module must not import another one, or None."""
    package = imported.partition(".")[0]
    ours = package in ("bridge", "tools")
    if not ours and package not in sys.stdlib_module_names:
        if not fits(module, USERS.get(package, [])):
            return f"{package} is for {USERS.get(package, 'nobody')}"
        if fits(module, STDLIB_ONLY):
            return "only the standard library loads before the first answer"
    if fits(module, PURE) and (
        package in IMPURE | {"anyio"} or (ours and not fits(imported, PURE))
    ):
        return "a pure module decides and does nothing"
    if (
        imported not in ANYWHERE
        and (module, imported) not in SAVE
        and any(fits(module, [who]) and fits(imported, what) for who, what in NEVER)
    ):
        return "the sides know nothing of each other"
    return None


@pytest.mark.parametrize("module", FILES)
def test_every_import_is_allowed(module: str) -> None:
    reasons = {imported: forbidden(module, imported) for imported in imports(module)}
    assert {name: reason for name, reason in reasons.items() if reason} == {}


@pytest.mark.parametrize("module", FILES)
def test_imports_are_absolute_and_the_same_for_checker_and_program(module: str) -> None:
    for node in ast.walk(tree(module)):
        assert not (isinstance(node, ast.ImportFrom) and node.level), "a relative import"
        assert not (isinstance(node, ast.Name) and node.id == "TYPE_CHECKING")


def test_no_imports_go_in_circles() -> None:
    known = {module: imports(module) & FILES.keys() - {module} for module in FILES}
    tuple(TopologicalSorter(known).static_order())


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("tools.read", "bridge.errors"),
        ("tools.read", "httpx"),
        ("tools.base", "anyio"),
        ("bridge.core.response", "os"),
        ("bridge.core.response", "bridge.session"),
        ("bridge.core.hello", "pydantic"),
        ("bridge.responses.transport", "bridge.acp.peer"),
        ("bridge.acp.methods", "bridge.responses.transport"),
        ("bridge.acp.editor", "tools.read"),
        ("bridge.turn", "httpx"),
        ("bridge.turn", "bridge.acp.stdio"),
        ("bridge.turn", "bridge.app"),
        ("bridge.config", "bridge.responses.quirks"),
        ("bridge.session", "requests"),
    ],
)
def test_the_table_forbids_what_it_is_there_to_forbid(
    module: str, imported: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (module, imported):
        if name.startswith(("bridge", "tools")):
            monkeypatch.setitem(FILES, name, HOME)
    assert forbidden(module, imported)
