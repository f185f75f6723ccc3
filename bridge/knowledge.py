"""What a project tells every agent: AGENTS.md files, and skills, which are read when they fit.

Rule 1: it is text for the model and never configuration; nothing in it is run or obeyed by us.
Rule 2: what is told once is told for the session; more is appended, so that requests stay prefixes
of later ones.
Rule 3: a link that leads out of the project is not followed: its text would go to the model.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from bridge.core import front_matter
from bridge.core.records import Learned
from bridge.session import Session
from tools import paths, regular
from tools.base import NotRegular

_NAME = "AGENTS.md"
_SKILLS = ".agents/skills"
_MOST = 32 * 1024
"""Characters of one file; the rest is left for the model to read."""
_MOST_SKILLS = 50
_MOST_WORDS = 300
"""Characters of a skill's description."""

_PROJECT = "Instructions for work below {folder}, from {file}:"
_USER = "The user's own instructions for every project, from {file}:"
_SKILLS_TEXT = (
    "Skills: folders with instructions for certain tasks. When a task fits one of them, read its "
    "file with `read` before you begin."
)


def readable(user_folder: str | None) -> tuple[str, ...]:
    """Folders outside the workspace that the model may read without asking: the user's skills."""
    return () if user_folder is None else (os.path.realpath(Path(user_folder, "skills")),)


def due(session: Session, user_folder: str | None) -> Iterator[Learned]:
    """What the model is to be told now and was not told yet; reads files.

    user_folder: where the user's own AGENTS.md and skills are; None: nowhere.
    """
    cwd = Path(os.path.realpath(session.cwd))
    entered = sorted(folder for folder in session.visited if _is_new(session, folder, cwd))
    if session.introduced and not entered:
        return
    root = project(cwd)
    user = None if user_folder is None else Path(user_folder)
    if not session.introduced:
        session.introduced = True
        if user is not None:
            yield from _learned(session, _USER, user / _NAME, user)
        for folder in down(root, cwd):
            yield from _learned(session, _PROJECT, folder / _NAME, root)
        places = [(folder / _SKILLS, root) for folder in down(root, cwd)]
        if user is not None:
            places.append((user / "skills", user))
        yield from _skills(places)
    for folder in entered:
        for below in down(cwd, Path(folder)):
            yield from _learned(session, _PROJECT, below / _NAME, root)


def project(cwd: Path) -> Path:
    """The folder that is the project: the one with .git, at or above the working directory."""
    return next((one for one in (cwd, *cwd.parents) if (one / ".git").exists()), cwd)


def down(top: Path, bottom: Path) -> list[Path]:
    """The folders from one down to another; none where that does not lie in the first."""
    chain = [bottom, *bottom.parents]
    return chain[chain.index(top) :: -1] if top in chain else []


def _is_new(session: Session, folder: str, cwd: Path) -> bool:
    """Whether instructions may be there, or on the way there, that were not looked for yet."""
    is_known = os.path.join(folder, _NAME) in session.looked_for  # noqa: PTH118 (asked very often)
    return not is_known and paths.is_inside(folder, str(cwd))


def _learned(session: Session, head: str, file: Path, within: Path) -> Iterator[Learned]:
    if str(file) in session.looked_for:
        return
    session.looked_for.add(str(file))
    text = _text(file, within)
    if text is None or not text.strip():
        return
    if len(text) > _MOST:
        text = f"{text[:_MOST]}\n[… the file goes on]"
    title = head.format(folder=file.parent, file=file)
    yield Learned(str(file), f"{title}\n\n<instructions>\n{text.strip()}\n</instructions>")


def _text(file: Path, within: Path) -> str | None:
    """The text of a file; None where there is none that may be told."""
    resolved = os.path.realpath(file)
    if not paths.is_inside(resolved, os.path.realpath(within)) or paths.is_secret(resolved):
        return None
    try:
        with regular.opened(resolved) as (descriptor, _):
            return os.read(descriptor, _MOST * 4).decode("utf-8-sig", "replace")
    except (OSError, NotRegular):
        return None


def _skills(places: list[tuple[Path, Path]]) -> Iterator[Learned]:
    lines = [line for place, within in places for line in _offers(place, within)][:_MOST_SKILLS]
    if lines:
        yield Learned(_SKILLS, "\n".join([_SKILLS_TEXT, "", *lines]))


def _offers(place: Path, within: Path) -> Iterator[str]:
    """One line for each skill in this folder."""
    try:
        folders = sorted(place.iterdir())[:_MOST_SKILLS]
    except OSError:
        return
    for folder in folders:
        file = folder / "SKILL.md"
        text = _text(file, within)
        if text is not None:
            page = front_matter.parted(text)
            said: Mapping[str, str] = {} if page is None else page.fields
            words = " ".join(said.get("description", "").split())[:_MOST_WORDS]
            yield f"- {said.get('name') or folder.name}: {words} ({file})"
