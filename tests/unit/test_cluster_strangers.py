"""Where no scheduler of Dask listens, a sweep ends in words and in time."""

import asyncio
import contextlib
import os
import resource
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

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


HUGE = struct.pack("<Q", 4 << 30)
"""The length of a frame, as distributed writes it before the frame."""


def _huge(one: socket.socket, over: threading.Event) -> None:
    one.sendall(HUGE)
    _endlessly(bytes(65536))(one, over)


STRANGERS: dict[str, Answer] = {
    "a frame of gigabytes": _huge,
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


@pytest.mark.parametrize("length", [1 << 30, 4 << 30, 1 << 40, 1 << 62])
def test_a_frame_that_does_not_fit_is_not_read(length: int) -> None:
    def answer(one: socket.socket, over: threading.Event) -> None:
        one.sendall(struct.pack("<Q", length))
        over.wait(60)

    limits = resource.getrlimit(resource.RLIMIT_DATA)
    with (
        stranger(answer) as url,
        pytest.raises(TargetError, match="it sends more than fits into 320 MiB"),
        dask.connected(SchedulerAddress(url, None)),
    ):
        pytest.fail("it was taken for a scheduler")
    assert resource.getrlimit(resource.RLIMIT_DATA) == limits


# --- a scheduler that turns hostile ---------------------------------------------------

Turn = Callable[[Any], Awaitable[None]]


async def _floods(comm: Any) -> None:
    await comm.stream.write(HUGE)
    while True:
        await comm.stream.write(bytes(1 << 20))


async def _is_silent(_comm: Any) -> None:
    await asyncio.sleep(60)


async def _talks_nonsense(comm: Any) -> None:
    while True:
        await comm.write("nonsense")


async def _closes(comm: Any) -> None:
    comm.abort()


TURNS: dict[str, Turn] = {
    "sends a frame of gigabytes": _floods,
    "is silent": _is_silent,
    "talks nonsense": _talks_nonsense,
    "closes": _closes,
}


@contextlib.contextmanager
def scheduler(turn: Turn, *, when_asked: bool) -> Iterator[str]:
    """Greet as a scheduler, then turn: at once, or when it is asked for its workers."""
    from distributed.comm import listen

    identity = {"type": "Scheduler", "id": "x", "workers": {}, "services": {}}
    address: list[str] = []
    is_there, over = threading.Event(), asyncio.Event()

    async def handle(comm: Any) -> None:
        with contextlib.suppress(Exception):
            while (said := await comm.read())["op"] == "identity":
                await comm.write(identity)
            if said["op"] != "register-client" or not when_asked:
                await turn(comm)
            else:
                await comm.write([{"op": "stream-start"}])
                await over.wait()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        listener = await listen("tcp://127.0.0.1:0", handle)
        address.append(listener.contact_address)
        is_there.set()
        await over.wait()
        listener.stop()

    loops: list[asyncio.AbstractEventLoop] = []
    serving = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    serving.start()
    assert is_there.wait(60)
    try:
        yield address[0]
    finally:
        loops[0].call_soon_threadsafe(over.set)
        serving.join(60)


@pytest.mark.slow
@pytest.mark.parametrize("turn", TURNS)
def test_a_scheduler_that_turns_hostile_at_the_door_is_none(
    turn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "CONNECT_S", 2)
    with (
        scheduler(TURNS[turn], when_asked=False) as url,
        pytest.raises(TargetError, match=f"no scheduler answers at {url} within 2 s: "),
        dask.connected(SchedulerAddress(url, None)),
    ):
        pytest.fail("it was taken for a scheduler")


@pytest.mark.parametrize("turn", TURNS)
def test_a_scheduler_that_turns_hostile_later_is_named(
    turn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "ANSWER_S", 1)
    monkeypatch.setattr(dask, "LEAVE_S", 1)
    with (
        scheduler(TURNS[turn], when_asked=True) as url,
        dask.connected(SchedulerAddress(url, None)) as found,
        pytest.raises(TargetError, match="does not answer: "),
    ):
        found.workers()
