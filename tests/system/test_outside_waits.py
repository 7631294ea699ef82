"""What a program waits for, asks for and uses is seen from outside, as it says."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from rig import NEEDS_APT

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import File, Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import ProgramUse, ProgramView, Recording
from rtscope.boards.recording.programplaces import program_view
from rtscope.boards.recording.programuses import sum_of_page
from rtscope.boards.recording.symbols import find_kernel_layout
from rtscope.boards.runs.boot import Booted, boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.host.errors import BoardError
from rtscope.host.units import NS_PER_S
from rtscope.machine.target import agent_file
from rtscope.programs.binaries.image import Image
from rtscope.programs.binaries.unwind import BY_MACHINE, Unwinder
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.memorymap import MemoryMap
from rtscope.programs.outside.file import (
    Entry,
    Kind,
    ProgramRecord,
    name_of,
    parse_program_record,
)
from rtscope.record.instructions.file import parse_trace

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

SOURCE = Path(__file__).parent.parent / "offenders" / "waits.c"
BOARDS = {
    "rt": ("pc", "debian-6.12-rt"),
    "pc": ("pc", "debian-6.12"),
    "riscv": ("jh7110", "jh7110-6.12-rt"),
    "arm": ("rpi3", "debian-6.12-rt"),
}
TARGETS = {
    "pc": "x86_64-linux-musl",
    "jh7110": "riscv64-linux-musl",
    "rpi3": "aarch64-linux-musl",
}
MACHINES = {"pc": "x86_64", "jh7110": "riscv64", "rpi3": "aarch64"}
GETPPID = {"pc": 110, "jh7110": 173, "rpi3": 173}
TICK_NS = {"pc": 1, "jh7110": 100, "rpi3": 16}
"""Of the clock that the program reads."""
SLEEP, TIMERFD, POSIX_TIMER = 1, 2, 3
FUTEX, READ = 2, 5
FAULTED, WRITE = 11, 14
"""Places in the list of hooks."""
MOST_NS = 100_000
"""From the first instruction of a program to where it has read the clock: at most."""


SCRIPT = (
    "RTSCOPE_PROGRAM=1 /bin/rtscope-agent load --log /out/said"
    " -- /waits >/out/guard.jsonl\n/bin/rtscope-agent measure --cpus 0 --policy fifo"
    " --priority 90 --interval-ns 1000000 --duration-ns 50000000 >/out/measured\n"
    "true\n"
)


def use_of(program: Path, name: str) -> ProgramUse:
    """Return a function of a program as the plugin finds it."""
    content = program.read_bytes()
    image = Image(content, "waits")
    (symbol,) = image.functions_named(name)
    offset = image.offset_of(symbol.vaddr)
    assert offset is not None
    page = offset - offset % 4096
    total = sum_of_page(content[page : page + 4096])
    return ProgramUse(name, "/waits", offset % 4096, total)


@dataclass(frozen=True)
class Run:
    """A boot, what the program said in it, and what was seen."""

    board: str
    booted: Booted
    program: Path
    view: ProgramView

    @cached_property
    def record(self) -> ProgramRecord:
        assert self.booted.program is not None
        return parse_program_record(self.booted.program)

    @cached_property
    def said(self) -> Mapping[str, Sequence[Sequence[int]]]:
        steps: dict[str, list[list[int]]] = {}
        for line in self.booted.text("said").splitlines():
            name, *numbers = line.split()
            steps.setdefault(name, []).append([int(one) for one in numbers])
        return steps

    @property
    def entries(self) -> Sequence[Entry]:
        return self.record.entries

    @cached_property
    def names(self) -> Mapping[int, list[str]]:
        found: dict[int, list[str]] = {}
        for one in self.entries:
            if one.kind == Kind.NAME:
                found.setdefault(one.tid, []).append(name_of(one))
        return found

    def step(self, tid: int, number: int) -> Sequence[Entry]:
        """Return the records of a thread between two of its marks."""
        own = [one for one in self.entries if one.tid == tid]
        marks = [
            at
            for at, one in enumerate(own)
            if one.kind == Kind.CALL and one.detail == GETPPID[self.board]
        ]
        return own[marks[2 * number] : marks[2 * number + 1]]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("waits")
    for board, target in TARGETS.items():
        zig = (sys.executable, "-m", "ziglang", "cc", "-target", target)
        options = ("-O1", "-static", "-funwind-tables", "-o", folder / board)
        subprocess.run([*zig, *options, SOURCE], check=True)
    return {board: folder / board for board in TARGETS}


def prepared_for(board: str, kernel: str) -> Prepared:
    context = BuildContext(cache=cache_dir(), agent=agent_file, log=print)
    return prepare(get_board(board), kernel, context=context)


def booted_with(
    prepared: Prepared,
    program: Path,
    view: ProgramView | None,
    recording: Recording | None = None,
) -> Booted:
    tree = {"waits": File(program.read_bytes(), runs=True)}
    return boot(
        prepared,
        Job(SCRIPT, tree=tree),
        seed=1,
        timeout=BootTimeout(60 * NS_PER_S, boot_ns=120 * NS_PER_S),
        stopped=lambda: False,
        view=view,
        recording=recording,
    )


def address_of(program: Path, function: str) -> int:
    with program.open("rb") as file:
        (found,) = (
            ELFFile(file).get_section_by_name(".symtab").get_symbol_by_name(function)
        )
    return int(found["st_value"])


@pytest.fixture(scope="module", params=BOARDS)
def run(request: pytest.FixtureRequest, programs: Mapping[str, Path]) -> Run:
    """One boot of each kernel serves all that is asserted of it."""
    board, kernel = BOARDS[request.param]
    prepared, program = prepared_for(board, kernel), programs[board]
    view = replace(
        program_view(prepared, cache=cache_dir(), log=print),
        uses=(use_of(program, "used"),),
        stacks=1000,
    )
    return Run(board, booted_with(prepared, program, view), program, view)


@pytest.mark.parametrize("clock", ["monotonic", "realtime", "boottime"])
def test_a_sleep_was_due_when_the_program_says(run: Run, clock: str) -> None:
    number = ("monotonic", "realtime", "boottime").index(clock)
    said = run.said[clock]
    step = run.step(said[0][0], number)
    releases = [one for one in step if one.kind == Kind.RELEASE]
    firsts = [one for one in step if one.kind == Kind.FIRST]

    assert [one.detail for one in releases] == [SLEEP] * len(said)
    for (_, due, read), release, first in zip(said, releases, firsts, strict=True):
        apart = (read - due) - (first.at_ns - release.signed)
        assert -TICK_NS[run.board] <= apart < MOST_NS
    dues = [release.signed for release in releases]
    assert {after - before for before, after in pairwise(dues)} <= set(
        range(1_000_000 - TICK_NS[run.board], 1_000_001 + TICK_NS[run.board])
    )


def test_timers_are_told_apart(run: Run) -> None:
    for number, name, how in (
        (3, "timerfd", TIMERFD),
        (4, "timer", POSIX_TIMER),
        (5, "itimer", POSIX_TIMER),
    ):
        ((tid, times),) = run.said[name]
        step = run.step(tid, number)
        releases = [one for one in step if one.kind == Kind.RELEASE]

        assert [one.detail for one in releases] in (
            [how] * times,
            # the timer of the step before goes on
            [POSIX_TIMER] * len(releases),
        ), name
        for release in releases:
            at = step.index(release)
            assert step[at + 1].kind == Kind.WAKE
            assert step[at + 1].at_ns >= release.signed


def test_page_faults_are_as_many_as_the_kernel_counts(run: Run) -> None:
    ((tid, counted),) = run.said["faults"]
    faults = [one for one in run.step(tid, 6) if one.kind == Kind.FAULT]

    assert len(faults) == counted
    assert len({one.value >> 12 for one in faults}) == counted


def test_each_use_of_a_function_is_seen_with_its_callers(run: Run) -> None:
    ((tid, times),) = run.said["used"]
    used = [one for one in run.step(tid, 7) if one.kind == Kind.USED]

    assert len(used) == times
    assert {one.function for one in used} == {0}
    done = [one for one in run.step(tid, 7) if one.kind == Kind.DONE]
    assert [one.detail for one in done] == [0] * times
    image = Image(run.program.read_bytes(), "waits")
    stacks = [run.record.stacks[one.place - 1] for one in used]
    assert len({one.place for one in used}) == 1
    machine = BY_MACHINE[MACHINES[run.board]]
    unwinder = Unwinder(machine, MemoryMap(_pieces(run.program)), lambda _: image)
    for one in stacks:
        registers = dict(zip(machine.order, one.words, strict=True))
        frames = unwinder.unwind(registers, one.content, at_entry=True).frames
        named = [image.symbol_at(frame.place or 0) for frame in frames]
        names = [symbol.name if symbol else "" for symbol in named]

        assert names[:3] == ["used", "uses", "main"]
        assert frames[1].address == used[0].value


def _pieces(program: Path) -> Iterator[Piece]:
    with program.open("rb") as file:
        for one in ELFFile(file).iter_segments("PT_LOAD"):
            start = one["p_vaddr"] & ~0xFFF
            end = one["p_vaddr"] + one["p_memsz"]
            offset = one["p_offset"] & ~0xFFF
            yield Piece(start, end, "r-xp", offset, "0:1", 1, "/waits")


def held(run: Run, tid: int) -> Sequence[Entry]:
    return [one for one in run.step(tid, 0) if one.kind == Kind.HELD]


def test_a_futex_with_inheritance_is_held_by_whom_the_program_says(run: Run) -> None:
    ((tid, holder),) = run.said["lending"]
    assert {(one.detail, one.value) for one in held(run, tid)} == {(FUTEX, holder)}
    assert run.names[holder][-1] == "holder"


def test_a_change_of_the_maps_waits_for_readers_whom_nobody_knows(run: Run) -> None:
    ((tid, _),) = run.said["mapping"]
    if run.view.hooks[WRITE] == 0:
        pytest.skip("with PREEMPT_RT, such a wait leaves no trace in the kernel")
    (one,) = held(run, tid)

    assert (one.detail, one.value) == (READ, 0)


def test_a_pipe_is_woken_by_its_writer(run: Run) -> None:
    ((tid, writer),) = run.said["pipe"]
    wakes = [one for one in run.step(tid, 8) if one.kind == Kind.WAKE]

    assert (wakes[-1].value, wakes[-1].detail) == (writer, 0)


def test_a_child_is_followed_through_exec_and_rename(run: Run) -> None:
    ((parent, child),) = run.said["child"]
    forks = [one for one in run.entries if one.kind == Kind.FORK]
    (ended,) = (
        one for one in run.entries if one.kind == Kind.EXIT and one.tid == child
    )

    assert (parent, child) in [(one.tid, one.value) for one in forks]
    assert run.names[child][-1] == "renamed"
    assert ended.value == 3 << 8


def test_the_guest_does_the_same_unseen(run: Run) -> None:
    board, kernel = next(one for one in BOARDS.values() if one[0] == run.board)
    if run.view.hooks[WRITE]:
        pytest.skip("one kernel of each board is enough")
    unseen = booted_with(prepared_for(board, kernel), run.program, None)

    assert unseen.files == run.booted.files
    assert unseen.counts["instructions"] == run.booted.counts["instructions"]


def test_paths_and_programs_are_recorded_beside_each_other(
    programs: Mapping[str, Path],
) -> None:
    prepared = prepared_for(*BOARDS["riscv"])
    cache, program = cache_dir(), programs["jh7110"]
    view = program_view(prepared, cache=cache, log=print)
    measured = Recording(4, layout=find_kernel_layout(prepared, cache=cache))
    paths, seen, both = (
        booted_with(prepared, program, one, recording=other)
        for one, other in ((None, measured), (view, None), (view, measured))
    )

    assert both.files == seen.files == paths.files
    assert both.counts == seen.counts == paths.counts
    assert paths.stream is not None
    assert parse_trace(paths.stream).sections
    assert both.stream == paths.stream
    assert both.program == seen.program


@pytest.mark.parametrize(
    ("hook", "name"),
    [(0, "try_to_wake_up"), (2, "finish_task_switch"), (3, "hrtimer_wakeup")],
)
def test_a_hook_that_is_not_what_it_should_be_is_refused(
    programs: Mapping[str, Path], hook: int, name: str
) -> None:
    prepared = prepared_for(*BOARDS["riscv"])
    view = program_view(prepared, cache=cache_dir(), log=print)
    wrong = list(view.hooks)
    wrong[hook] = view.hooks[
        FAULTED
    ]  # that of page faults: its first argument is an area

    with pytest.raises(BoardError, match=name):
        booted_with(
            prepared,
            programs["jh7110"],
            replace(view, hooks=(*wrong[:FAULTED], 0, *wrong[FAULTED + 1 :])),
        )


def test_what_exceeds_the_limit_is_counted(programs: Mapping[str, Path]) -> None:
    prepared = prepared_for(*BOARDS["riscv"])
    view = program_view(prepared, cache=cache_dir(), log=print)
    whole, cut = (
        booted_with(prepared, programs["jh7110"], replace(view, most=most)).program
        for most in (None, 100)
    )
    assert whole is not None
    assert cut is not None
    kept, all_ = parse_program_record(cut), parse_program_record(whole)

    assert kept.entries[:-1] == all_.entries[:100]
    assert kept.lost == len(all_.entries) - 100
