"""Where a checked program runs: a machine, or a virtual board."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rtscope.cli.console import note, stderr_console
from rtscope.cli.options import refuse_board_options
from rtscope.cli.progress import Waiting
from rtscope.explain.events.explain import traits_of
from rtscope.explain.events.threadstates import MachineTraits
from rtscope.host.errors import UsageError
from rtscope.host.units import NS_PER_S
from rtscope.machine.gather import gather
from rtscope.machine.reader import Reader
from rtscope.machine.target import Target
from rtscope.machine.target.address import Address, open_target
from rtscope.machine.tasks.statistics import Statistics, read_statistics
from rtscope.verbs.app.debuginfod import Debuginfod
from rtscope.verbs.app.eventstacks import Naming
from rtscope.verbs.app.model import BoardLabel, Observation
from rtscope.verbs.app.watch import (
    find_process,
    observe,
    running_command,
)
from rtscope.verbs.app.watchedcycles import CycleRecording, no_cycles, recording_cycles

if TYPE_CHECKING:  # emulator, packages and plugin: only virtual boards need them
    from rtscope.explain.outsidecycle import RecordedCycle


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """A program, and how to watch it."""

    program: Sequence[str]
    """A command; or the name or PID of a running process."""
    is_command: bool
    settle_ns: int
    duration_ns: int
    kernel: str | None = None
    """Of a virtual board; None: its first one."""
    seed: int | None = None
    """Of a virtual board; None: 1."""
    append: str | None = None
    """Additional kernel parameters of a virtual board."""
    light: bool = False
    """Without probes and cycles."""
    debuginfod: Debuginfod | None = None
    """Of a machine; None: nothing is downloaded."""
    period_ns: int | None = None
    """Of the cycles of all threads; None: found by what wakes them."""
    perfetto: bool = False
    """Whether a trace of the longest cycles is wanted."""
    draws: bool = False
    """Whether the longest cycles are drawn."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What was seen of a program, and where."""

    observation: Observation
    recording: CycleRecording
    traits: MachineTraits
    statistics: Statistics
    """Those that the program keeps itself."""
    board: BoardLabel | None = None
    """None: a real machine."""
    longest: Mapping[int, str] = field(default_factory=dict)
    """Of a board: what took the time of the longest cycle of a thread, by TID;"""
    drawn: "Mapping[int, RecordedCycle]" = field(default_factory=dict)
    """and what all CPUs executed in it."""


def watch_program(address: Address, request: WatchRequest) -> Watched:
    """Watch it on a machine or a board; UsageError for what neither can do."""
    if address.board is not None:
        return _on_board(address.board, request)
    refuse_board_options(
        address.board, kernel=request.kernel, append=request.append, seed=request.seed
    )
    with open_target(address) as machine:
        traits = traits_of(gather(machine.reader))
        if not request.is_command:
            pid = find_process(machine, request.program[0])
            return _on_machine(machine, pid, traits, request)
        settle_s = request.settle_ns / NS_PER_S
        with running_command(machine, request.program, settle_s=settle_s) as pid:
            return _on_machine(machine, pid, traits, request)


def _on_machine(
    machine: Target, pid: int, traits: MachineTraits, request: WatchRequest
) -> Watched:
    duration_ns = request.duration_ns
    with Waiting(stderr_console()) as waiting:
        naming = Naming(waiting, request.debuginfod)
        if machine.name != "local":
            naming = replace(naming, packages=lambda _paths: {})
        if request.light:
            observation = observe(
                machine, pid, duration_ns=duration_ns, light=True, naming=naming
            )
            recording = no_cycles(observation)
        else:
            with recording_cycles(machine, pid, duration_ns=duration_ns) as recorder:
                observation = observe(
                    machine, pid, duration_ns=duration_ns, naming=naming
                )
                recording = recorder.result()
    return Watched(observation, recording, traits, _statistics(machine.reader, pid))


def _statistics(reader: Reader, pid: int) -> Statistics:
    return read_statistics(reader, {pid}).of({pid}, whole=False)


def _on_board(name: str, request: WatchRequest) -> Watched:
    # Emulator, packages and plugin: only virtual boards need them.
    from rtscope.boards.catalogue import get_arch, get_board, with_append
    from rtscope.boards.parts.buildcontext import BuildContext
    from rtscope.boards.parts.cache import cache_dir
    from rtscope.boards.parts.prepare import prepare
    from rtscope.boards.parts.program import program_of
    from rtscope.boards.parts.programtree import put_users, tree_for
    from rtscope.machine.target import agent_file
    from rtscope.verbs.app.boardwatch import watch_on_board

    if not request.is_command:
        raise UsageError(
            f"{request.program[0]}: a virtual board has no running programs: give a "
            f"command after --, e.g. rtscope app check --target virtual:{name} -- "
            "./control"
        )
    _refuse_of_machines(name, request)
    board = with_append(get_board(name), (request.append or "").split())
    tree = tree_for(board)
    put_users(tree)
    program = program_of(
        request.program, get_arch(board.arch), tree=tree, scripts=False
    )
    with Waiting(stderr_console()) as waiting:
        log = waiting.over(note)
        context = BuildContext(
            cache=cache_dir(), agent=agent_file, log=log, progress=waiting
        )
        kernel = request.kernel or board.kernels[0]
        seen = watch_on_board(
            prepare(board, kernel, context=context),
            program,
            warmup_ns=request.settle_ns,
            duration_ns=request.duration_ns,
            seed=1 if request.seed is None else request.seed,
            period_ns=request.period_ns,
            draws=request.draws,
            cache=cache_dir(),
            log=log,
            progress=waiting,
        )
    watch = seen.watch
    return Watched(
        watch.observation,
        watch.recording,
        traits_of(gather(seen.reader)),
        _statistics(seen.reader, watch.observation.pid),
        BoardLabel(board.name, seen.identity.words, seen.identity.row()),
        watch.longest,
        seen.drawn,
    )


def _refuse_of_machines(board: str, request: WatchRequest) -> None:
    """Raise UsageError for options that mean nothing where nobody watches inside."""
    for given, option, why in (
        (request.light, "--light", "nothing in a virtual board watches: leave it out"),
        (
            request.debuginfod is not None,
            "--debuginfod",
            "names on a virtual board come from the program's files alone: build it "
            "with -g",
        ),
        (
            request.perfetto,
            "--perfetto",
            "no events of a virtual board's kernel are recorded; what all CPUs "
            "executed in the longest cycle is on the page: --html page.html",
        ),
    ):
        if given:
            raise UsageError(f"{option}: {why}")
