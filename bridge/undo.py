"""Takes the file changes of a prompt back, and shows what a session changed.

Rule 1: a file is taken back only if it holds what this session left in it; others are named.
Rule 2: the person decides, by a question or by the word behind the command.
Rule 3: the model is told, unless it forgets the conversation as well.
"""

import os
from collections.abc import Sequence
from typing import Literal

from bridge.acp.editor import SessionEditor
from bridge.answer import ending
from bridge.core import updates
from bridge.core.changes import FileChange
from bridge.core.records import Announced, Forgotten, Noted, Responded, Returned, Undone
from bridge.session import Session
from tools import paths
from tools.base import Bytes, Card, Change, Files, Place, StaleFile
from tools.frozen import frozen
from tools.hunks import unified
from tools.splice import decode

_MOST_BYTES = 16 * 1024 * 1024
_MOST_SHOWN = 60_000
"""Characters of a diff in the conversation."""

How = Literal["ask", "files", "all"]

_CHOICES: dict[str, How | None] = {
    "Take the files back": "files",
    "Take the files back and forget the conversation since": "all",
    "Change nothing": None,
}
"""What the person may choose; the last one is the refusal."""

_NOTE = (
    "The user took back your changes of these files: {names}. They are as they were before; read "
    "them again before you go on."
)


@frozen
class _Look:
    """One file, as it is and as it was."""

    change: FileChange
    state: Literal["ours", "before", "others"]
    """It holds what this session left, or what it held before, or neither of them."""
    present: Bytes | None = None
    old: bytes | None = None
    """None: there was no file."""
    why: str = ""
    """What keeps it from being taken back."""


async def undo(session: Session, editor: SessionEditor, files: Files, how: How) -> str:
    """Take back what the last prompt that changed files changed; says what was done."""
    last = session.changes.last()
    if last is None:
        return "There is no file change of this session to take back."
    number, changes = last
    looks = [await _look(change, session, files) for change in changes]
    ours = [look for look in looks if look.state == "ours"]
    left = [f"{_name(look.change, session)}: {look.why}" for look in looks if look.why]
    done: list[str] = []
    if ours:
        card = _announce(session, editor, ours)
        try:
            chosen = await _ask(editor, card, left) if how == "ask" else how
            if chosen is not None:
                done, failed = await _take_back(ours, session, files)
                left += failed
                _conclude(session, number, done, everything=chosen == "all")
        finally:
            _end(session, editor, card, done)
    return _report(done, left)


async def diff(session: Session, files: Files) -> str:
    """What this session changed in files, as they stand now."""
    looks = [await _look(change, session, files) for change in session.changes.all()]
    parts = [_section(look, session) for look in looks if look.state != "before"]
    if not parts:
        return "This session has changed no files, or they are as they were before it."
    return _cut("\n\n".join(parts))


async def _look(change: FileChange, session: Session, files: Files) -> _Look:
    try:
        present = await files.read(change.path, _MOST_BYTES)
    except OSError as error:
        return _Look(change, "others", why=f"it cannot be read ({error.strerror or error})")
    old = None if change.before is None else session.journal.copies.find(change.before)
    now = None if present is None else present.stamp.digest
    if now == change.before:
        return _Look(change, "before", present)
    if now not in change.after:
        gone = "it was deleted since" if present is None else "it was changed since by others"
        return _Look(change, "others", present, old, gone)
    if old is None and change.before is not None:
        return _Look(change, "others", present, old, "no copy of it was kept")
    return _Look(change, "ours", present, old)


def _announce(session: Session, editor: SessionEditor, ours: Sequence[_Look]) -> Announced:
    """Show a card with all that would be taken back."""
    shown = tuple(
        Change(look.change.path, _text(look.present and look.present.data), _text(look.old))
        for look in ours
    )
    places = tuple(Place(look.change.path) for look in ours)
    names = ", ".join(_name(look.change, session) for look in ours)
    card_id = session.card_id("undo")
    card = Announced(card_id, "undo", "undo", "", Card(f"Take back {names}", "edit", places, shown))
    session.record(Responded(session.next_response(), session.dialect.maker, (card,), ()))
    editor.update(updates.announcement(card, cwd=session.cwd, terminal=False))
    return card


async def _ask(editor: SessionEditor, card: Announced, left: Sequence[str]) -> How | None:
    """What the person wants; None: nothing is to be changed."""
    question = f"{card.card.title}?" + (f" Left as they are: {'; '.join(left)}" if left else "")
    chosen = await editor.pick(card.card_id, question, tuple(_CHOICES))
    return None if chosen is None else _CHOICES[chosen]


async def _take_back(
    ours: Sequence[_Look], session: Session, files: Files
) -> tuple[list[str], list[str]]:
    """The names of the files that were taken back, and of the others, with the reason."""
    done: list[str] = []
    failed: list[str] = []
    for look in ours:
        name, path = _name(look.change, session), look.change.path
        stamp = None if look.present is None else look.present.stamp
        try:
            if stamp is not None and look.old is not None:
                await files.replace(path, look.old, stamp)
            elif stamp is not None:
                await files.remove(path, stamp)
            else:
                await files.create(path, look.old or b"")
        except StaleFile:
            failed.append(f"{name}: it was changed in this moment")
        except OSError as error:
            failed.append(f"{name}: it cannot be written ({error.strerror or error})")
        else:
            done.append(name)
    return done, failed


def _conclude(session: Session, number: int, done: Sequence[str], *, everything: bool) -> None:
    """Write down what was done, for the next undo and for the model."""
    if not done:
        return
    session.record(Undone(number))
    if everything:
        session.record(Forgotten(number))
    else:
        session.record(Noted(_NOTE.format(names=", ".join(done))))


def _end(session: Session, editor: SessionEditor, card: Announced, done: Sequence[str]) -> None:
    returned = Returned(
        card.card_id,
        card.call_id,
        custom=False,
        text=_report(done, ()),
        ok=bool(done),
        shown=card.card.shown if done else None,
    )
    session.conclude(returned, lambda end: editor.update(ending(end, card, editor)))


def _report(done: Sequence[str], left: Sequence[str]) -> str:
    lines = [f"Taken back: {', '.join(done)}." if done else "Nothing was taken back."]
    if left:
        lines += ["", "Left as they are:", "", *(f"- {line}" for line in left)]
    return "\n".join(lines)


def _section(look: _Look, session: Session) -> str:
    """One file of the diff."""
    name = _name(look.change, session)
    old = _text(look.old).splitlines()
    new = _text(look.present and look.present.data).splitlines()
    lines = unified(old, new, f"a/{name}", f"b/{name}")
    known = look.old is not None or look.change.before is None
    body = updates.fenced("\n".join(lines), "diff") if known else "No copy of it was kept."
    return f"{name}: {look.why}\n\n{body}" if look.why and known else f"{name}\n\n{body}"


def _name(change: FileChange, session: Session) -> str:
    return paths.shown(change.path, os.path.realpath(session.cwd))


def _text(data: bytes | None) -> str:
    return "" if data is None else decode(data)


def _cut(text: str) -> str:
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[:_MOST_SHOWN]}\n```\n\n[… {len(text) - _MOST_SHOWN} more characters]"
