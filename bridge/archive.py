"""The command `sessions`: what the editors' conversations left on disk, for the person.

Rule 1: looking changes nothing and needs no lock: a session may be open in an editor.
Rule 2: what is exported leaves this machine, so it is scrubbed of what looks like a secret.
"""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

from bridge.core import updates
from bridge.core.export import Entry, entries, markdown
from bridge.core.meter import Meter
from bridge.core.records import Opened, Record, Titled
from bridge.core.scrub import scrubbed, scrubbed_values
from bridge.core.updates import Update
from bridge.demo.screen import Screen
from bridge.errors import BridgeError
from bridge.store import Store, Summary
from bridge.terminal import is_colourful, say_no_more, write
from tools.frozen import frozen

_SHORTEST_ID = 4


class NotFound(BridgeError):
    """No session, or more than one, begins with these characters."""


def run(store: Store, options: Namespace) -> int:
    """One of the commands behind `sessions`; the exit code."""
    try:
        COMMANDS[options.action](store, options)
    except BrokenPipeError:  # whoever reads our output has seen enough
        say_no_more()
    except BridgeError as error:
        sys.stderr.write(f"responses-acp sessions: {error}\n")
    except OSError as error:
        if error.filename is None:  # of our output, which the disk may not take
            say_no_more()
        place = "" if error.filename is None else f"{error.filename}: "
        sys.stderr.write(f"responses-acp sessions: {place}{error.strerror}\n")
    else:
        return 0
    return 1


def _list(store: Store, options: Namespace) -> None:
    cwd = None if options.cwd is None else os.path.realpath(options.cwd)
    for one in store.summaries():
        if cwd in (None, os.path.realpath(one.label.cwd)):
            title = one.label.title or "(no title)"
            write(f"{one.label.session}  {one.updated_at[:16]}Z  {title}\n    {one.label.cwd}\n")


def _show(store: Store, options: Namespace) -> None:
    conversation = _conversation(store, _find(store, options.session))
    screen = Screen(write, colour=is_colourful(), folder=conversation.opened.cwd)
    for update in conversation.updates():
        match update:
            case {"sessionUpdate": "user_message_chunk", "content": {"text": str(text)}}:
                screen.person(text)
            case _:
                screen.update(update)
    screen.end()
    meter = Meter()
    for record in conversation.records():
        meter.add(record)
    for name, text in meter.report():
        write(f"{name}: {text}\n")


def _delete(store: Store, options: Namespace) -> None:
    for wanted in options.sessions:
        session = wanted
        if not store.delete(wanted):  # with its whole id even one that no list shows, being damaged
            session = _find(store, wanted).label.session
            store.delete(session)
        write(f"deleted {session}\n")


def _export(store: Store, options: Namespace) -> None:
    conversation = _conversation(store, _find(store, options.session))
    text = _FORMATS[options.format](conversation)
    if options.output is None:
        write(text)
    else:
        Path(options.output).write_text(text, encoding="utf-8")


COMMANDS: dict[str, Callable[[Store, Namespace], None]] = {
    "list": _list,
    "show": _show,
    "delete": _delete,
    "export": _export,
}


@frozen
class _Conversation:
    """One stored session, for reading; its records can be read as often as needed."""

    summary: Summary
    opened: Opened
    records: Callable[[], Iterator[Record]]

    @property
    def title(self) -> str:
        titles = [one.title for one in self.records() if isinstance(one, Titled)]
        return titles[-1] if titles else "(no title)"

    @property
    def facts(self) -> dict[str, str]:
        """What the head of an export says."""
        return {
            "session": self.opened.session,
            "folder": self.opened.cwd,
            "model": self.opened.model,
            "begun": self.opened.at,
            "updated": self.summary.updated_at,
        }

    def updates(self) -> Iterator[Update]:
        return updates.replay(self.records(), cwd=self.opened.cwd, terminal=False)

    def entries(self) -> list[Entry]:
        return scrubbed_values(entries(self.updates()))


def _conversation(store: Store, summary: Summary) -> _Conversation:
    session = summary.label.session
    opened = next(store.read(session))
    assert isinstance(opened, Opened)  # noqa: S101 (what read() begins with)
    return _Conversation(summary, opened, lambda: store.read(session))


def _as_markdown(conversation: _Conversation) -> str:
    facts = (f"{name}: {value}" for name, value in conversation.facts.items())
    return markdown(scrubbed(conversation.title), map(scrubbed, facts), conversation.entries())


def _as_json(conversation: _Conversation) -> str:
    head = scrubbed_values({"title": conversation.title, **conversation.facts})
    return json.dumps({**head, "entries": conversation.entries()}, indent=2) + "\n"


_FORMATS = {"markdown": _as_markdown, "json": _as_json}


def _find(store: Store, wanted: str) -> Summary:
    """The session with this id, or the only one whose id begins so."""
    found = [one for one in store.summaries() if one.label.session.startswith(wanted)]
    exact = [one for one in found if one.label.session == wanted]
    if exact or (len(found) == 1 and len(wanted) >= _SHORTEST_ID):
        return (exact or found)[0]
    why = "is no session" if not found else "is the beginning of several, or too short"
    raise NotFound(f'"{wanted}" {why}; responses-acp sessions list shows them all')
