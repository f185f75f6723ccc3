"""`setup`: the entry for an editor, in its file and out of it; and the first questions."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tomllib
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bridge.config import Provider, load
from bridge.core.catalogue import Found
from bridge.errors import ConfigError, LoginRequired
from bridge.setup import first, providers
from bridge.setup import run as command
from bridge.setup.editors import EDITORS, Home, Launch, place_of
from bridge.setup.entry import NotDone, Wish, launch, tell
from bridge.terminal import Person
from tests.fake_responses import FakeResponses, Reply

OURS = Launch("/opt/r a/responses-acp", ("--config", "/c.toml"))
KEY = "sk-typed-1234567890"


@dataclass
class Told:
    """A terminal whose person says these lines."""

    answers: list[str] = field(default_factory=list[str])
    can_ask: bool = True
    secrets: list[str] = field(default_factory=list[str])
    text: str = ""

    def say(self, text: str) -> None:
        self.text += text

    def ask(self, question: str) -> str:
        self.text += f"{question}\n"
        if not self.answers:
            raise EOFError
        return self.answers.pop(0)

    def secret(self, question: str) -> str:
        return self.secrets.pop(0)


# -- what each editor is told


@pytest.mark.parametrize(
    ("editor", "parts"),
    [
        ("zed", ['"agent_servers"', '"type": "custom"', '"/opt/r a/responses-acp"']),
        ("jetbrains", ['"agent_servers"', '"env": {}']),
        ("vscode", ['"acp.agents"', '"Responses"']),
        ("acpx", ['"agents"', '"responses"', '"--config"']),
        ("agent-shell", ["'responses", ':command-params \'("--config" "/c.toml")']),
        ("codecompanion", ['default = { "/opt/r a/responses-acp", "--config", "/c.toml" }']),
        (
            "avante",
            ['command = "/opt/r a/responses-acp", args = { "--config", "/c.toml" }', "HOME"],
        ),
        ("toad", ["toad acp ''\"'\"'/opt/r a/responses-acp'\"'\"' --config /c.toml' PROJECT"]),
    ],
)
@pytest.mark.anyio
async def test_every_editor_is_told_how_to_start_us(editor: str, parts: list[str]) -> None:
    told = Told()
    await tell(Wish(editor, OURS), told, {})
    for part in parts:
        assert part in told.text
    if EDITORS[editor].file is not None:
        shown = told.text[told.text.index("\n{") : told.text.rindex("}") + 1]
        assert json.loads(shown)


def test_names_and_quotes_are_written_as_each_language_reads_them() -> None:
    odd = Launch('/a"b\\c', (), "My Agent 2!")
    assert odd.slug == "my-agent-2"
    assert Launch("/a", (), "日本").slug == "responses"
    assert 'command = "/a\\"b\\\\c"' in EDITORS["avante"].text(odd)
    assert ':mode-line-name "My Agent 2!"' in EDITORS["agent-shell"].text(odd)


@pytest.mark.parametrize(
    ("editor", "folders", "is_mac", "place"),
    [
        ("zed", [], False, "xdg/zed/settings.json"),
        ("zed", [".var/app/dev.zed.Zed/config/zed"], False,
         ".var/app/dev.zed.Zed/config/zed/settings.json"),
        ("zed", ["xdg/zed", ".var/app/dev.zed.Zed/config/zed"], False, "xdg/zed/settings.json"),
        ("zed", [], True, ".config/zed/settings.json"),
        ("vscode", [], False, "xdg/Code/User/settings.json"),
        ("vscode", ["xdg/VSCodium/User"], False, "xdg/VSCodium/User/settings.json"),
        ("vscode", [".vscode-server/data/Machine"], False,
         ".vscode-server/data/Machine/settings.json"),
        ("vscode", [], True, "Library/Application Support/Code/User/settings.json"),
        ("jetbrains", [], False, ".jetbrains/acp.json"),
        ("acpx", [], True, ".acpx/config.json"),
    ],
)  # fmt: skip
def test_the_files_of_editors_are_found(
    editor: str, folders: list[str], is_mac: bool, place: str, tmp_path: Path
) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    file = EDITORS[editor].file
    assert file is not None
    found = place_of(file, Home(tmp_path, tmp_path / "xdg", is_mac))
    assert found == tmp_path / place


def test_the_program_is_named_by_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "bin" / "responses-acp"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert launch(None, None, "bin/responses-acp", "") == Launch(str(script))
    assert launch("c.toml", "Mine", "/elsewhere/__main__.py", str(script.parent)) == Launch(
        str(script), ("--config", str(tmp_path / "c.toml")), "Mine"
    )
    bare = launch(None, None, "/elsewhere/__main__.py", "")
    assert bare.args[0] == "-I"
    assert Path(bare.args[1]).is_file()


# -- the files


SETTINGS = """\
// Zed settings
{
  "theme": "One", // mine
  "agent_servers": {
    "Other": { "command": "x" }, // keep
  },
}
"""


async def change(
    file: Path, told: Told | None = None, editor: str = "zed", **wish: Any
) -> Told:  # fmt: skip
    told = told or Told(["y"])
    given = {"write": True, **wish}
    await tell(Wish(editor, OURS, file=file, **given), told, {"HOME": "/nowhere"})
    return told


@pytest.mark.anyio
async def test_an_entry_is_shown_asked_for_and_written_and_taken_out_again(tmp_path: Path) -> None:
    real, file = tmp_path / "real.json", tmp_path / "settings.json"
    real.write_bytes(SETTINGS.encode())
    real.chmod(0o640)
    file.symlink_to(real)
    told = await change(file)
    assert '+    "Responses": {' in told.text
    assert "Change the file like this? [y/N]" in told.text
    assert "Restart Zed" in told.text
    assert file.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert '"Other": { "command": "x" }, // keep' in real.read_text()
    again = await change(file, Told())
    assert "nothing to do" in again.text
    await change(file, Told(can_ask=False), write=False, remove=True, yes=True)
    assert real.read_bytes() == SETTINGS.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (  # the program has moved; the key, the mode and a comment are the user's
            '{"type": "custom", "command": "/old", /* mine */ "args": ["demo", "--agent"], '
            '"env": {"OPENAI_API_KEY": "k"}, "default_mode": "plan"}',
            '{"type": "custom", "command": COMMAND, /* mine */ "args": ARGS, '
            '"env": {"OPENAI_API_KEY": "k"}, "default_mode": "plan"}',
        ),
        (  # what is missing stands first
            '{ "env": {"A": "1"} }',
            '{ "type": "custom", "command": COMMAND, "args": ARGS, "env": {"A": "1"} }',
        ),
        (
            '{"type": "custom", "command": COMMAND, "args": ARGS, "env": null}',
            '{"type": "custom", "command": COMMAND, "args": ARGS, "env": {}}',
        ),
    ],
)
@pytest.mark.anyio
async def test_of_an_entry_that_is_there_only_the_start_is_set(
    before: str, after: str, tmp_path: Path
) -> None:
    def whole(entry: str) -> str:
        args = "[" + ", ".join(f"\n  {json.dumps(one)}" for one in OURS.args).replace(", ", ",")
        entry = entry.replace("COMMAND", json.dumps(OURS.command)).replace("ARGS", f"{args}\n]")
        return f'{{"agent_servers": {{"Responses": {entry}}}}}'

    file = tmp_path / "settings.json"
    file.write_text(whole(before))
    await change(file)
    assert file.read_text() == whole(after)
    assert "nothing to do" in (await change(file, Told())).text


@pytest.mark.parametrize(
    ("editor", "place", "content"),
    [
        ("jetbrains", ".jetbrains/acp.json", {"agent_servers": {"Responses": {
            "command": OURS.command, "args": list(OURS.args), "env": {}}}}),
        ("acpx", ".acpx/config.json", {"agents": {"responses": {
            "command": OURS.command, "args": list(OURS.args)}}}),
    ],
)  # fmt: skip
@pytest.mark.anyio
async def test_files_that_only_hold_agents_are_made(
    editor: str, place: str, content: Any, tmp_path: Path
) -> None:
    await tell(Wish(editor, OURS, write=True, yes=True), Told(), {"HOME": str(tmp_path)})
    assert json.loads((tmp_path / place).read_text()) == content


def hold(content: bytes) -> Any:
    def make(file: Path) -> None:
        file.write_bytes(content)

    return make


def contents(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def names_in(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir()]


@pytest.mark.parametrize(
    ("make", "answers", "why"),
    [
        (hold(b"{}"), ["n"], "nothing was changed"),
        (hold(b"{}"), [""], "nothing was changed"),
        (hold(b"[]"), ["y"], "holds something else than an object"),
        (hold(b"{oops}"), ["y"], "is not JSON as editors write it: line 1"),
        (hold(b'{"a": "\xff"}'), ["y"], "is not UTF-8"),
        (hold(b" " * (4 * 1024 * 1024 + 1)), ["y"], "no file of settings: 4194305 bytes"),
        (Path.mkdir, ["y"], "no file of settings: a directory"),
        (os.mkfifo, ["y"], "no file of settings: a FIFO"),
        (hold(b'{"agent_servers": 5}'), ["y"], "something else than an object"),
    ],
)
@pytest.mark.anyio
async def test_what_is_odd_is_told_and_left_alone(
    make: Any, answers: list[str], why: str, tmp_path: Path
) -> None:
    file = tmp_path / "settings.json"
    make(file)
    before = contents(file)
    with pytest.raises(NotDone, match=why):
        await change(file, Told(answers))
    assert names_in(tmp_path) == ["settings.json"]
    assert contents(file) == before


@pytest.mark.anyio
async def test_nobody_to_ask_and_nowhere_to_write_is_said(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    with pytest.raises(NotDone, match="add --yes"):
        await change(file, Told(can_ask=False))
    with pytest.raises(NotDone, match=r"no folder .*/zed: start the editor once"):
        await change(tmp_path / "zed" / "settings.json")
    with pytest.raises(NotDone, match="Toad has no file of JSON for it: put the entry into a term"):
        await change(file, editor="toad")
    with pytest.raises(NotDone, match="HOME is not set: name the editor's file with --file"):
        await tell(Wish("zed", OURS, write=True), Told(), {})
    with pytest.raises(NotDone, match="Not a directory"):
        await change(file / "x" / "settings.json")
    for odd in (Launch("/a", (), "\udcff"), Launch("/\udcff"), Launch("/a", ("/\udcff",))):
        for wish in (Wish("zed", odd, write=True, yes=True, file=file), Wish("toad", odd)):
            with pytest.raises(NotDone, match="is not UTF-8 text"):
                await tell(wish, Told(), {})
    assert file.read_text() == "{}"


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder in which nobody can write")
async def test_a_file_that_cannot_be_written_is_named() -> None:
    told = Told(["y"])
    wish = Wish("jetbrains", OURS, write=True)
    with pytest.raises(NotDone, match=r"/proc/1/fdinfo/\.jetbrains/acp\.json: Permission denied"):
        await tell(wish, told, {"HOME": "/proc/1/fdinfo"})


@pytest.mark.anyio
async def test_a_file_that_changes_while_it_is_asked_about_stays_as_it_became(
    tmp_path: Path,
) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")

    class Meddling(Told):
        def ask(self, question: str) -> str:
            file.write_text('{"new": 1}')
            return "y"

    with pytest.raises(NotDone, match="changed meanwhile"):
        await change(file, Meddling())
    assert file.read_text() == '{"new": 1}'
    new = tmp_path / "acp.json"

    class Making(Told):
        def ask(self, question: str) -> str:
            new.write_text("{}")
            return "y"

    with pytest.raises(NotDone, match="changed meanwhile"):
        await change(new, Making(), editor="jetbrains")
    assert new.read_text() == "{}"


# -- the first questions


@pytest.mark.parametrize(
    ("said", "base_url", "deployment"),
    [
        ("https://res.openai.azure.com/", "https://res.openai.azure.com/openai/v1", None),
        ("res.openai.azure.com", "https://res.openai.azure.com/openai/v1", None),
        (
            "https://Res.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=1",
            "https://res.openai.azure.com/openai/v1", "my gpt",
        ),
        (
            "https://r.services.ai.azure.com/api/projects/p",
            "https://r.services.ai.azure.com/openai/v1", None,
        ),
        (
            "https://r.cognitiveservices.azure.com/openai/responses?api-version=2025-04-01",
            "https://r.cognitiveservices.azure.com/openai/v1", None,
        ),
        ("https://example.com/v1/", "https://example.com/v1", None),
    ],
)  # fmt: skip
def test_the_address_that_the_portal_shows_is_enough(
    said: str, base_url: str, deployment: str | None
) -> None:
    assert providers.azure(said) == (base_url, deployment)


@pytest.mark.parametrize("provider", providers.PROVIDERS, ids=lambda one: one.table)
def test_what_is_written_can_be_read(provider: providers.Provider, tmp_path: Path) -> None:
    model = Found('od"d/modél:1', window=1000, images=True)
    url = provider.base_url or "https://x.example/v1"
    file = tmp_path / "config.toml"
    file.write_text(
        providers.written(providers.Answers(provider, url, ("api_key_env", '"K"'), model)),
        encoding="utf-8",
    )
    config = load(str(file), {})
    found = config.models[config.default_model]
    assert (found.model, found.context_window, found.images) == (model.id, 1000, True)
    assert config.providers[provider.table].base_url == url
    assert config.providers[provider.table].api_key_env == "K"


async def asked(
    folder: Path,
    *answers: str,
    environment: Mapping[str, str] | None = None,
    models: Sequence[Found] | Exception = (),
    secret: str = KEY,
) -> tuple[Told, dict[str, Any]]:
    """The terminal afterwards, and what was written."""
    told = Told(list(answers), secrets=[secret])

    async def listed(_: Provider, key: str | None) -> Sequence[Found]:
        told.text += f"(asked with {key})\n"
        if isinstance(models, Exception):
            raise models
        return models

    file = folder / "config.toml"
    given = {"XDG_CONFIG_HOME": str(folder.parent), **(environment or {})}
    await first.configure(file, told, given, listed)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    return told, tomllib.loads(file.read_text(encoding="utf-8"))


@pytest.mark.anyio
async def test_enter_is_enough_where_the_environment_has_the_key(tmp_path: Path) -> None:
    told, made = await asked(
        tmp_path / "c", "", "", "2", "",
        environment={"OPENAI_API_KEY": "k"},
        models=[Found("gpt-4"), Found("gpt-5", window=9)],
    )  # fmt: skip
    assert made == {
        "providers": {"openai": {"base_url": "https://api.openai.com/v1",
                                 "api_key_env": "OPENAI_API_KEY"}},
        "models": {"gpt-5": {"provider": "openai", "model": "gpt-5", "context_window": 9,
                             "summary": "auto"}},
    }  # fmt: skip
    assert "OPENAI_API_KEY, which is set" in told.text
    assert "   2  gpt-5\n" in told.text


@pytest.mark.anyio
async def test_a_typed_key_is_kept_apart_and_for_one_address(tmp_path: Path) -> None:
    folder = tmp_path / "responses-acp"
    url = "https://r.openai.azure.com/openai/deployments/dep/x"
    told, made = await asked(folder, "2", url, "4", "")
    assert made["models"] == {"dep": {"provider": "azure", "model": "dep"}}
    assert made["providers"]["azure"]["key_header"] == "api-key"
    kept = folder / "keys.json"
    assert json.loads(kept.read_text()) == {"https://r.openai.azure.com/openai/v1": KEY}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert KEY not in told.text
    given = {"XDG_CONFIG_HOME": str(tmp_path)}
    provider = load(None, given).providers["azure"]
    assert provider.key(given) == KEY
    assert provider.key({**given, "AZURE_OPENAI_API_KEY": "mine"}) == "mine"
    elsewhere = provider.model_copy(update={"base_url": "https://other.example/v1"})
    assert elsewhere.key(given) is None


@pytest.mark.anyio
async def test_what_does_not_fit_is_asked_again(tmp_path: Path) -> None:
    told, made = await asked(
        tmp_path / "c",
        "99", "x", "7", "ftp://x", "http://127.0.0.1:9/v1", "5", "", "", "local", "y",
        models=LoginRequired("no key"),
    )  # fmt: skip
    assert "a number from 1 to 11, please" in told.text
    assert "must begin with https://HOST" in told.text
    assert "The server tells no models now: no key" in told.text
    assert made["providers"]["llamacpp"] == {
        "base_url": "http://127.0.0.1:9/v1", "quirks": "llama.cpp"
    }  # fmt: skip
    assert list(made["models"]) == ["local"]


@pytest.mark.parametrize(
    ("answers", "setting"),
    [
        (["2", "MY_KEY"], {"api_key_env": "MY_KEY"}),
        (["3", "/run/key"], {"api_key_file": "/run/key"}),
        (["5"], {}),
    ],
)
@pytest.mark.anyio
async def test_a_key_may_come_from_elsewhere(
    answers: list[str], setting: dict[str, str], tmp_path: Path
) -> None:
    many = [Found(f"m{number:02}") for number in range(45)]
    told, made = await asked(tmp_path / "c", "3", *answers, "m44", "", models=many)
    assert made["providers"]["openrouter"] == {
        "base_url": "https://openrouter.ai/api/v1", **setting
    }  # fmt: skip
    assert list(made["models"]) == ["m44"]
    assert "The first 40 of 45 models" in told.text


@pytest.mark.parametrize(
    ("answers", "secret", "there", "why"),
    [
        (["n"], KEY, True, "stays as it is"),
        ([""], KEY, True, "stays as it is"),
        (["", "1", "m", "n"], KEY, False, "nothing was written"),
        (["", "4"], "", False, "it is empty"),
        (["", "4"], "two words", False, "it has blanks or special characters"),
        (["", "2", "1X", "m", ""], KEY, False, "must be the name of an environment variable"),
    ],
)
@pytest.mark.anyio
async def test_what_is_there_stays_without_a_yes(
    answers: list[str], secret: str, there: bool, why: str, tmp_path: Path
) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    if there:
        (folder / "config.toml").write_text("# mine")
    with pytest.raises(Exception, match=why):
        await asked(folder, *answers, secret=secret)
    assert names_in(folder) == ["config.toml"] * there
    assert contents(folder / "config.toml") == (b"# mine" if there else None)


@pytest.mark.anyio
async def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotDone, match=r"config\.toml cannot be written: Not a directory"):
        await asked(tmp_path / "file" / "c", "", "1", "m", "")


# -- the command


def options(**given: Any) -> Namespace:
    empty = dict.fromkeys(("editor", "write", "remove", "yes", "name", "file", "config"))
    return Namespace(**{**empty, **given})


def test_the_command_ends_with_a_sentence_and_a_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert command.run(options(editor="zed"), Told()) == 0
    assert command.run(options(editor="toad", write=True), Told()) == 1
    assert capsys.readouterr().err.startswith("responses-acp setup: Toad has no file of JSON")
    assert command.run(options(), Told()) == 1
    assert capsys.readouterr().err.endswith("stopped; nothing was written\n")
    assert command.run(options(config=str(tmp_path / "f" / "c.toml")), Told(["n"])) == 1
    assert "stopped" in capsys.readouterr().err


@pytest.mark.anyio
async def test_a_wrong_address_can_be_put_right(tmp_path: Path) -> None:
    told = Told(
        ["7", "http://127.0.0.1:9/wrong", "5", "nonsense", "http://127.0.0.1:9/v1", "1", "y"]
    )
    tried: list[str] = []

    async def listed(server: Provider, _: str | None) -> Sequence[Found]:
        tried.append(server.base_url)
        if server.base_url.endswith("wrong"):
            raise ConfigError("HTTP 404")
        return [Found("small")]

    file = tmp_path / "config.toml"
    await first.configure(file, told, {"XDG_CONFIG_HOME": str(tmp_path)}, listed)
    assert tried == ["http://127.0.0.1:9/wrong", "http://127.0.0.1:9/v1"]
    made = tomllib.loads(file.read_text(encoding="utf-8"))
    assert made["providers"]["llamacpp"]["base_url"] == "http://127.0.0.1:9/v1"
    assert not told.answers


@pytest.mark.anyio
async def test_the_list_comes_from_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    fake = FakeResponses(
        Reply([b'{"data": [{"id": "small"}]}']), Reply([b'{"data": []}']), any_body=True
    )
    file = tmp_path / "c" / "config.toml"
    told = Told(["8", "", "4", "1", ""], secrets=[KEY])
    async with fake.serve() as url:
        told.answers[1] = url
        await command.first_questions(file, told)
    assert fake.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert fake.asked[0].target == "/v1/models"
    assert "small" in tomllib.loads(file.read_text())["models"]


@pytest.mark.anyio
async def test_a_typed_key_that_the_server_refuses_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    fake = FakeResponses(
        Reply(status=401), Reply([b'{"data": [{"id": "small"}]}']), Reply(status=403), any_body=True
    )
    file, told = tmp_path / "c" / "config.toml", Told(secrets=["sk-mistyped", KEY, KEY])
    async with fake.serve() as url:
        told.answers = ["8", url, "4", "1", ""]
        await command.first_questions(file, told)
        assert json.loads((tmp_path / "responses-acp/keys.json").read_text()) == {url: KEY}
        assert "The server refuses this key." in told.text
        # This key may be good, though it may not list models.
        told.answers = ["y", "8", url, "4", "", "small", ""]
        await command.first_questions(file, told)
    assert "The server tells no models now" in told.text
    assert not told.secrets


def test_a_pipe_in_the_place_of_a_person_is_read_but_not_asked(tmp_path: Path) -> None:
    program = shutil.which("responses-acp") or str(Path(".venv/bin/responses-acp").absolute())
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    (tmp_path / ".config/zed").mkdir(parents=True)
    ended = subprocess.run(
        [program, "setup", "zed", "--write"], input="y\n", capture_output=True, text=True,
        env=environment, timeout=30, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (
        1, "responses-acp setup: nothing was changed, since nobody can be asked here: add --yes\n"
    )  # fmt: skip
    ended = subprocess.run(
        [program, "setup", "zed", "--write", "--yes"], capture_output=True, text=True,
        env=environment, timeout=30, check=True,
    )  # fmt: skip
    made = json.loads((tmp_path / ".config/zed/settings.json").read_text())
    assert Path(made["agent_servers"]["Responses"]["command"]).is_absolute()


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        ([], b"Number [1]:"),
        (["zed", "--write"], b"[y/N]"),
    ],
)
def test_one_interrupt_ends_every_question(
    arguments: list[str], question: bytes, tmp_path: Path
) -> None:
    program = shutil.which("responses-acp") or str(Path(".venv/bin/responses-acp").absolute())
    (tmp_path / ".config/zed").mkdir(parents=True)
    person, terminal = os.openpty()
    with subprocess.Popen(
        [program, "setup", *arguments], stdin=terminal, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    ) as asking:  # fmt: skip
        assert asking.stdout is not None
        shown = b""
        while question not in shown and (more := os.read(asking.stdout.fileno(), 65536)):
            shown += more
        asking.send_signal(signal.SIGINT)
        try:
            _, said = asking.communicate(timeout=30)
        finally:
            asking.kill()
    os.close(person)
    os.close(terminal)
    assert (asking.returncode, said) == (
        1,
        b"\nresponses-acp setup: stopped; nothing was written\n",
    )
    assert contents(tmp_path / ".config/zed/settings.json") is None


def test_a_person_is_asked_on_the_standard_streams(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, write = os.pipe()
    os.write(write, b" yes \nsecret\n")
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        person = Person()
        assert not person.can_ask
        assert person.ask("Sure?") == "yes"
        assert person.secret("Key?") == "secret"
        with pytest.raises(EOFError):
            person.ask("More?")
    assert capsys.readouterr().out == "Sure? More? "
