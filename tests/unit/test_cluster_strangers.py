"""Where no scheduler of Dask listens, a sweep ends in words and in time."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from rtscope.host.errors import TargetError
from rtscope.verbs.sweep.cluster import dask
from rtscope.verbs.sweep.cluster.address import SchedulerAddress

pytest.importorskip("distributed")

Answer = Callable[[socket.socket, threading.Event], object]


def _endlessly(piece: bytes) -> Answer:
    def answer(one: socket.socket, over: threading.Event) -> None:
        while not over.is_set():
            one.sendall(piece)

    return answer


def _slowly(one: socket.socket, over: threading.Event) -> None:
    while not over.wait(0.05):
        one.sendall(b"\x01")


STRANGERS: dict[str, Answer] = {
    "says nothing": lambda _one, over: over.wait(60),
    "closes at once": lambda one, _over: one.close(),
    "endless zeros": _endlessly(bytes(65536)),
    "endless noise": _endlessly(os.urandom(65536)),
    "one byte at a time": _slowly,
    "a frame without an end": lambda one, _over: one.sendall(b"\0\0\0\0\0\1\0\0"),
    "a web server": lambda one, _over: one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "another protocol": lambda one, _over: one.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"),
}


@contextlib.contextmanager
def stranger(answer: Answer) -> Iterator[str]:
    """Listen on this machine, and answer so whoever comes; give the address."""
    over = threading.Event()

    def serve(one: socket.socket) -> None:
        with one, contextlib.suppress(OSError):
            answer(one, over)

    def listen(door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while not over.is_set():
                one, _ = door.accept()
                threading.Thread(target=serve, args=(one,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=listen, args=(door,), daemon=True).start()
        try:
            yield f"tcp://127.0.0.1:{door.getsockname()[1]}"
        finally:
            over.set()
            door.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("kind", STRANGERS)
def test_a_stranger_at_the_address_is_no_scheduler(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "CONNECT_S", 1)
    with (
        stranger(STRANGERS[kind]) as url,
        pytest.raises(TargetError, match=f"no scheduler answers at {url} within 1 s: "),
        dask.connected(SchedulerAddress(url, None)),
    ):
        pytest.fail("it was taken for a scheduler")
