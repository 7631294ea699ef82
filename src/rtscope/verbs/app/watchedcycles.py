"""Record when the threads of a process wake, run and sleep, beside other watching."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rtscope.contract import (
    AgentError,
    CycleRuns,
    CyclesBegin,
    CyclesEnd,
    KeptTrace,
    Line,
    TraceFile,
    TracePages,
    Tracing,
)
from rtscope.contract.values import SCHEMA
from rtscope.explain.activity import ExplainedWindow
from rtscope.explain.events.explain import explain_events
from rtscope.explain.events.threadstates import MachineTraits, TracedWakeup
from rtscope.explain.events.window import window_around
from rtscope.host.errors import ContractError, TargetError
from rtscope.host.process import start_thread
from rtscope.host.units import NS_PER_S
from rtscope.machine.target import Stream, Target
from rtscope.machine.target.stream import collect
from rtscope.programs.cycles.threadruns import Run, runs_in
from rtscope.record.events.dat import dat_trace
from rtscope.record.events.events import Trace
from rtscope.record.events.writer import TraceParts, trace_of
from rtscope.verbs.app.cycles import Cycle, ThreadCycles, cycles_of_all, without
from rtscope.verbs.app.model import Observation
from rtscope.verbs.app.watch import LEFT_OUT

TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class CycleRecording:
    """What the agent recorded of one process."""

    begin: CyclesBegin
    end: CyclesEnd
    runs: Mapping[int, Sequence[Run]]
    """By TID; a thread that did not wake up in this time is not in it."""
    threads: Mapping[int, ThreadCycles]
    """The cycles that these are."""
    trace: bytes | None
    """The trace around the longest cycles, as a file of trace-cmd; None: none kept."""


class CycleRecorder:
    """The agent while it records, and what came of it when it has ended."""

    def __init__(self, stream: Stream, *, works_s: float) -> None:
        self._stream, self._works_s = stream, works_s
        self._lines: list[Line] = []
        self._error: TargetError | ContractError | None = None
        # A thread, because a pipe that nobody empties would hold the agent up.
        self._done, self._began = threading.Event(), threading.Event()
        start_thread(self._read)

    def _read(self) -> None:
        try:
            self._lines = collect(
                self._stream,
                timeout_s=TIMEOUT_S,
                works_s=self._works_s,
                until=self._note_begin,
            )
        except (TargetError, ContractError) as error:
            self._error = error
        finally:
            self._began.set()
            self._done.set()

    def _note_begin(self, _line: Line) -> bool:
        self._began.set()
        return False

    def wait_until_it_records(self) -> None:
        """Wait for its first line, or its end."""
        self._began.wait(TIMEOUT_S)

    def result(self) -> CycleRecording:
        """Wait for its end; TargetError or ContractError if it gave no result."""
        self._done.wait(TIMEOUT_S + self._works_s)
        if self._error is not None:
            raise self._error
        return recording_of(self._lines, self._stream.stderr_tail())

    def kill(self) -> None:
        """End it, whatever it does."""
        self._stream.kill()
        self._done.wait(TIMEOUT_S)


@contextmanager
def recording_cycles(
    machine: Target, pid: int, *, duration_ns: int
) -> Iterator[CycleRecorder]:
    """Record a process for some time, beside what the caller does."""
    stream = machine.start_agent(cycles_args(str(pid), duration_ns), privileged=True)
    recorder = CycleRecorder(stream, works_s=duration_ns / NS_PER_S)
    try:
        # What watching adds to a wake-up is measured with all of it.
        recorder.wait_until_it_records()
        yield recorder
    finally:
        recorder.kill()


def cycles_args(pid: str, duration_ns: int) -> list[str]:
    """Return the agent's arguments for recording the cycles of a process."""
    return ["cycles", "--pid", pid, "--duration-ns", str(duration_ns)]


def recording_of(lines: Sequence[Line], stderr: str = "") -> CycleRecording:
    """Return what the lines of the agent hold; TargetError or ContractError if not."""
    for line in lines:
        if isinstance(line, AgentError):
            raise TargetError(line.message)
    begin = next((one for one in lines if isinstance(one, CyclesBegin)), None)
    end = next((one for one in lines if isinstance(one, CyclesEnd)), None)
    if begin is None or end is None:
        raise ContractError(f"the agent's recording is incomplete: {stderr}")
    runs = runs_in(line for line in lines if isinstance(line, CycleRuns))
    if sum(len(some) for some in runs.values()) != end.runs:
        raise ContractError("the agent's runs of threads are not complete")
    threads = cycles_of_all(runs, from_ns=begin.from_ns)
    return CycleRecording(begin, end, runs, threads, _trace(lines, end))


def no_cycles(seen: Observation) -> CycleRecording:
    """Return what `--light` has of cycles: that there are none, and why."""
    begin, end = seen.watch.begin, seen.watch.end
    return recording_without_agent(
        seen.pid,
        (begin.from_ns, end.to_ns),
        {},
        stopped=end.stopped,
        lacks=("light", LEFT_OUT, "leave out --light"),
    )


def recording_without_agent(
    pid: int,
    span_ns: tuple[int, int],
    threads: Mapping[int, ThreadCycles],
    *,
    stopped: str = "",
    runs: int = 0,
    left_out: int = 0,
    lacks: tuple[str, str, str] | None = None,
) -> CycleRecording:
    """
    Return cycles that no agent has recorded.

    `lacks` are cause, reason and remedy where nobody has recorded any.
    """
    cause, reason, remedy = lacks or ("", "", "")
    from_ns, to_ns = span_ns
    tracing = Tracing(
        enabled=lacks is None,
        cause=cause,
        reason=reason,
        remedy=remedy,
        clock="",
        page_bytes=0,
        buffer_kb=0,
        longest_read_gap_ns=0,
        candidates_lost=0,
        events=(),
        missing_events=(),
        cpus=(),
        kept=(),
    )
    return CycleRecording(
        CyclesBegin(schema=SCHEMA, pid=pid, from_ns=from_ns),
        CyclesEnd(
            to_ns=to_ns,
            stopped=stopped,
            runs=runs,
            left_out=left_out,
            cut=0,
            losses=0,
            not_watched=0,
            agent_cpu_ns=0,
            tracing=tracing,
            wakeup_plain_ns=0,
            wakeup_recorded_ns=0,
        ),
        {},
        threads,
        None,
    )


def with_period(recording: CycleRecording, period_ns: int) -> CycleRecording:
    """Return it with cycles of a period that the user gave."""
    from_ns = recording.begin.from_ns
    threads = cycles_of_all(recording.runs, given_ns=period_ns, from_ns=from_ns)
    return replace(recording, threads=threads)


def _trace(lines: Sequence[Line], end: CyclesEnd) -> bytes | None:
    parts = TraceParts()
    for line in lines:
        if isinstance(line, TraceFile):
            parts.take_file(line)
        elif isinstance(line, TracePages):
            parts.take_pages(line)
    return trace_of(parts, end.tracing)


@dataclass(frozen=True, slots=True)
class LongestCycle:
    """The longest cycle of a thread whose trace was kept, explained."""

    cycle: Cycle
    whole: ExplainedWindow
    """From its begin to its end."""
    wakeup: ExplainedWindow
    """Until it got the CPU."""


def explained_cycles(
    recording: CycleRecording,
    names: Mapping[int, str],
    machine: MachineTraits | None = None,
    *,
    board: str = "",
) -> tuple[CycleRecording, Mapping[int, LongestCycle]]:
    """
    Explain the longest cycle of each thread in `names` whose trace was kept.

    The recording comes back without the cycles whose events contradict them. The titles
    have the name of the virtual board, if it was recorded on one.
    """
    if recording.trace is None:
        return recording, {}
    trace = dat_trace(memoryview(recording.trace), name="the trace of the cycles")
    threads, longest = dict(recording.threads), {}
    for tid, name in names.items():
        thread = threads.pop(tid, None)
        for cycle, complete in [] if thread is None else _kept(recording, thread):
            traits = machine or MachineTraits()
            one = _explained(trace, cycle, (tid, name), traits, board)
            if not one.whole.explanation.is_withdrawn:
                longest[tid] = one
                break
            # One that began at once follows from its timer, whatever the events are.
            if thread is not None and cycle.slept and complete:
                thread = without(thread, cycle)
        if thread is not None:
            threads[tid] = thread
    return replace(recording, threads=threads), longest


def _kept(
    recording: CycleRecording, thread: ThreadCycles
) -> Sequence[tuple[Cycle, bool]]:
    """Return the cycles whose trace was kept, and if all of it; the longest first."""
    kept = [
        one for one in recording.end.tracing.kept if one.seq == thread.tid and one.pages
    ]
    there = [
        (cycle, not any(one.truncated or one.overwritten for one in around))
        for cycle in thread.cycles
        if (around := [one for one in kept if _is_around(one, cycle)])
    ]
    return sorted(there, key=lambda one: -one[0].response_ns)


def _is_around(kept: KeptTrace, cycle: Cycle) -> bool:
    return (
        kept.from_ns <= cycle.begin_ns <= kept.expiry_ns <= cycle.end_ns <= kept.to_ns
    )


def _explained(
    trace: Trace,
    cycle: Cycle,
    thread: tuple[int, str],
    machine: MachineTraits,
    board: str,
) -> LongestCycle:
    tid, name = thread
    where = f" on virtual:{board}" if board else ""

    def until(end_ns: int, title: str, *, to_the_switch: bool) -> ExplainedWindow:
        traced = TracedWakeup(
            pid=tid,
            comm=name,
            cpu=None,
            expiry_ns=cycle.begin_ns,
            wake_ns=end_ns,
            programmed=cycle.timed,
            timed_waits=cycle.timed_waits,
            to_the_end=not to_the_switch,
            to_the_switch=to_the_switch,
        )
        window, wakeup = window_around(trace, traced)
        explanation = explain_events(window, wakeup, machine=machine)
        return ExplainedWindow(
            f"{title} of {name}-{tid}{where}", window, wakeup, explanation
        )

    return LongestCycle(
        cycle,
        until(cycle.end_ns, "longest cycle", to_the_switch=False),
        until(cycle.in_ns, "wake-up", to_the_switch=True),
    )
