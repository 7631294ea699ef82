"""A file that somebody names is a regular one, or a pipe that a shell has opened."""

import errno
import io
import os
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files.opening import open_named, read_named


def refused(path: Path, *, limit: int = 1 << 20) -> str:
    with pytest.raises(UsageError) as caught:
        read_named(path, limit=limit, kind="trace", error=UsageError)
    return str(caught.value)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (os.mkfifo, "a FIFO"),
        (os.mkdir, "a directory"),
        (make_socket, "a socket"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to("/dev/tty"), "a device"),
        (lambda path: path.symlink_to("/dev/null"), "a device"),
        (lambda path: path.symlink_to("/proc/self/task"), "a directory"),
    ],
)
def test_an_odd_file_is_refused_before_it_is_opened(
    make: Callable[[Path], None], what: str, tmp_path: Path
) -> None:
    path = tmp_path / "odd"
    make(path)

    assert refused(path) == f"{path}: {what}, not a regular file"


def test_a_link_to_a_fifo_is_refused_as_the_fifo_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")

    assert "a FIFO, not a regular file" in refused(tmp_path / "link")


@pytest.mark.parametrize("name", ["/proc/self/mem", "/proc/self/clear_refs"])
def test_a_file_of_the_kernel_that_gives_nothing_is_refused(name: str) -> None:
    assert refused(Path(name)).startswith(f"cannot read {name}: ")


def test_a_file_that_waits_for_its_next_line_is_refused(tmp_path: Path) -> None:
    """As /proc/kmsg and trace_pipe do, which are regular files for `stat`."""
    path = Path("/proc/kmsg")
    if not os.access(path, os.R_OK):
        pytest.skip("only root reads /proc/kmsg")

    done = threading.Thread(target=lambda: refused_or_read(path), daemon=True)
    done.start()
    done.join(20)

    assert not done.is_alive()


def refused_or_read(path: Path) -> None:
    try:
        read_named(path, limit=1 << 30, kind="log")
    except RecordError:
        return


def test_a_sparse_file_of_a_terabyte_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)

    assert "1,099,511,627,776 bytes, more than the 1,048,576 bytes" in refused(path)


def test_a_file_of_the_kernel_of_size_0_is_read_within_the_limit() -> None:
    content = read_named(Path("/proc/self/status"), limit=1 << 20, kind="status")

    assert content.startswith(b"Name:")
    assert "bytes of any trace" in refused(Path("/proc/self/status"), limit=8)


def test_what_a_shell_pipes_is_read_and_can_be_read_again(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"line 1\nline 2\n")
    os.close(writing)
    try:
        with open_named(Path(f"/dev/fd/{reading}"), kind="trace") as file:
            assert file.read() == b"line 1\nline 2\n"
            file.seek(7)
            assert file.read() == b"line 2\n"
            assert os.fstat(file.fileno()).st_size == 14
    finally:
        os.close(reading)


def test_a_pipe_that_gives_more_than_the_limit_is_refused() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x" * 2000)  # and it stays open: nothing waits for its end
    try:
        assert "1,001 bytes, more than" in refused(
            Path(f"/dev/fd/{reading}"), limit=1000
        )
    finally:
        os.close(reading)
        os.close(writing)


def test_where_nothing_is_that_is_the_reason(tmp_path: Path) -> None:
    assert "No such file or directory" in refused(tmp_path / "gone")
    assert "Not a directory" in refused(Path("/dev/null/x"))
    assert "embedded null" in refused(Path("a\0b"))
    assert "/dev/stdin" in refused(Path("-"))


def test_a_link_is_followed_only_where_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")

    assert read_named(tmp_path / "link", limit=8, kind="record") == b"x"
    with pytest.raises(RecordError, match=r"a link to .file., not a regular file"):
        read_named(tmp_path / "link", limit=8, kind="record", follow=False)


class _FullDisk(io.BytesIO):
    """Keeps nothing, as a temporary file on a full disk."""

    def write(self, _content: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        if not self.closed:  # Python closes it again before it forgets it
            super().close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _no_file() -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), "/tmp/x")


@pytest.mark.parametrize("made", [_FullDisk, _no_file])
def test_a_pipe_that_cannot_be_copied_is_told_with_a_remedy(
    made: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", made)
    reading, writing = os.pipe()
    os.write(writing, b"some")
    os.close(writing)

    why = refused(Path(f"/dev/fd/{reading}"))

    assert why.startswith("cannot write temporary files: ")
    assert why.endswith("or name another directory in TMPDIR")
