"""What bytes are that a model may take beside text, told by how they begin and not by a name."""

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The pictures that servers of models take."""

PDF = "application/pdf"

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", PDF),
)


def kind(data: bytes) -> str | None:
    """The media type of a picture or a PDF; None for everything else."""
    for beginning, found in _BEGINNINGS:
        if data.startswith(beginning):
            return found
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
