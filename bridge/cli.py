"""The commands of the program besides the agent itself."""

import argparse
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from bridge import __version__, archive, log
from bridge.demo import play
from bridge.folders import state_folder
from bridge.setup.editors import EDITORS
from bridge.starting import agent_command
from bridge.store import Store

_HELP = """\
NAME
    responses-acp - coding agent for editors, on any model behind the Responses API

SYNOPSIS
    responses-acp [--config FILE] [--record FILE] [--log-level LEVEL]
    responses-acp demo [--yes] [--agent]
    responses-acp setup
    responses-acp setup EDITOR [--write|--remove] [--yes] [--name NAME] [--file FILE]
    responses-acp check [--json] [--model KEY]
    responses-acp login [PROVIDER]
    responses-acp logout [PROVIDER]
    responses-acp sessions list [--cwd DIRECTORY]
    responses-acp sessions show ID
    responses-acp sessions export ID [--format markdown|json] [--output FILE]
    responses-acp sessions delete ID...
    responses-acp replay FILE
    responses-acp --help | --version

DESCRIPTION
    Without a command, responses-acp is an agent: an editor starts it and speaks the Agent Client
    Protocol to it on standard input and output; it speaks the OpenAI Responses API to the model
    that is configured. It reads, edits and writes files of the workspace and runs commands, within
    the permissions of the session, and never edits a file that the model has not read.

COMMANDS
    demo
        Play one turn with a scripted model, without key or network, on a temporary file.
        --yes    approve the plan without asking
        --agent  be the agent, with the scripted model behind it: for trying an editor

    setup
        Without EDITOR: ask for server, key and model, and write the configuration.
        With EDITOR (zed, jetbrains, vscode, acpx, agent-shell, codecompanion, avante, toad): show
        the entry for this editor. For the first four:
        --write   put it into the editor's file, after showing the change and asking
        --remove  take it out again
        --yes     do not ask
        --name    what the agent is called in the editor
        --file    the editor's file, where it is not in its usual place

    check
        Look at everything that an answer needs, and tell what is wrong where: this machine, the
        configuration and where each setting comes from, the key, the way to the server, the model
        (with up to three small requests, which cost what they cost), the sandbox, MCP servers.
        --json   the same for programs
        --model  check this model of the configuration, not the default one

    login
        Ask for the key of a provider (that of the default model if none is named), try it, and keep
        it in keys.json beside the configuration, readable by you alone. It serves where the
        environment variable that the configuration names is not set.

    logout
        Forget the keys that login kept; with PROVIDER: that one.

    sessions
        Look at the conversations that are stored on this machine. ID may be shortened to its
        beginning, four characters at least, as long as it is the only one.
        list     all of them, newest first; --cwd: those of one folder
        show     one conversation, as it looked
        export   one conversation as Markdown, or as JSON, to standard output or a file. What
                 looks like a key, token or password is replaced; look it over all the same.
        delete   remove conversations, with the copies of files that belong to them

    replay
        Play a recording (see --record) against this version: what the editor and the model said
        and what tools found comes from FILE, so nothing is asked, run or changed. Shows the first
        place where the agent says something else than it did. Exit status: 0 where there is none,
        1 where there is one, 2 where the file is no recording.

OPTIONS
    --config FILE
        Read this file in place of the user's own.
    --record FILE
        Write down all that the agent says to the editor and to the model, and hears, in a new file
        that you alone can read. What looks like a key, token or password is replaced, but not the
        conversation: look the file over before you give it to somebody.
    --log-level LEVEL
        What the agent writes down in its log: off, error, info (the default) or debug.
    --help, -h
        Show this text.
    --version
        Show the version.

ENVIRONMENT
    OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL
        The key, server and model where there is no configuration file.
    HTTPS_PROXY, NO_PROXY, ALL_PROXY, SSL_CERT_FILE
        How servers are reached and trusted.
    RESPONSES_ACP_LOG
        The same as --log-level.
    NO_COLOR
        The demo shows no colours.

FILES
    ~/.config/responses-acp/config.toml
        The configuration; on macOS ~/Library/Application Support/responses-acp/config.toml.
        XDG_CONFIG_HOME moves it. config.example.toml shows every setting.
    ~/.local/state/responses-acp/
        Sessions and the log, responses-acp.log; on macOS with the configuration.
        On Linux XDG_STATE_HOME moves it.

EXIT STATUS
    0  all went well
    1  something failed; standard error says what
    2  the command line or the configuration is wrong
"""


def main(argv: Sequence[str]) -> int:
    """Run one command; the exit code."""
    parser = _parser()
    try:
        options = parser.parse_args(argv)
        if options.command == "setup" and options.editor is None:
            _refuse_what_is_for_editors(parser, options)
    except SystemExit as ended:
        return int(ended.code or 0)
    return _COMMANDS[options.command](options)


def _refuse_what_is_for_editors(parser: argparse.ArgumentParser, options: Namespace) -> None:
    """The first questions are no answer to whoever wants an entry and forgot the editor."""
    for name in ("write", "remove", "yes", "name", "file"):
        if getattr(options, name):
            parser.error(f"--{name} needs the EDITOR that it is about: {', '.join(EDITORS)}")


def _agent(options: Namespace) -> int:
    """The agent, started anew: its way in loads nothing of what is loaded here."""
    if options.log_level is not None:
        os.environ[log.VARIABLE] = options.log_level
    command = agent_command(options.config, options.record)
    return os.execv(command[0], command)  # noqa: S606 (ourselves, with the arguments in plain form)


def _demo(options: Namespace) -> int:
    if options.login is not None:  # an editor that runs the agent's command line to log in
        sys.stdout.write("The demo needs no key.\n")
        return 0
    return play.agent() if options.agent else play.play(yes=options.yes)


def _sessions(options: Namespace) -> int:
    folder = state_folder()
    log.start(None)
    return archive.run(Store(None if folder is None else folder / "sessions"), options)


def _set_up(options: Namespace) -> int:
    from bridge.setup.run import run  # noqa: PLC0415 (the HTTP client loads with it)

    return run(options)


def _check(options: Namespace) -> int:
    from bridge.check.run import run  # noqa: PLC0415 (the HTTP client loads with it)

    return run(options)


def _account(options: Namespace) -> int:
    from bridge.login import run  # noqa: PLC0415 (the HTTP client loads with it)

    return run(options)


def _replay(options: Namespace) -> int:
    from bridge.replay.run import run  # noqa: PLC0415 (the HTTP client loads with it)

    return run(options.recording)


_COMMANDS: dict[str | None, Callable[[Namespace], int]] = {
    None: _agent,
    "demo": _demo,
    "setup": _set_up,
    "check": _check,
    "login": _account,
    "logout": _account,
    "sessions": _sessions,
    "replay": _replay,
}


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, and helps like a man page."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, add_help=False, **settings)
        self.add_argument("--help", "-h", action="help")

    def format_help(self) -> str:
        return _HELP

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"responses-acp: {message}; see responses-acp --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="responses-acp")
    parser.add_argument("--version", action="version", version=f"responses-acp {__version__}")
    parser.add_argument("--config", metavar="FILE")
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--log-level", choices=tuple(log.LEVELS))
    commands = parser.add_subparsers(dest="command", parser_class=_Parser)
    demo = commands.add_parser("demo")
    demo.add_argument("--yes", action="store_true")
    demo.add_argument("--agent", action="store_true")
    demo.add_argument("login", nargs="?", choices=("login",))
    _setup(commands.add_parser("setup"))
    check = commands.add_parser("check")
    check.add_argument("--json", action="store_true")
    _config_too(check)
    check.add_argument("--model", metavar="KEY")
    for name in ("login", "logout"):
        account = commands.add_parser(name)
        account.add_argument("provider", nargs="?", metavar="PROVIDER")
        _config_too(account)
    commands.add_parser("replay").add_argument("recording", metavar="FILE")
    sessions = commands.add_parser("sessions")
    actions = sessions.add_subparsers(dest="action", parser_class=_Parser, required=True)
    actions.add_parser("list").add_argument("--cwd", metavar="DIRECTORY")
    actions.add_parser("show").add_argument("session")
    export = actions.add_parser("export")
    export.add_argument("session")
    export.add_argument("--format", choices=("markdown", "json"), default="markdown")
    export.add_argument("--output", metavar="FILE")
    actions.add_parser("delete").add_argument("sessions", nargs="+")
    return parser


def _setup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("editor", nargs="?", choices=tuple(EDITORS), metavar="EDITOR")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true")
    what.add_argument("--remove", action="store_true")
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("--name", metavar="NAME")
    parser.add_argument("--file", metavar="FILE")
    _config_too(parser)


def _config_too(parser: argparse.ArgumentParser) -> None:
    """--config may also stand behind the command."""
    parser.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS)
