"""A file is told by its first bytes."""

from base64 import b64decode

import pytest

from tests.pictures import GIF, JPEG, PDF, PNG, WEBP
from tools.filetype import PICTURES, kind


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (WEBP, "image/webp"),
        (PDF, "application/pdf"),
    ],
)
def test_a_file_is_told_by_how_it_begins(data: str, expected: str) -> None:
    assert kind(b64decode(data)) == expected
    assert (expected in PICTURES) == (expected != "application/pdf")


@pytest.mark.parametrize(
    "data",
    [b"", b"\x89PNG", b"<svg>", b" %PDF-1.4", b"RIFF\0\0\0\0WAVE", b"RIFF", b"MZ", b"BM\0\0"],
)
def test_everything_else_is_nothing(data: bytes) -> None:
    assert kind(data) is None
