import os
import stat
from pathlib import Path

import pytest

from tools.output import HEAD, TAIL, Capture
from tools.spill import CUT, Spill


def kept(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir()]


def test_output_that_a_result_holds_makes_no_file(tmp_path: Path) -> None:
    whole = Spill(str(tmp_path), "stdout")
    capture = Capture(whole.write)
    capture.feed(b"x\n" * ((HEAD + TAIL) // 2))
    capture.finish()
    whole.close()
    assert (whole.path, capture.truncated, kept(tmp_path)) == (None, False, [])


@pytest.mark.parametrize("piece", [1000, 7000, HEAD + TAIL, 3 * (HEAD + TAIL)])
def test_output_beyond_that_is_kept_from_its_beginning(tmp_path: Path, piece: int) -> None:
    data = b"".join(b"%d \x1b[1mline\x1b[0m\n" % number for number in range(15_000))
    whole = Spill(str(tmp_path), "stdout")
    capture = Capture(whole.write)
    for place in range(0, len(data), piece):
        capture.feed(data[place : place + piece])
    capture.finish()
    whole.close()
    assert capture.truncated
    assert kept(tmp_path) == [data.replace(b"\x1b[1m", b"").replace(b"\x1b[0m", b"")]
    assert whole.path is not None
    assert Path(whole.path).parent == tmp_path
    assert Path(whole.path).name.startswith("stdout-")
    assert stat.S_IMODE(Path(whole.path).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("most", "held"),
    [(10, b"abcdabcdab" + CUT), (8, b"abcdabcd" + CUT), (20, b"abcd" * 5)],
)
def test_a_file_has_an_end(tmp_path: Path, most: int, held: bytes) -> None:
    whole = Spill(str(tmp_path), "stderr", most)
    for _ in range(5):
        whole.write(b"abcd")
    whole.close()
    assert kept(tmp_path) == [held]


def test_a_disk_that_takes_nothing_costs_the_file_alone(tmp_path: Path) -> None:
    nowhere = Spill(str(tmp_path / "gone"), "stdout")
    nowhere.write(b"x")
    nowhere.close()
    assert nowhere.path is None
    broken = Spill(str(tmp_path), "stdout")
    broken.write(b"x")
    os.close(broken._file)  # pyright: ignore[reportPrivateUsage] (as a disk that fails)
    broken.write(b"y")
    broken.close()
    assert kept(tmp_path) == [b"x"]
