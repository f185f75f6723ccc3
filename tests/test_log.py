"""The log says where a fault of ours was, and nothing of what it was about."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge import log
from bridge.session_commands import log_file


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("responses-acp")
    handlers = list(root.handlers)
    yield
    for handler in ours.handlers:
        handler.close()
    ours.handlers.clear()
    ours.propagate = True
    logging.raiseExceptions = True
    root.handlers[:] = handlers


def fail(secret: str) -> None:
    raise RuntimeError(secret)


def test_a_fault_is_its_class_and_its_places(tmp_path: Path) -> None:
    log.start(tmp_path / "state")
    try:
        fail("sk-secret")
    except RuntimeError as error:
        log.fault(error, "session/prompt")
        log.fault(ExceptionGroup("sk-secret", [error]), "a task")
    log.say("kept, not started")
    text = (tmp_path / "state" / "responses-acp.log").read_text(encoding="utf-8")
    assert "session/prompt: RuntimeError at test_log.py:" in text
    assert " fail < test_log.py:" in text
    assert "a task: ExceptionGroup" in text
    assert text.count("RuntimeError") == 2
    assert "kept, not started" in text
    assert "sk-secret" not in text


def test_a_log_that_grew_too_big_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "responses-acp.log"
    file.write_bytes(b"x" * (1024 * 1024 + 1))
    log.start(tmp_path)
    log.say("hello")
    assert file.stat().st_size < 1000
    assert (tmp_path / "responses-acp.log.1").stat().st_size > 1024 * 1024


def test_a_log_that_grows_too_big_while_it_is_written_begins_anew(tmp_path: Path) -> None:
    file, before = tmp_path / "responses-acp.log", tmp_path / "responses-acp.log.1"
    log.start(tmp_path)
    log.say("first")
    log.say("x" * (1024 * 1024))
    assert not file.exists()
    log.say("second")
    assert "second" in file.read_text(encoding="utf-8")
    assert before.read_text(encoding="utf-8").count("\n") == 2
    # Another process has begun anew meanwhile: its file stays.
    file.rename(before)
    file.write_text("of the other\n", encoding="utf-8")
    log.say("y" * (1024 * 1024))
    assert file.read_text(encoding="utf-8") == "of the other\n"
    log.say("third")
    assert "third" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        ("", ["fault", "said"]),
        ("loud", ["fault", "said"]),
        ("info", ["fault", "said"]),
        ("error", ["fault"]),
        ("debug", ["fault", "said", "detail"]),
    ],
)
def test_the_level_says_what_is_written_down(level: str, kept: list[str], tmp_path: Path) -> None:
    log.start(tmp_path, level)
    log.fault(RuntimeError(), "fault")
    log.say("said")
    log.detail("detail")
    lines = (tmp_path / "responses-acp.log").read_text(encoding="utf-8").splitlines()
    assert [line.split(" ")[4].rstrip(":") for line in lines] == kept
    assert log.level() == (level if level in log.LEVELS else "info")
    assert log.place() == str(tmp_path / "responses-acp.log")
    assert str(tmp_path) in log_file()


def test_switched_off_it_is_not_even_made(tmp_path: Path) -> None:
    log.start(tmp_path, "off")
    log.fault(RuntimeError(), "fault")
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_there_is_no_log_and_no_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for folder in (None, tmp_path / "file" / "state"):
        log.start(folder)
        log.say("hello")
        logging.getLogger("httpx").warning("hello")
    log.start(None)
    assert log_file() == "There is no log: the state directory cannot be written to."
    assert capsys.readouterr() == ("", "")


def test_a_file_that_cannot_be_opened_costs_the_log_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "responses-acp.log"
    file.mkdir()
    log.start(tmp_path)
    log.say("lost")
    log.fault(RuntimeError(), "lost")
    file.rmdir()
    log.say("the file can be opened by now")
    assert "can be opened by now" in file.read_text(encoding="utf-8")
    assert capsys.readouterr() == ("", "")
