"""Notebooks of Jupyter: shown as their cells, changed as the JSON that they are.

Pure: bytes in, text out.

Rule 1: outputs are left out; they are large, and come back when a cell runs.
Rule 2: what is no notebook is shown as any other text.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

_MOST_CHARACTERS = 40_000

AS_JSON = (
    "a notebook is edited as the JSON that it is: each line of a cell is a string there, in which "
    'a quote is \\", a backslash \\\\ and the line end \\n; read shows it from offset 1 on'
)


def is_notebook(path: str) -> bool:
    """The name is that of a notebook."""
    return path.endswith(".ipynb")


def cells(data: bytes) -> str | None:
    """The cells of a notebook, without their outputs; None where these bytes are none."""
    found = list(_cells(data))
    if not found:
        return None
    kept: list[str] = []
    room = _MOST_CHARACTERS
    for number, (kind, source) in enumerate(found, 1):
        shown = f"[cell {number}: {kind}]\n{source.rstrip()}\n"
        room -= len(shown)
        if room < 0:
            break
        kept.append(shown)
    end = f"(End of notebook - total {len(found)} cells, outputs left out."
    if len(kept) < len(found):
        end = f"(Output capped after cell {len(kept)} of {len(found)}, outputs left out."
    return "\n".join((*kept, f"{end} {AS_JSON[0].upper()}{AS_JSON[1:]}.)"))


def is_broken(data: bytes) -> bool:
    """These bytes are no JSON object, as every notebook is one."""
    return _object(data) is None


def _cells(data: bytes) -> Iterator[tuple[str, str]]:
    """The kind and the source of each cell, as far as they are well formed."""
    listed = (_object(data) or {}).get("cells")
    for cell in cast("list[Any]", listed) if isinstance(listed, list) else []:
        if isinstance(cell, dict):
            named = cast("dict[str, Any]", cell)
            source = named.get("source")
            lines = cast("list[Any]", source) if isinstance(source, list) else [source]
            yield str(named.get("cell_type")), "".join(one for one in lines if isinstance(one, str))


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
