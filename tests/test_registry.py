"""The entry for the registry of agents is one that it takes."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from bridge import __version__

HOME = Path(__file__).parent.parent
ENTRY = HOME / ".ci" / "registry"


def test_the_entry_names_this_version() -> None:
    entry: dict[str, Any] = json.loads((ENTRY / "agent.json").read_text(encoding="utf-8"))
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert entry["id"] == project["name"]
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])
    assert entry["version"] == __version__
    assert entry["license"] == project["license"]
    assert entry["name"]
    assert entry["description"]
    assert entry["distribution"] == {"uvx": {"package": f"{entry['id']}=={__version__}"}}


def test_the_icon_takes_the_colour_of_its_surroundings() -> None:
    root = ElementTree.parse(ENTRY / "icon.svg").getroot()
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == (
        "16",
        "16",
        "0 0 16 16",
    )
    colours = {one.get(name) for one in root.iter() for name in ("fill", "stroke")}
    assert colours <= {"currentColor", "none", "inherit", None}
