"""The port Files where an editor holds texts that may not be on disk yet.

It knows the disk through another Files, and the editor through the port Buffers.

Rule 1: the disk is the truth: whether a file is there, and every byte that text cannot carry. The
editor is asked only about plain text inside the folders it opened.
Rule 2: a text that differs from the disk is the user's unsaved work, and is what is read and
edited, unless the disk has overtaken it: it is an earlier state of the file, or a command or a tool
of ours changed the file since the two agreed.
Rule 3: unsaved work is changed in the editor and never written to disk by us. What became of it is
looked at afterwards: editors format, and some promise more than they do.
Rule 4: an editor that does not answer in time is not asked again.
"""

from collections.abc import Callable, Iterable, Sequence

import anyio

from tools.base import Buffers, Bytes, Files, FileTooLarge, Found, Query, StaleFile
from tools.frozen import frozen
from tools.looks import Looks
from tools.paths import is_inside
from tools.seen import Stamp, Version, digest
from tools.splice import BOM

MOST_BYTES = 1024 * 1024
"""Of a text that the editor is asked for; larger files are taken from the disk."""

PATIENCE = 10.0
"""Seconds that the editor has for an answer."""

_NO_ANSWER = (
    "the editor has unsaved changes of it and did not say in time whether it took the new text; "
    "read it again before you go on"
)


@frozen
class Form:
    """How the editor writes a text that the disk writes otherwise."""

    mark: bool
    """The file begins with a byte order mark, the editor's text does not."""
    crlf: bool
    """The file's lines end in CRLF, the editor's in LF."""
    end: bool
    """The file ends with a line end, the editor's text does not."""

    @staticmethod
    def of(text: bytes, disk: bytes) -> "Form":
        return Form(
            disk.startswith(BOM) and not text.startswith(BOM),
            b"\r" not in text and 0 < disk.count(b"\n") == disk.count(b"\r\n"),
            disk.endswith(b"\n") and not text.endswith(b"\n"),
        )

    def to_disk(self, text: bytes) -> bytes:
        """The editor's text as the file would have it."""
        text += b"\n" * self.end
        return BOM * self.mark + (text.replace(b"\n", b"\r\n") if self.crlf else text)

    def to_editor(self, data: bytes) -> bytes:
        """The file's bytes as the editor would have them."""
        text = data.removeprefix(BOM) if self.mark else data
        text = text.replace(b"\r\n", b"\n") if self.crlf else text
        return text.removesuffix(b"\n") if self.end else text


@frozen
class _Unsaved:
    """What the editor holds and the disk does not."""

    data: bytes
    """As the file would have it."""
    form: Form
    stamp: Stamp


@frozen
class BufferedFiles:
    """The port Files of one session, with an editor before the disk."""

    disk: Files
    editor: Buffers
    looks: Looks
    folders: Sequence[tuple[str, str]]
    """The folders that the editor opened: resolved, and as the editor names them."""

    async def resolve(self, path: str) -> str:
        """The path with every symbolic link followed."""
        return await self.disk.resolve(path)

    async def versions(self, paths: Iterable[str]) -> dict[str, Version | None]:
        """Which state each file on disk is in."""
        return await self.disk.versions(paths)

    async def scan(self, path: str, feed: Callable[[bytes], None]) -> Stamp | None:
        """Feed all bytes: of the unsaved text, where there is one."""
        found = await self._look(path)
        if found is None:
            return await self.disk.scan(path, feed)
        feed(found.data)
        return found.stamp

    async def read(self, path: str, most: int) -> Bytes | None:
        """The whole file, or the unsaved text in its place."""
        present = await self.disk.read(path, most)
        found = None if present is None else await self._unsaved(path, present)
        return present if found is None else Bytes(found.data, found.stamp)

    async def replace(self, path: str, data: bytes, expected: Stamp) -> Stamp:
        """Put data in the place of the expected bytes, on disk or in the editor.

        The stamp is of what is there afterwards, which an editor may have formatted.
        """
        found = await self._look(path)
        if expected.unsaved or isinstance(found, _Unsaved):
            if not isinstance(found, _Unsaved) or found.stamp.digest != expected.digest:
                raise StaleFile("the editor holds other text")
            return await self._put(path, found, data)
        stamp = await self.disk.replace(path, data, expected)
        self.looks.wrote(path, _flat(data))
        return stamp

    async def create(self, path: str, data: bytes) -> Stamp:
        """Make a new file on disk."""
        stamp = await self.disk.create(path, data)
        self.looks.wrote(path, _flat(data))
        return stamp

    async def remove(self, path: str, expected: Stamp) -> None:
        """Delete a file from disk."""
        await self.disk.remove(path, expected)

    async def search(self, query: Query, take: Callable[[Found], None]) -> str:
        """Search the disk."""
        return await self.disk.search(query, take)

    async def confirmed(self, found: Sequence[Found]) -> list[Found]:
        """Those of the files that are on disk what a search found."""
        return await self.disk.confirmed(found)

    def _named(self, path: str) -> str | None:
        """The path as the editor names it; None where it is not to be asked."""
        if self.looks.silent:
            return None
        around = [pair for pair in self.folders if is_inside(path, pair[0])]
        if not around:
            return None
        resolved, named = max(around, key=lambda pair: len(pair[0]))
        return named.rstrip("/") + path[len(resolved.rstrip("/")) :]

    async def _unsaved(self, path: str, present: Bytes) -> _Unsaved | None:
        """What the editor holds, where it is newer than what is on disk."""
        named = self._named(path)
        if named is None or len(present.data) > MOST_BYTES or not _is_plain(present.data):
            return None
        text = await self._text(named)
        if text is None:
            return None
        disk, held = _flat(present.data), _flat(text)
        if disk == held:
            self.looks.agreed[path] = disk
        overtaken = self.looks.overtakes(path, present.stamp, disk, held)
        self.looks.earlier.setdefault(path, set()).add(disk)
        if disk == held or overtaken:
            return None
        form = Form.of(text, present.data)
        data = form.to_disk(text)
        return _Unsaved(data, form, Stamp(digest(data), present.stamp.version, unsaved=True))

    async def _text(self, named: str) -> bytes | None:
        """The editor's text; None where it has none that is one."""
        text: str | None = None
        with anyio.move_on_after(PATIENCE) as limit:
            text = await self.editor.buffer(named)
        self.looks.silent = limit.cancelled_caught
        try:
            # Some editors say "" for what they cannot read.
            data = text.encode() if text else None
        except UnicodeEncodeError:
            return None
        return data if data is not None and _is_plain(data) else None

    async def _look(self, path: str) -> "Bytes | _Unsaved | None":
        """What is to be read; None where that is not for the editor to say."""
        if self._named(path) is None:
            return None
        try:
            present = await self.disk.read(path, MOST_BYTES)
        except FileTooLarge:
            return None
        return present and (await self._unsaved(path, present) or present)

    async def _put(self, path: str, before: _Unsaved, data: bytes) -> Stamp:
        """Let the editor have the data in the place of its text; what is there afterwards."""
        taken: bool | None = None
        with anyio.move_on_after(PATIENCE):
            text = before.form.to_editor(data).decode()
            taken = await self.editor.set_buffer(self._named(path) or path, text)
        if taken is None:
            raise OSError(_NO_ANSWER)
        after = await self._look(path) if taken else None
        if after is None or after.stamp.digest == before.stamp.digest:
            raise OSError("the editor has unsaved changes of it and did not take the new text")
        return after.stamp


def _is_plain(data: bytes) -> bool:
    """Text in every sense: UTF-8, and without NUL."""
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _flat(data: bytes) -> str:
    """The digest of a text, whatever its mark, its line ends and its end."""
    return digest(data.removeprefix(BOM).replace(b"\r\n", b"\n").removesuffix(b"\n"))
