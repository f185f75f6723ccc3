"""The editors that `setup` knows: what each wants to be told, and where.

It must not know how a file is changed.

Rule 1: one row of EDITORS per editor. Its text is what a person pastes; where the editor has a
file of JSON for it, the same entry can be written there.
Rule 2: no key stands in an entry.
"""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template

from tools.frozen import frozen


@frozen
class Launch:
    """How the agent is started, and what it is called in the editor."""

    command: str
    args: tuple[str, ...] = ()
    name: str = "Responses"

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.command, *self.args)

    @property
    def slug(self) -> str:
        """The name in lower case, of letters, digits and hyphens."""
        kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.name.lower())
        return kept.strip("-") or "responses"


@frozen
class Home:
    """Where the user's files are."""

    folder: Path
    config: Path
    """XDG_CONFIG_HOME."""
    is_mac: bool = False


@frozen
class JsonFile:
    """A file of JSON that an editor reads."""

    places: Callable[[Home], tuple[Path, ...]]
    """Where it may be; the first whose folder exists, else the first."""
    path: Callable[[Launch], tuple[str, ...]]
    """Where our entry is in it."""
    entry: Callable[[Launch], Mapping[str, object]]
    is_ours: bool = False
    """Its folder may be made: the editor makes it only when there is something to keep."""


@frozen
class Editor:
    """One editor."""

    title: str
    where: str
    """Where the text goes."""
    text: Callable[[Launch], str]
    file: JsonFile | None = None
    after: str = ""
    """What to do then."""


ENVIRONMENT = "env"
"""The member of an entry that belongs to the user."""


def _env_entry(launch: Launch) -> dict[str, object]:
    return {"command": launch.command, "args": list(launch.args), ENVIRONMENT: {}}


def _zed_entry(launch: Launch) -> dict[str, object]:
    return {"type": "custom", **_env_entry(launch)}


def _acpx_entry(launch: Launch) -> dict[str, object]:
    return {"command": launch.command, "args": list(launch.args)}


def _zed_files(home: Home) -> tuple[Path, ...]:
    config = home.folder / ".config" if home.is_mac else home.config
    flatpak = home.folder / ".var/app/dev.zed.Zed/config"
    return tuple(folder / "zed/settings.json" for folder in (config, flatpak))


def _code_files(home: Home) -> tuple[Path, ...]:
    support = home.folder / "Library/Application Support"
    user = [(support if home.is_mac else home.config) / f"{name}/User" for name in _CODES]
    remote = [home.folder / f"{name}/data/Machine" for name in _CODE_SERVERS]
    return tuple(folder / "settings.json" for folder in (*user, *remote))


_CODES = ("Code", "Code - Insiders", "VSCodium")
_CODE_SERVERS = (".vscode-server", ".vscode-remote")

_ZED = JsonFile(_zed_files, lambda launch: ("agent_servers", launch.name), _zed_entry)
_JETBRAINS = JsonFile(
    lambda home: (home.folder / ".jetbrains/acp.json",),
    lambda launch: ("agent_servers", launch.name),
    _env_entry,
    is_ours=True,
)
_CODE = JsonFile(_code_files, lambda launch: ("acp.agents", launch.name), _env_entry)
_ACPX = JsonFile(
    lambda home: (home.folder / ".acpx/config.json",),
    lambda launch: ("agents", launch.slug),
    _acpx_entry,
    is_ours=True,
)


def _json(file: JsonFile) -> Callable[[Launch], str]:
    def text(launch: Launch) -> str:
        first, second = file.path(launch)
        return json.dumps({first: {second: file.entry(launch)}}, indent=2, ensure_ascii=False)

    return text


def _filled(template: str) -> Callable[[Launch], str]:
    def text(launch: Launch) -> str:
        return Template(template).substitute(
            command=_quoted(launch.command),
            args=", ".join(map(_quoted, launch.args)),
            argv=", ".join(map(_quoted, launch.argv)),
            words=" ".join(map(_quoted, launch.args)),
            name=_quoted(launch.name),
            slug=launch.slug,
            line=shlex.quote(shlex.join(launch.argv)),
        )

    return text


def _quoted(text: str) -> str:
    """A text in quotes, as Lua and Emacs Lisp read it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_CODECOMPANION = """\
require("codecompanion").setup({
  adapters = { acp = { ["$slug"] = function()
    local helpers = require("codecompanion.adapters.acp.helpers")
    return {
      name = "$slug", formatted_name = $name, type = "acp",
      roles = { llm = "assistant", user = "user" },
      commands = { default = { $argv } },
      defaults = { mcpServers = {}, timeout = 20000 },
      parameters = {
        protocolVersion = 1,
        clientCapabilities = { fs = { readTextFile = true, writeTextFile = true } },
        clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
      },
      handlers = {
        setup = function() return true end,
        auth = function() return true end,
        form_messages = function(self, messages, capabilities)
          return helpers.form_messages(self, messages, capabilities)
        end,
        on_exit = function() end,
      },
    }
  end } },
  interactions = { chat = { adapter = "$slug" } },
})"""

_AVANTE = """\
require("avante").setup({
  provider = "$slug",
  acp_providers = { ["$slug"] = {
    command = $command, args = { $args },
    env = { HOME = os.getenv("HOME"), OPENAI_API_KEY = os.getenv("OPENAI_API_KEY") },
  } },
})"""

_AGENT_SHELL = """\
(push (agent-shell-make-agent-config
       :identifier '$slug :mode-line-name $name :buffer-name $name
       :shell-prompt "$slug> " :shell-prompt-regexp "$slug> "
       :client-maker (lambda (buffer)
                       (acp-make-client :command $command :command-params '($words)
                                        :context-buffer buffer)))
      agent-shell-agent-configs)"""

EDITORS: dict[str, Editor] = {
    "zed": Editor(
        "Zed", "settings.json (zed: open settings file)", _json(_ZED), _ZED,
        "Restart Zed, open the agent panel and choose the agent behind its + sign.",
    ),
    "jetbrains": Editor(
        "JetBrains IDEs", "~/.jetbrains/acp.json (AI Chat, Add Custom Agent)", _json(_JETBRAINS),
        _JETBRAINS, "Choose the agent in AI Chat.",
    ),
    "vscode": Editor(
        "VS Code with the extension ACP Client", "settings.json (Open User Settings (JSON))",
        _json(_CODE), _CODE, "Choose the agent in the view of the extension.",
    ),
    "acpx": Editor(
        "acpx", "~/.acpx/config.json", _json(_ACPX), _ACPX,
        "Then: acpx NAME exec 'What is in this folder?', with the entry's name for NAME.",
    ),
    "agent-shell": Editor(
        "agent-shell in Emacs", "your init file, after agent-shell", _filled(_AGENT_SHELL),
        after="Then: M-x agent-shell.",
    ),
    "codecompanion": Editor(
        "codecompanion.nvim in Neovim", "your setup of the plugin", _filled(_CODECOMPANION),
        after="Then: :CodeCompanionChat.",
    ),
    "avante": Editor(
        "avante.nvim in Neovim", "your setup of the plugin", _filled(_AVANTE),
        after="It passes on no environment but what stands in env.",
    ),
    "toad": Editor(
        "Toad", "a terminal", _filled("toad acp $line PROJECT"),
        after="PROJECT is the folder to work in.",
    ),
}  # fmt: skip
"""Every editor, by the word of the command line."""


def place_of(file: JsonFile, home: Home) -> Path:
    """Where the editor's file is, or would be."""
    places = file.places(home)
    return next((place for place in places if is_folder(place.parent)), places[0])


def is_folder(path: Path) -> bool:
    """Whether there is such a folder, as far as we may look."""
    return os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises where we may not look)
