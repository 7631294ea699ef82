"""Stacks that were taken from outside are those that the program has of itself."""

import base64
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from rig import SECOND_NS, Program, native_agent

from rtscope.contract import WatchBegin, WatchedThread, WatchEnd, WatchSample
from rtscope.programs.binaries.image import Image
from rtscope.programs.binaries.unwind import BY_MACHINE, Stack, Unwinder, registers_in
from rtscope.programs.memorymap import Mapping, MemoryMap, parse_maps

pytestmark = pytest.mark.system

SOURCE = Path(__file__).parent.parent / "offenders" / "knownstacks.cc"
STACKS = 1000
PAGE = 4096

Truth = dict[tuple[str, int], list[int]]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    out = tmp_path_factory.mktemp("stacks") / "knownstacks"
    subprocess.run(["g++", "-O1", "-o", out, SOURCE, "-pthread"], check=True)
    return out


@pytest.fixture
def running(program: Path) -> Iterator[tuple[int, int, Truth]]:
    """Give its process, its thread, and what it says of its own stacks."""
    started = subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert started.stdout is not None
        yield started.pid, *_told(started.stdout)
    finally:
        started.kill()
        started.communicate()


def _told(lines: IO[str]) -> tuple[int, Truth]:
    truth: Truth = {}
    for line in lines:
        kind, key, *frames = line.split()
        if kind == "thread":
            return int(key), truth
        truth[kind, int(key, 16)] = [int(frame, 16) for frame in frames]
    raise AssertionError("the program told nothing of its thread")


def _malloc_of(maps: MemoryMap) -> tuple[Path, int]:
    for one in maps.mappings:
        if one.executable and Path(one.path).name.startswith("libc."):
            image = Image(Path(one.path).read_bytes(), one.path)
            for symbol in image.functions_named("malloc"):
                offset = image.offset_of(symbol.vaddr)
                assert offset is not None
                return Path(one.path), offset
    pytest.skip("needs a C library that is shared")


def _function(stack: Stack, number: int) -> str:
    frame = stack.frames[number]
    symbol = None
    if frame.image is not None and frame.place is not None:
        symbol = frame.image.symbol_at(frame.place)
    return symbol.name if symbol else ""


def test_stacks_through_the_libraries_are_those_that_the_program_tells(
    running: tuple[int, int, Truth], root: None
) -> None:
    pid, tid, truth = running
    maps = MemoryMap(parse_maps(Path(f"/proc/{pid}/maps").read_text()))
    library, offset = _malloc_of(maps)
    judged: Counter[tuple[str, str]] = Counter()
    # twice: all kinds of events share the room that the agent has for stacks
    for _ in range(2):
        samples = _watched(pid, tid, f"malloc:{offset}:{library}")
        judged += _judged(samples, maps, truth)

    for kind in ("malloc", "minor_fault"):
        right = judged[kind, "right"]
        total = sum(n for (one, _), n in judged.items() if one == kind)
        assert total == STACKS
        assert right >= 0.99 * total, judged


def _watched(pid: int, tid: int, probe: str) -> list[WatchSample]:
    with Program(
        [
            *(str(native_agent()), "watch", "--pid", str(pid)),
            *("--duration-ns", str(6 * SECOND_NS), "--stacks", str(STACKS // 2)),
            *("--probe", probe),
        ]
    ) as agent:
        done = agent.finish()

    assert done.status == 0, done.stderr
    assert isinstance(done.lines[-1], WatchEnd)
    begin = done.lines[0]
    assert isinstance(begin, WatchBegin)
    refused = {one.name: one.cause for one in begin.events if not one.seen}
    if "malloc" in refused:
        pytest.skip(f"no probes here: {refused}")
    counts = {t.tid: t.events for t in done.lines if isinstance(t, WatchedThread)}
    assert counts[tid]["malloc"].count >= counts[tid]["malloc"].sampled
    assert counts[pid]["malloc"].count == 0, "it waits for its end"
    kinds = ("malloc", "minor_fault")
    return [
        one for one in done.lines if isinstance(one, WatchSample) and one.event in kinds
    ]


def _judged(
    samples: list[WatchSample], maps: MemoryMap, truth: Truth
) -> Counter[tuple[str, str]]:
    machine = BY_MACHINE[os.uname().machine]
    images: dict[str, Image] = {}

    def image_of(mapping: Mapping) -> Image:
        path = mapping.path
        if path not in images:
            images[path] = Image(Path(path).read_bytes(), path)
        return images[path]

    unwinder = Unwinder(machine, maps, image_of)
    judged: Counter[tuple[str, str]] = Counter()
    for one in samples:
        registers = registers_in(base64.b64decode(one.regs), machine)
        malloc = one.event == "malloc"
        stack = unwinder.unwind(
            dict(registers), base64.b64decode(one.stack), at_entry=malloc
        )
        key = (
            ("malloc", registers[machine.first_argument])
            if malloc
            else ("fault", int(one.address, 16) // PAGE * PAGE)
        )
        judged[one.event, _judgement(stack, truth.get(key))] += 1
    return judged


def _judgement(stack: Stack, told: list[int] | None) -> str:
    if told is None:
        return "of nothing that the program told"
    if not stack.complete:
        return stack.ends_early or ""
    found = [frame.address for frame in stack.frames]
    # The innermost that it told is the same function, at another of its calls.
    same = found[-len(told) + 1 :] == told[1:]
    site = _function(stack, -len(told))
    known = site == "" or any(name in site for name in ("allocat", "touch", "fault"))
    return "right" if same and known else f"wrong in {site}"
