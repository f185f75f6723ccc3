"""One session: its records applied again give the same session."""

import os
import tempfile
from pathlib import Path

import anyio
import pytest

from bridge.config import load
from bridge.core.history import INTERRUPTED
from bridge.core.policy import Allow, Ask
from bridge.core.records import (
    Announced,
    Compacted,
    Cost,
    Extended,
    GoalChanged,
    Item,
    Opened,
    Prompted,
    Record,
    Responded,
    Returned,
    SaidText,
    SawFile,
    Switched,
    Titled,
    Told,
)
from bridge.core.rule import FOR_SESSION, exactly
from bridge.core.rules import parsed
from bridge.errors import ConfigError
from bridge.keys import Keys
from bridge.machine import Machine
from bridge.permits import barred, decide
from bridge.session import Prompt, Session
from bridge.store import Store
from tools.base import Access, Card, Command
from tools.layers import Layers

CONFIG = """
default_model = "a"
[providers.p]
base_url = "http://127.0.0.1:9/v1"
[models.a]
provider = "p"
efforts = ["low", "high"]
effort = "low"
[models.b]
provider = "p"
model = "wire-b"
replay = "verbatim"
"""


def session(folder: Path, name: str = "s1", *, model: str = "a") -> Session:
    file = folder / "config.toml"
    file.write_text(CONFIG, encoding="utf-8")
    opened = Opened(name, str(folder), "t", "plan", model, "low", "ask")
    return Session(load(str(file), {}), opened, Store(folder / "state").create(opened))


def responded(number: int, *seen: SaidText | Announced, items: tuple[Item, ...] = ()) -> Responded:
    return Responded(number, "p/a", seen, items)


def test_a_restored_session_goes_on_where_it_was(tmp_path: Path) -> None:
    one = session(tmp_path)
    call = Announced(one.card_id("c"), "c", "read", "{}", Card("Read"))
    twice = Announced(one.card_id("c"), "c", "read", "{}", Card("Read"))
    number = one.next_response()
    records: list[Record] = [
        Prompted(one.next_prompt(), (), ({"type": "input_text", "text": "Hi"},), "t"),
        responded(number, SaidText("message", "m1.0", "x"), call, twice),
        Told(one.next_told(), "note"),
        Titled("A title", "t"),
        Switched("mode", "default"),
        Switched("model", "b"),
        Switched("effort", "high"),
        Switched("permission", "danger-full-access"),
        SawFile({"path": "/w/a"}),
        GoalChanged("Ship", rounds=2),
    ]
    for record in records:
        one.record(record)
    one.close()
    stored = Store(tmp_path / "state").load("s1")
    other = session(tmp_path, "s2")
    ended = [Returned(card, "c", custom=False, text=INTERRUPTED, ok=False) for card in ("c", "c#2")]
    assert list(other.restored(stored.records()))[1:] == [*records, *ended]
    for restored in (one, other):
        assert (restored.title, restored.mode, restored.model_key) == ("A title", "default", "b")
        assert (restored.effort, restored.permission) == ("high", "danger-full-access")
        assert restored.goal == GoalChanged("Ship", rounds=2)
        assert restored.next_prompt() == 2
        assert restored.next_told() == "n2"
        assert restored.next_response() == 2
        assert restored.card_id("c") == "c#3"
        assert restored.card_id("d") == "d"
        assert restored.dialect.maker == "p/wire-b"
        assert restored.dialect.replay == "verbatim"
    assert not other.goal_armed
    stored.journal.close()


def test_an_id_that_looks_like_a_repeated_one_is_its_own(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.record(responded(1, Announced("c#9", "c#9", "read", "{}", Card("Read"))))
    assert one.card_id("c#9") == "c#9#2"
    assert one.card_id("c") == "c"


def test_no_two_calls_have_one_card(tmp_path: Path) -> None:
    made = session(tmp_path)
    given = ["c", "c", "c#2", "c", "d#2", "d", "d", "d#2", "c#2#2", "c#2"]
    cards = [made.card_id(call_id) for call_id in given]
    assert cards == ["c", "c#2", "c#2#2", "c#3", "d#2", "d", "d#3", "d#2#2", "c#2#2#2", "c#2#3"]


def test_a_model_that_is_no_longer_configured_gives_way_to_the_default(tmp_path: Path) -> None:
    assert session(tmp_path, model="gone").model_key == "a"
    one = session(tmp_path)
    one.record(Switched("model", "b"))
    one.record(Switched("model", "gone"))
    assert (one.model_key, one.effort) == ("a", "low")


def test_the_scratch_folder_lives_as_long_as_the_session(tmp_path: Path) -> None:
    one = session(tmp_path)
    folder = Path(one.scratch)
    assert one.roots == (str(tmp_path.resolve()), str(folder))
    (folder / "x").write_text("x")
    assert one.scratch == str(folder)
    one.close()
    assert not folder.exists()
    session(tmp_path).close()


@pytest.mark.anyio
async def test_without_a_place_for_temporary_files_commands_say_so_and_later_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, a machine that can only be read: it may pass."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    one = session(tmp_path)
    with pytest.raises(ConfigError, match="no folder for temporary files"):
        assert one.scratch
    here = Machine(Keys({}, print), Layers())
    shell = here.shell(one)
    with anyio.fail_after(10):
        await here.log_in(one)
        assert "no folder for temporary files" in (await shell.hold()).refusal
        (tmp_path / "gone").mkdir()
        assert (await shell.hold()).refusal == ""
        ended = await shell.run(Command("echo a", str(tmp_path), 10), lambda _: None)
        assert ended.stdout == "a\n"
    here.close()
    one.close()


@pytest.mark.parametrize("found", ["nothing", "a link", "a file", "another user's folder"])
def test_a_scratch_folder_that_went_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    one = session(tmp_path)
    folder = Path(one.scratch)
    folder.rmdir()
    if found == "a link":
        folder.symlink_to(tmp_path)
    elif found == "a file":
        folder.touch()
    elif found != "nothing":
        folder.mkdir()
        try:
            os.chown(folder, os.geteuid() + 1, -1)
        except PermissionError:
            pytest.skip("needs root")
    made = Path(one.scratch)
    assert made != folder
    assert made.is_dir()
    assert one.roots == (str(tmp_path.resolve()), str(made))
    one.close()
    assert not made.exists()


def test_a_mode_in_force_is_no_change(tmp_path: Path) -> None:
    one = session(tmp_path)
    assert not one.switch("plan")
    assert one.switch("default")
    assert one.mode == "default"


def test_what_was_answered_for_good_holds_for_this_session(tmp_path: Path) -> None:
    one, access = session(tmp_path), Access("call", "db: drop 12")
    always = exactly("allow", "call", "db: drop 12", FOR_SESSION)
    one.switch("default")
    assert decide(one, "mcp__db__drop", access).verdict == Ask()
    one.answers.keep(always)
    assert decide(one, "mcp__db__drop", access).verdict == Allow()
    other = session(tmp_path, "s2")
    other.switch("default")
    assert decide(other, "mcp__db__drop", access).verdict == Ask()


def test_a_file_that_may_not_be_read_is_barred(tmp_path: Path) -> None:
    one = session(tmp_path)
    assert not barred(one)(f"{one.roots[0]}/secret/a")
    one.rules = (parsed("ask", "read secret"), parsed("deny", "edit x"))
    assert not barred(one)(f"{one.roots[0]}/secret/a")
    one.rules = (parsed("deny", "read secret"),)
    assert barred(one)(f"{one.roots[0]}/secret/a")
    assert not barred(one)(f"{one.roots[0]}/a")


@pytest.mark.anyio
async def test_cancel_reaches_the_running_prompt_and_all_that_wait(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.cancel()
    one.prompts += [Prompt(()), Prompt(())]
    one.cancel()
    for prompt in one.prompts:
        with prompt.scope:
            await anyio.sleep_forever()
        assert prompt.scope.cancelled_caught


def test_what_was_spent_and_allowed_is_known_after_a_load(tmp_path: Path) -> None:
    loaded = session(tmp_path)
    dollar, euro = Cost(1.0, "USD"), Cost(0.5, "EUR")
    spent = [Responded(1, "p/m", (), (), 100, dollar), Responded(2, "p/m", (), ())]
    allowed = Extended(100, 1.0)
    compacted = [Compacted(1, "So far.", 50, euro), Compacted(2, "So far.")]
    list(loaded.restored([*spent, allowed, *compacted]))
    assert (loaded.meter.tokens, loaded.meter.spent, loaded.extended) == (150, 1.5, allowed)
