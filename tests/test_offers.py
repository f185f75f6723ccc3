"""What the product carries of each tool is what the tool says of itself.

`pytest tests/test_offers.py --update` writes it anew; `ruff format` then breaks the lines.
"""

from pathlib import Path

import pytest

from tools import offers
from tools.shell import CONFINED_SHELL
from tools.table import TOOLS

HEAD = '''"""What the model is told of each tool, in the order in which it is offered them.

It is written by `pytest tests/test_offers.py --update`, from the tools themselves: so the first
request waits neither until they are loaded nor until pydantic has written their schemas.
"""

from tools.base import Offer

'''


def test_what_is_offered_is_what_the_tools_say(request: pytest.FixtureRequest) -> None:
    plain = {name: tool.offer for name, tool in TOOLS.items()}
    confined = CONFINED_SHELL.offer
    if request.config.getoption("--update"):
        text = f"{HEAD}OFFERS = {plain!r}\n\nCONFINED_SHELL = {confined!r}\n"
        text += '"""The shell, where this machine has a sandbox."""\n'
        Path(offers.__file__).write_text(text, encoding="utf-8")
        return
    assert plain == offers.OFFERS
    assert list(plain) == list(offers.OFFERS)
    assert confined == offers.CONFINED_SHELL
