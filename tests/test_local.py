import errno
import fcntl
import os
import resource
import socket
import stat
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from anyio import to_thread

from tools import commit, regular
from tools.base import Bytes, FileTooLarge, NotRegular, StaleFile
from tools.exchange import exchange as real_swap
from tools.exchange import system_call
from tools.local import LocalFiles

pytestmark = pytest.mark.anyio

OLD, NEW, OTHER = b"old\n", b"new bytes\n", b"written by another\n"
NOBODY = 65534


async def present(path: Path, files: LocalFiles | None = None) -> Bytes:
    with anyio.fail_after(5):
        read = await (files or LocalFiles()).read(str(path), 1 << 20)
    assert read is not None
    return read


async def replaced(path: Path, files: LocalFiles | None = None, data: bytes = NEW) -> None:
    """Replace the file, and demand that it holds the new bytes and the stamp is theirs."""
    files = files or LocalFiles()
    old = await present(path, files)
    with anyio.fail_after(5):
        stamp = await files.replace(str(path), data, old.stamp)
    assert await present(path, files) == Bytes(data, stamp)
    assert [name for name in names(path.parent) if name.startswith(".responses")] == []


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def failing(number: int) -> Callable[[str, str], None]:
    def swap(one: str, other: str) -> None:
        raise OSError(number, os.strerror(number))

    return swap


@contextmanager
def user(number: int) -> Generator[None, None, None]:
    """Do what is done as another user, as far as files are concerned."""
    if os.geteuid() != 0:
        pytest.skip("only root can act for others")
    os.seteuid(number)
    try:
        yield
    finally:
        os.seteuid(0)


def let_others_in(path: Path) -> None:
    """Test folders are private; here another user comes along."""
    for folder in path.parents[:4]:
        folder.chmod(folder.stat().st_mode | 0o555)


@contextmanager
def largest_file(size: int) -> Generator[None, None, None]:
    """A disk without room for more, as far as one file is concerned."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# Looking


async def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    files = LocalFiles()
    assert await files.read(str(tmp_path / "f"), 10) is None
    assert await files.scan(str(tmp_path / "f"), lambda _: None) is None


async def test_a_scan_gives_all_bytes_and_the_same_stamp_as_a_read(tmp_path: Path) -> None:
    path, blocks = tmp_path / "f", list[bytes]()
    path.write_bytes(bytes(range(256)) * 5000)
    stamp = await LocalFiles().scan(str(path), blocks.append)
    assert b"".join(blocks) == path.read_bytes()
    assert len(blocks) > 1
    with pytest.raises(FileTooLarge) as caught:
        await LocalFiles().read(str(path), 1000)
    assert caught.value.size == 256 * 5000
    assert stamp is not None
    assert await LocalFiles().read(str(path), 1 << 21) == Bytes(path.read_bytes(), stamp)


async def test_a_scan_stops_when_it_is_cancelled(tmp_path: Path) -> None:
    path, blocks = tmp_path / "f", 0
    path.write_bytes(bytes(4 << 20))
    with anyio.fail_after(5), anyio.CancelScope() as scope:

        def feed(block: bytes) -> None:
            nonlocal blocks
            blocks += 1
            anyio.from_thread.run_sync(scope.cancel)

        await LocalFiles().scan(str(path), feed)
    assert scope.cancelled_caught
    assert blocks == 1


async def test_what_feed_raises_comes_out(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)

    def feed(block: bytes) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await LocalFiles().scan(str(path), feed)


async def test_a_file_that_grows_while_it_is_read_ends(tmp_path: Path) -> None:
    path, seen = tmp_path / "f", bytearray()
    path.write_bytes(OLD * 1000)

    def feed(block: bytes) -> None:
        seen.extend(block)
        with path.open("ab") as file:
            file.write(OLD * 1000)

    await LocalFiles().scan(str(path), feed)
    assert seen == OLD * 1000


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_file_of_the_kernel_that_claims_no_size_is_read() -> None:
    read = await LocalFiles().read("/proc/version", 10)
    assert read is not None
    assert b"Linux" in read.data


async def test_only_regular_files_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    kinds = {
        "fifo": "a FIFO",
        "folder": "a directory",
        "link": "a symbolic link",
        "socket": "a socket",
        "/dev/zero": "a device",
        "/dev/full": "a device",
    }
    for name, kind in kinds.items():
        with pytest.raises(NotRegular, match=kind), anyio.fail_after(5):
            await LocalFiles().read(str(tmp_path / name), 10)


@pytest.fixture
def led_away(tmp_path: Path) -> Path:
    """A path that was judged, and a folder on the way that is a link to another place by now."""
    there = tmp_path / "there" / "in"
    there.mkdir(parents=True)
    (there / "f").write_bytes(OLD)
    (tmp_path / "here").symlink_to("there")
    return tmp_path / "here" / "in"


@pytest.mark.skipif(sys.platform != "linux", reason="needs names below open folders")
@pytest.mark.parametrize("deed", ["read", "scan", "replace", "remove", "create", "create below"])
async def test_no_link_that_appears_on_the_way_is_followed(led_away: Path, deed: str) -> None:
    files, there = LocalFiles(), led_away.parent.parent / "there" / "in"
    stamp = (await present(there / "f")).stamp
    path = str(led_away / "f")
    deeds = {
        "read": lambda: files.read(path, 100),
        "scan": lambda: files.scan(path, print),
        "replace": lambda: files.replace(path, NEW, stamp),
        "remove": lambda: files.remove(path, stamp),
        "create": lambda: files.create(str(led_away / "new"), NEW),
        "create below": lambda: files.create(str(led_away / "a" / "b" / "new"), NEW),
    }
    with anyio.fail_after(5), pytest.raises(OSError, match="leads elsewhere by now"):
        await deeds[deed]()
    assert names(there) == ["f"]
    assert (there / "f").read_bytes() == OLD


@pytest.mark.skipif(sys.platform != "linux", reason="needs names below open folders")
async def test_a_change_stays_in_its_folder_whatever_takes_the_folders_place(
    tmp_path: Path,
) -> None:
    here, there, moved = tmp_path / "here", tmp_path / "there", tmp_path / "moved"

    def trade() -> None:
        here.rename(moved)
        here.symlink_to(there)

    def swap(one: str, other: str) -> None:
        trade()
        real_swap(one, other)

    def link(one: str, other: str) -> None:
        trade()
        os.link(one, other)

    files = LocalFiles(swap, link)
    for change in ("replace", "create"):
        for folder in (here, there):
            folder.mkdir()
        (here / "f").write_bytes(OLD)
        (there / "f").write_bytes(OLD)
        with anyio.fail_after(5):
            if change == "replace":
                await files.replace(str(here / "f"), NEW, (await present(here / "f")).stamp)
            else:
                await files.create(str(here / "g"), NEW)
        assert (moved / ("f" if change == "replace" else "g")).read_bytes() == NEW
        assert names(there) == ["f"]
        assert (there / "f").read_bytes() == OLD
        here.unlink()
        for folder in (moved, there):
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()


async def test_where_no_folder_can_be_held_paths_are_used_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regular, "_STEP", 0)
    path = tmp_path / "a" / "b" / "f"
    with anyio.fail_after(5):
        await LocalFiles().create(str(path), OLD)
    await replaced(path)
    for below in (path / "g", path / "g" / "h"):
        with anyio.fail_after(5), pytest.raises(NotADirectoryError):
            await LocalFiles().create(str(below), OLD)


async def test_links_are_resolved_and_what_is_not_there_is_kept(tmp_path: Path) -> None:
    files = LocalFiles()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    folder = await files.resolve(str(tmp_path / "folder"))
    assert await files.resolve(str(tmp_path / "link" / "new" / "file")) == f"{folder}/new/file"


@pytest.mark.parametrize(("failures", "leads_to"), [(1, "b"), (1000, "a")])
async def test_links_that_come_and_go_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, leads_to: str
) -> None:
    (tmp_path / "a").symlink_to("b")
    real, left = os.readlink, iter(range(failures))

    def gone(path: str) -> str:
        if next(left, None) is not None:
            raise FileNotFoundError(errno.ENOENT, "gone", path)
        return real(path)

    monkeypatch.setattr(os, "readlink", gone)
    with anyio.fail_after(5):
        assert await LocalFiles().resolve(f"{tmp_path}/a") == f"{tmp_path}/{leads_to}"


# Replacing


async def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    path.chmod(0o4751)
    before = path.stat()
    await replaced(path)
    after = path.stat()
    assert stat.S_IMODE(after.st_mode) == 0o4751
    assert after.st_ino != before.st_ino


@pytest.mark.parametrize("data", [b"", b"x", NEW * 1000])
async def test_a_hard_link_stays_one(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD * 10)
    os.link(path, tmp_path / "other")
    await replaced(path, data=data)
    assert (tmp_path / "other").read_bytes() == data
    assert path.stat().st_nlink == 2


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes from Python here")
async def test_extended_attributes_stay(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("no extended attributes on this file system")
    await replaced(path)
    assert os.getxattr(path, "user.note") == b"mine"


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EXDEV, errno.EACCES])
async def test_what_cannot_be_displaced_is_written_in_place(tmp_path: Path, number: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    before = path.stat().st_ino
    await replaced(path, LocalFiles(failing(number)))
    assert path.stat().st_ino == before


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL])
async def test_where_files_cannot_change_places_one_replaces_the_other(
    tmp_path: Path, number: int
) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    before = path.stat().st_ino
    await replaced(path, LocalFiles(failing(number)))
    assert path.stat().st_ino != before


@pytest.mark.parametrize("mode", [0o755, 0o711])
async def test_a_writable_file_in_a_folder_that_is_not_is_written_in_place(
    tmp_path: Path, mode: int
) -> None:
    path = tmp_path / "folder" / "f"
    path.parent.mkdir()
    path.write_bytes(OLD)
    path.chmod(0o666)
    let_others_in(path)
    path.parent.chmod(mode)
    before = path.stat().st_ino
    old = await present(path)
    with user(NOBODY):
        commit.replace(str(path), NEW, old.stamp, real_swap)
    assert (path.read_bytes(), path.stat().st_ino) == (NEW, before)


async def test_an_owner_that_cannot_be_given_stays(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "f"
    path.parent.mkdir()
    path.write_bytes(OLD)
    path.chmod(0o666)
    let_others_in(path)
    path.parent.chmod(0o777)
    old = await present(path)
    with user(NOBODY):
        commit.replace(str(path), NEW, old.stamp, real_swap)
    assert (path.read_bytes(), path.stat().st_uid) == (NEW, 0)
    assert names(path.parent) == ["f"]


async def test_an_owner_that_can_be_given_stays(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    path = tmp_path / "f"
    path.write_bytes(OLD)
    os.chown(path, NOBODY, NOBODY)
    await replaced(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)


async def test_a_file_that_is_read_only_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "f"
    path.parent.mkdir()
    path.write_bytes(OLD)
    let_others_in(path)
    path.parent.chmod(0o777)
    path.chmod(0o444)
    old = await present(path)
    with user(NOBODY), pytest.raises(PermissionError):
        commit.replace(str(path), NEW, old.stamp, real_swap)
    assert path.read_bytes() == OLD


async def test_other_bytes_are_stale(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    old = await present(path)
    path.write_bytes(OTHER)
    with pytest.raises(StaleFile):
        await LocalFiles().replace(str(path), NEW, old.stamp)
    assert path.read_bytes() == OTHER


async def test_the_same_bytes_with_other_times_are_not_stale(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    old = await present(path)
    os.utime(path, (1, 1))
    path.chmod(0o600)
    await LocalFiles().replace(str(path), NEW, old.stamp)
    assert path.read_bytes() == NEW


def rename_over(path: Path, data: bytes) -> None:
    other = path.with_name("another program's")
    other.write_bytes(data)
    other.rename(path)


def become_folder(path: Path, data: bytes) -> None:
    path.unlink()
    path.mkdir()
    (path / "f").write_bytes(data)


@pytest.mark.parametrize("write", [Path.write_bytes, rename_over, become_folder])
async def test_what_another_writes_in_the_last_moment_is_put_back(
    tmp_path: Path, write: Callable[[Path, bytes], None]
) -> None:
    path, moments = tmp_path / "f", [write]
    path.write_bytes(OLD)

    def swap(one: str, other: str) -> None:
        while moments:
            moments.pop()(path, OTHER)
        real_swap(one, other)

    old = await present(path)
    with pytest.raises(StaleFile), anyio.fail_after(5):
        await LocalFiles(swap).replace(str(path), NEW, old.stamp)
    assert (path / "f" if path.is_dir() else path).read_bytes() == OTHER
    assert names(tmp_path) == ["f"]


async def test_what_is_written_while_other_bytes_are_put_back_is_the_last_word(
    tmp_path: Path,
) -> None:
    path, writers = tmp_path / "f", [b"second", b"first"]
    path.write_bytes(OLD)

    def swap(one: str, other: str) -> None:
        if writers:
            rename_over(path, writers.pop())
        real_swap(one, other)

    old = await present(path)
    with pytest.raises(StaleFile), anyio.fail_after(5):
        await LocalFiles(swap).replace(str(path), NEW, old.stamp)
    assert path.read_bytes() == b"second"
    assert names(tmp_path) == ["f"]


async def test_without_change_of_places_the_file_is_looked_at_just_before(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)

    def swap(one: str, other: str) -> None:
        path.write_bytes(OTHER)
        raise OSError(errno.ENOSYS, "no")

    old = await present(path)
    with pytest.raises(StaleFile):
        await LocalFiles(swap).replace(str(path), NEW, old.stamp)
    assert path.read_bytes() == OTHER


async def test_an_unexpected_failure_leaves_everything_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    old = await present(path)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        await LocalFiles(failing(errno.EIO)).replace(str(path), NEW, old.stamp)
    assert path.read_bytes() == OLD
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("linked", [False, True])
async def test_a_full_disk_leaves_the_old_bytes(tmp_path: Path, linked: bool) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    if linked:
        os.link(path, tmp_path / "other")
    before, old = names(tmp_path), await present(path)
    with largest_file(4096), pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
        await LocalFiles().replace(str(path), NEW * 1000, old.stamp)
    assert path.read_bytes() == OLD
    assert names(tmp_path) == before


async def test_of_many_replacements_of_the_same_bytes_one_succeeds(tmp_path: Path) -> None:
    path, alone, won = tmp_path / "f", threading.Lock(), list[bytes]()
    path.write_bytes(OLD)

    def swap(one: str, other: str) -> None:
        assert alone.acquire(blocking=False)
        for _ in range(100):
            path.read_bytes()
        alone.release()
        raise OSError(errno.ENOSYS, "no")

    files = LocalFiles(swap)
    old = await present(path)

    async def attempt(data: bytes) -> None:
        try:
            await files.replace(str(path), data, old.stamp)
        except StaleFile:
            return
        won.append(data)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(attempt, b"%d" % number)
    assert won == [path.read_bytes()]


async def test_no_update_is_lost_between_two_owners_of_a_counter(tmp_path: Path) -> None:
    path, made = tmp_path / "f", list[int]()
    path.write_bytes(b"0")

    async def count(files: LocalFiles) -> None:
        for _ in range(50):
            old = await present(path, files)
            try:
                await files.replace(str(path), b"%d" % (int(old.data) + 1), old.stamp)
            except StaleFile:
                continue
            made.append(1)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count, LocalFiles())
            tasks.start_soon(count, LocalFiles())
    assert int(path.read_bytes()) == len(made) > 0


COUNTING = """
import sys
import anyio
from tools.base import StaleFile
from tools.local import LocalFiles

async def count(path):
    files, made = LocalFiles(), 0
    for _ in range(100):
        old = await files.read(path, 99)
        try:
            await files.replace(path, b"%d" % (int(old.data) + 1), old.stamp)
        except StaleFile:
            continue
        made += 1
    print(made)

anyio.run(count, sys.argv[1])
"""


async def test_no_update_is_lost_between_two_processes(tmp_path: Path) -> None:
    path, made = tmp_path / "f", list[int]()
    path.write_bytes(b"0")

    async def count() -> None:
        argv = [sys.executable, "-c", COUNTING, str(path)]
        ended = await anyio.run_process(argv, cwd=Path(__file__).parent.parent)
        made.append(int(ended.stdout))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            tasks.start_soon(count)
    assert int(path.read_bytes()) == sum(made) > 0
    assert names(tmp_path) == ["f"]


@contextmanager
def busy(folder: Path) -> Generator[None, None, None]:
    """Another process of ours is changing something in the folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


async def test_a_change_waits_for_that_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "_PATIENCE", 60.0)
    path = tmp_path / "f"
    path.write_bytes(OLD)
    old, outcome = await present(path), list[str]()

    async def stale() -> None:
        try:
            await LocalFiles().replace(str(path), OTHER, old.stamp)
        except StaleFile:
            outcome.append("stale")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            with busy(tmp_path):
                tasks.start_soon(stale)
                await to_thread.run_sync(path.write_bytes, NEW)
    assert (path.read_bytes(), outcome) == (NEW, ["stale"])


def flock_unknown(_folder: int, _operation: int) -> None:
    raise OSError(errno.ENOLCK, "no locks here")


async def test_where_there_are_no_locks_nobody_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = SimpleNamespace(LOCK_EX=0, LOCK_NB=0, flock=flock_unknown)
    monkeypatch.setattr(commit, "fcntl", locks)
    monkeypatch.setattr(commit, "_PATIENCE", 60.0)
    path = tmp_path / "f"
    path.write_bytes(OLD)
    await replaced(path)


async def test_nobody_is_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "_PATIENCE", 0.0)
    path = tmp_path / "f"
    path.write_bytes(OLD)
    with busy(tmp_path):
        await replaced(path)


# Creating


async def test_a_new_file_comes_with_its_folders_and_the_usual_mode(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "f"
    mask = os.umask(0o027)
    try:
        stamp = await LocalFiles().create(str(path), NEW)
    finally:
        os.umask(mask)
    assert await present(path) == Bytes(NEW, stamp)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(path.parent) == ["f"]


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch])
async def test_a_new_file_replaces_nothing(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "f")
    with pytest.raises(FileExistsError):
        await LocalFiles().create(str(tmp_path / "f"), NEW)
    assert names(tmp_path) == ["f"]


async def test_a_full_disk_leaves_no_new_file(tmp_path: Path) -> None:
    with largest_file(4096), pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
        await LocalFiles().create(str(tmp_path / "f"), NEW * 1000)
    assert names(tmp_path) == []


async def test_where_files_have_one_name_a_new_one_is_written_directly(tmp_path: Path) -> None:
    files, path = LocalFiles(link=failing(errno.EPERM)), tmp_path / "f"
    stamp = await files.create(str(path), NEW)
    assert await present(path) == Bytes(NEW, stamp)
    with pytest.raises(FileExistsError):
        await files.create(str(path), OTHER)
    assert path.read_bytes() == NEW
    assert names(tmp_path) == ["f"]


def test_a_full_disk_leaves_no_new_file_that_is_written_directly(tmp_path: Path) -> None:
    def link(one: str, other: str) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        raise OSError(errno.EPERM, "no")

    with largest_file(1 << 20), pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
        commit.create(str(tmp_path / "f"), NEW * 1000, link)
    assert names(tmp_path) == []


# Changing places


def test_two_files_change_places(tmp_path: Path) -> None:
    one, other = tmp_path / "1", tmp_path / "2"
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    real_swap(str(one), str(other))
    assert (one.read_bytes(), other.read_bytes()) == (b"2", b"1")
    with pytest.raises(FileNotFoundError):
        real_swap(str(one), str(tmp_path / "3"))


def test_a_system_without_the_call_says_so() -> None:
    assert system_call("no_such_call")(b"one", b"other") == errno.ENOSYS
