"""The log says where a fault of ours was, and nothing of what it was about."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge import log


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


def test_without_a_folder_there_is_no_log_and_no_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for folder in (None, tmp_path / "file" / "state"):
        log.start(folder)
        log.say("hello")
        logging.getLogger("httpx").warning("hello")
    assert capsys.readouterr() == ("", "")
