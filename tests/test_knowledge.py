"""What a project tells every agent is told once, and only what belongs to it."""

import os
from pathlib import Path

import pytest

from bridge.config import load
from bridge.core.records import Learned, Opened, SawFile
from bridge.knowledge import due, readable
from bridge.session import Session
from bridge.store import Store


def session_in(cwd: Path) -> Session:
    opened = Opened("s", str(cwd), "t", "default", "m", None, "ask")
    config = load(None, {"OPENAI_MODEL": "m", "XDG_CONFIG_HOME": str(cwd)})
    return Session(config, opened, Store(None).create(opened))


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def told(session: Session, user: Path | None = None) -> list[Learned]:
    learned = list(due(session, None if user is None else str(user)))
    for one in learned:
        session.record(one)
    return learned


def sources(session: Session, base: Path, user: Path | None = None) -> list[str]:
    return [os.path.relpath(one.source, base) for one in told(session, user)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "app" / "deep").mkdir(parents=True)
    return root


def test_files_are_told_from_the_user_s_own_down_to_the_working_directory(project: Path):
    user = project.parent / "user"
    for folder in (user, project.parent, project, project / "app", project / "app" / "deep"):
        write(folder / "AGENTS.md", f"Rules of {folder.name}")
    session = session_in(project / "app")
    found = sources(session, project, user)
    assert found == ["../user/AGENTS.md", "AGENTS.md", "app/AGENTS.md"], "none above the project"
    assert told(session, user) == [], "told once"


def test_a_folder_s_own_file_is_told_when_a_file_below_was_read(project: Path):
    write(project / "app" / "AGENTS.md", "Rules of app")
    session = session_in(project)
    assert told(session) == []
    session.record(SawFile({"path": str(project / "app" / "deep" / "a.py")}))
    assert sources(session, project) == ["app/AGENTS.md"]
    session.record(SawFile({"path": "/elsewhere/a.py"}))
    assert told(session) == []


def test_the_text_says_for_what_it_holds(project: Path):
    file = write(project / "AGENTS.md", "\ufeffUse tabs.\n")
    (learned,) = told(session_in(project))
    assert learned.text.startswith(f"Instructions for work below {project}, from {file}:")
    assert "<instructions>\nUse tabs.\n</instructions>" in learned.text


def test_a_long_file_is_cut_and_says_so(project: Path):
    write(project / "AGENTS.md", "x" * 40_000)
    (learned,) = told(session_in(project))
    assert len(learned.text) < 34_000
    assert "the file goes on" in learned.text


def test_what_is_no_file_of_the_project_is_not_told(project: Path):
    secret = write(project.parent / "id_rsa", "KEY")
    (project / "AGENTS.md").symlink_to(secret)
    os.mkfifo(project / "app" / "AGENTS.md")
    write(project / "app" / "deep" / "AGENTS.md", " \n")
    assert told(session_in(project / "app" / "deep")) == []


def test_a_folder_of_skills_that_lies_elsewhere_is_not_offered(project: Path):
    outside = project.parent / "outside"
    write(outside / "skills" / "leak" / "SKILL.md", "---\nname: leak\n---\n")
    (project / ".agents").symlink_to(outside)
    assert told(session_in(project)) == []


def test_a_link_inside_the_project_is_followed(project: Path):
    write(project / "CLAUDE.md", "Use tabs.")
    (project / "AGENTS.md").symlink_to("CLAUDE.md")
    assert len(told(session_in(project))) == 1


def test_without_a_repository_only_the_working_directory_counts(tmp_path: Path):
    write(tmp_path / "AGENTS.md", "above")
    (tmp_path / "w").mkdir()
    assert told(session_in(tmp_path / "w")) == []


def test_skills_are_offered_by_name_and_description(project: Path):
    skills = project / ".agents" / "skills"
    file = write(skills / "pdf" / "SKILL.md", "---\nname: pdf\ndescription: Fills forms.\n---\nHow")
    write(skills / "bare" / "SKILL.md", "No front matter")
    (skills / "empty").mkdir()
    user = project.parent / "user"
    write(user / "skills" / "mine" / "SKILL.md", "---\ndescription: >\n  Of\n  mine.\n---\n")
    (learned,) = told(session_in(project), user)
    assert f"- pdf: Fills forms. ({file})" in learned.text
    assert "- bare: " in learned.text
    assert "- mine: Of mine." in learned.text
    assert "empty" not in learned.text


def test_the_user_s_skills_may_be_read():
    assert readable(None) == ()
    assert readable("/u") == ("/u/skills",)
