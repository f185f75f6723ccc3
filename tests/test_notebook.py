import json
from pathlib import Path
from typing import Any

import pytest

from tests.workspace import Workspace
from tools.notebook import AS_JSON, cells, is_broken

pytestmark = pytest.mark.anyio

BOOK: dict[str, Any] = {
    "cells": [
        {"cell_type": "markdown", "source": "# Title"},
        {
            "cell_type": "code",
            "source": ["import x\n", 'print("hi")\n'],
            "outputs": [{"text": "a secret of megabytes"}],
        },
    ],
    "nbformat": 4,
}
END = f"outputs left out. A{AS_JSON[1:]}.)"


def book(*more: Any, **members: Any) -> bytes:
    return json.dumps({**BOOK, "cells": [*BOOK["cells"], *more], **members}, indent=1).encode()


async def test_a_notebook_is_shown_as_its_cells(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("a.ipynb", book())
    assert await workspace.said("read", "a.ipynb") == (
        "<path>~/a.ipynb</path>\n<type>notebook</type>\n<content>\n"
        '[cell 1: markdown]\n# Title\n\n[cell 2: code]\nimport x\nprint("hi")\n\n'
        f"(End of notebook - total 2 cells, {END}\n</content>"
    )


async def test_its_json_is_shown_where_lines_are_asked_for(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("a.ipynb", book())
    assert '8:     "import x\\n",' not in await workspace.said("read", "a.ipynb")
    text = await workspace.said("read", "a.ipynb", offset=1)
    assert '"import x\\n",\n' in text
    assert "megabytes" in text


@pytest.mark.parametrize(
    "data",
    [b"", b"not json", b"[]", b"{}", b'{"cells": 3}', b'{"cells": []}', b'{"cells": [3]}', b"\xff"],
)
async def test_what_is_no_notebook_is_shown_as_text(tmp_path: Path, data: bytes) -> None:
    workspace = Workspace(tmp_path)
    workspace.put("a.ipynb", data)
    assert cells(data) is None
    assert "<type>file</type>" in await workspace.said("read", "a.ipynb")


async def test_a_notebook_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    (tmp_path / "b.ipynb").mkdir()
    assert await workspace.said("read", "a.ipynb") == 'Error: cannot read "~/a.ipynb": not found'
    assert "not a regular file" in await workspace.said("read", "b.ipynb")


def test_a_long_notebook_is_cut_between_cells() -> None:
    shown = cells(book(*({"cell_type": "code", "source": "x" * 15_000} for _ in range(4))))
    assert shown is not None
    assert f"(Output capped after cell 4 of 6, {END}" in shown
    assert len(shown) < 41_000


def test_odd_cells_are_shown_as_far_as_they_go() -> None:
    shown = cells(book({"source": None}, {"cell_type": "raw", "source": ["a", 3]}, 7))
    assert shown is not None
    assert "[cell 3: None]\n\n\n[cell 4: raw]\na\n" in shown


async def test_an_edit_that_leaves_no_notebook_is_refused(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    path = workspace.put("a.ipynb", book())
    await workspace.said("read", "a.ipynb")
    said = await workspace.said("edit", "a.ipynb", old_string="import x", new_string='say "x"')
    assert said == f'Error: cannot edit "~/a.ipynb": that would be no valid JSON; {AS_JSON}'
    said = await workspace.said("edit", "a.ipynb", old_string="import y", new_string="z")
    assert said.startswith('Error: old_string was not found in "~/a.ipynb"; the closest: line ')
    assert said.endswith(f"; {AS_JSON}")
    assert path.read_bytes() == book()
    done = await workspace.said("edit", "a.ipynb", old_string="import x", new_string="import y")
    assert done == "The file ~/a.ipynb has been updated successfully."
    assert not is_broken(path.read_bytes())


async def test_a_notebook_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    said = await workspace.said("write", "a.ipynb", content="{")
    assert said == f'Error: cannot write "~/a.ipynb": that would be no valid JSON; {AS_JSON}'
    assert (await workspace.call("write", "a.ipynb", content=book().decode())).ok
    workspace.put("b.ipynb", book())
    await workspace.said("read", "b.ipynb")
    assert "not shown yet" in await workspace.said("write", "b.ipynb", content="{}")
    await workspace.said("read", "b.ipynb", offset=1)
    assert (await workspace.call("write", "b.ipynb", content="{}")).ok
