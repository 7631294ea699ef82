"""
One measurement under one load: start both agents, collect their lines, end both.

The order is the contract: load, warm-up, measurement, load off. A traced run is also
measured without tracing, before and after, for the cost of tracing. After an error,
Ctrl-C or a lost link too, all agents have ended when `observe` returns or raises.
"""

import errno
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rtscope.contract import (
    AgentError,
    AgentResult,
    Growth,
    Hello,
    KernelMessage,
    Line,
    LoadEnd,
    LoadHello,
    LoadTick,
    LoadWindow,
    Samples,
    Started,
    Tick,
    TraceFile,
    TracePages,
    WorstSoFar,
)
from rtscope.host.errors import LoadError, MeasurementError, TargetError
from rtscope.host.units import NS_PER_S
from rtscope.machine.target import Stream, Target
from rtscope.machine.target.stream import wait_any
from rtscope.measure.growth import GrowthSum
from rtscope.measure.seconds import Seconds, seconds_of_load, seconds_of_ticks
from rtscope.record.events.writer import TraceParts
from rtscope.record.samples import SamplesParts

START_TIMEOUT_S = 30.0
"""For the agent's first line: sudo or a slow board."""

SILENCE_TIMEOUT_S = 25.0
"""The agent reports every second, and gives up on a starved thread after 15 s."""

STOP_TIMEOUT_S = 40.0
"""Storage workers remove thousands of directories first; then the guard kills."""

LATE_S = 600.0
"""After the end of a measurement: a long trace over a slow link, settings put back."""

PATIENCE_S = 3.0
"""An agent that was asked to stop needs so long for its result: Ctrl-C waits for it."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class AgentCommands:
    """Arguments of both agents, and the warm-up of the load."""

    measure_args: tuple[str, ...]
    measure_privileged: bool
    load_args: tuple[str, ...]
    """Empty: no load."""
    load_privileged: bool
    warmup_ns: int
    duration_ns: int
    """Of the measurement; the untraced ones are no longer."""
    untraced_args: tuple[str, ...] = ()
    """The measurement without tracing, before and after; empty: none."""


@dataclass(slots=True)
class Observation:
    """The lines of both agents, by kind."""

    hello: Hello | None = None
    result: AgentResult | None = None
    ticks: Seconds[Tick] = field(default_factory=seconds_of_ticks)
    kernel_log: list[KernelMessage] = field(default_factory=list)
    load_ticks: Seconds[LoadTick] = field(default_factory=seconds_of_load)
    load_windows: list[LoadWindow] = field(default_factory=list)
    load_end: LoadEnd | None = None
    load_ended_early: bool = False
    """The load ended before the measurement did."""
    interrupted: bool = False
    lost: MeasurementError | None = None
    """Why the agent sent no result; `result` is then rebuilt from the growth lines."""
    growth: GrowthSum = field(default_factory=GrowthSum)
    trace: TraceParts = field(default_factory=TraceParts)
    samples: SamplesParts = field(default_factory=SamplesParts)
    untraced: list[AgentResult] = field(default_factory=list)
    """Without tracing: before and after."""

    def take(self, line: Line) -> None:
        """File a line; raise MeasurementError for an error of the agent."""
        match line:
            case Hello():
                self.hello = line
            case AgentResult():
                self.result = line
            case Tick():
                self.ticks.append(line)
            case Started() | Growth() | WorstSoFar():
                self.growth.take(line)
            case KernelMessage():
                self.kernel_log.append(line)
            case LoadTick() | LoadWindow() | LoadEnd():
                self._take_from_guard(line)
            case TraceFile() | TracePages() | Samples():
                self._take_file(line)
            case AgentError():
                raise MeasurementError(_message(line))
            case _:
                pass

    def _take_file(self, line: TraceFile | TracePages | Samples) -> None:
        """File what becomes a file beside the record."""
        match line:
            case TraceFile():
                self.trace.take_file(line)
            case TracePages():
                self.trace.take_pages(line)
            case Samples():
                self.samples.take(line)

    def _take_from_guard(self, line: LoadTick | LoadWindow | LoadEnd) -> None:
        match line:
            case LoadTick():
                self.load_ticks.append(line)
            case LoadWindow():
                self.load_windows.append(line)
            case LoadEnd():
                self.load_end = line


def observe(
    target: Target,
    commands: AgentCommands,
    *,
    on_line: Callable[[Line], None],
    clock: Clock = time.monotonic,
) -> Observation:
    """
    Measure once; `on_line` gets each line for the progress display as it arrives.

    On KeyboardInterrupt the agents are ended in good order, and what was measured is
    returned with `interrupted` set. If the agent sends no result, one is rebuilt from
    its growth lines, and `lost` is set. Raises MeasurementError or TargetError if there
    are none.
    """
    seen = Observation()
    load: Stream | None = None
    meters: list[Stream] = []
    pump = _Pump(seen, on_line, clock)

    def measure(args: tuple[str, ...], into: Observation) -> AgentResult:
        meters.append(target.start_agent(args, privileged=commands.measure_privileged))
        limit_s = commands.duration_ns / NS_PER_S + LATE_S
        return pump.until_measured(meters[-1], load, into=into, limit_s=limit_s)

    try:
        if commands.load_args:
            load = target.start_agent(
                commands.load_args, privileged=commands.load_privileged
            )
            pump.until_load_runs(load, commands.warmup_ns / NS_PER_S)
        if commands.untraced_args:
            seen.untraced.append(measure(commands.untraced_args, Observation()))
            if seen.interrupted:  # the measurement has not begun
                raise KeyboardInterrupt
        measure(commands.measure_args, seen)
        if commands.untraced_args and not seen.interrupted:
            seen.untraced.append(measure(commands.untraced_args, Observation()))
        if load is not None:
            pump.stop(load)
    except (MeasurementError, KeyboardInterrupt) as error:
        if not _rebuilt(seen, error):
            raise
    finally:
        _kill(*meters, load)
    return seen


def _kill(*streams: Stream | None) -> None:
    for stream in streams:
        if stream is not None:
            stream.kill()


def _rebuilt(seen: Observation, error: MeasurementError | KeyboardInterrupt) -> bool:
    """Rebuild the result from the growth lines; return whether that could be done."""
    if seen.result is not None:
        return False
    seen.result = seen.growth.result()
    if seen.result is None:
        return False
    if isinstance(error, KeyboardInterrupt):
        seen.interrupted = True
        seen.lost = TargetError("no result came after the run was asked to stop")
    else:
        seen.lost = error
    return True


class _Pump:
    """Moves lines from the agents into the observation; every wait has a limit."""

    def __init__(
        self, seen: Observation, on_line: Callable[[Line], None], clock: Clock
    ) -> None:
        self._seen = seen
        self._on_line = on_line
        self._clock = clock

    def _take(self, stream: Stream, into: Observation | None = None) -> list[Line]:
        lines = stream.take_lines()
        for line in lines:
            (into or self._seen).take(line)
        if into is not None and into is not self._seen:
            return lines
        # Last, because the view takes its time, in which Ctrl-C may come.
        for line in lines:
            if isinstance(line, Tick | WorstSoFar | LoadTick | KernelMessage):
                self._on_line(line)
        return lines

    def until_load_runs(self, load: Stream, warmup_s: float) -> None:
        runs_since = None
        started = self._clock()
        while runs_since is None or self._clock() - runs_since < warmup_s:
            wait_any([load], timeout_s=0.1)
            if any(isinstance(line, LoadHello) for line in self._take(load)):
                runs_since = self._clock()
            if load.ended:
                raise LoadError(
                    "the load ended before the measurement began"
                    + (_end(self._seen) or _last_stderr(load))
                )
            if runs_since is None and self._clock() - started > START_TIMEOUT_S:
                raise TargetError(
                    f"the load did not start within {START_TIMEOUT_S:.0f} s"
                )

    def until_measured(
        self, meter: Stream, load: Stream | None, *, into: Observation, limit_s: float
    ) -> AgentResult:
        try:
            return self._until_result(meter, load, into=into, limit_s=limit_s)
        except MeasurementError as error:
            if self._seen.interrupted:  # asked to stop before it had anything
                raise KeyboardInterrupt from error
            raise

    def _until_result(
        self, meter: Stream, load: Stream | None, *, into: Observation, limit_s: float
    ) -> AgentResult:
        others: Sequence[Stream] = [] if load is None else [load]
        began = last_request = last_line = self._clock()
        while not meter.ended:
            try:
                wait_any([meter, *others], timeout_s=1.0)
                if self._take(meter, into):
                    last_line = self._clock()
                for other in others:
                    self._take(other)
                    self._seen.load_ended_early |= other.ended
            except KeyboardInterrupt:
                if not self._seen.interrupted:
                    self._seen.interrupted = True
                    last_request = self._clock()
                    meter.ask_stop()
                elif self._clock() - last_request > PATIENCE_S:
                    raise
            self._refuse_late(into, last_line=last_line, began=began, limit_s=limit_s)
        self._take(meter, into)
        if into.result is None:
            raise TargetError("the agent ended without a result" + _last_stderr(meter))
        if load is not None and self._seen.load_end is not None:
            self._seen.load_ended_early = True
        return into.result

    def _refuse_late(
        self, into: Observation, *, last_line: float, began: float, limit_s: float
    ) -> None:
        now = self._clock()
        timeout_s = SILENCE_TIMEOUT_S if into.hello else START_TIMEOUT_S
        if now - last_line > timeout_s:
            raise TargetError(
                f"no line from the agent for {timeout_s:.0f} s; check whether the "
                "machine or the agent was suspended"
            )
        if now - began > limit_s:
            raise TargetError(
                f"the agent sends lines, but no result after {limit_s:.0f} s; check "
                "the machine and its agent"
            )

    def stop(self, load: Stream) -> None:
        began = self._clock()
        try:
            if not load.ended:
                load.ask_stop()
            while not load.ended and self._clock() - began < STOP_TIMEOUT_S:
                wait_any([load], timeout_s=0.5)
                self._take(load)
            self._take(load)
        except KeyboardInterrupt:
            # The measurement is complete and must not be lost.
            self._seen.interrupted = True


NO_PROCESS = os.strerror(errno.EAGAIN)
RAISE_PROCESSES = (
    "raise the limit of processes there: ulimit -u of the user, or pids.max of the "
    "cgroup"
)


def _message(error: AgentError) -> str:
    # What the agent says of any load that does not start is no help with this limit.
    remedy = RAISE_PROCESSES if NO_PROCESS in error.message else error.remedy
    return error.message + (f"; {remedy}" if remedy else "")


def _end(seen: Observation) -> str:
    end = seen.load_end
    if end is None:
        return ""
    if end.signal is not None:
        return f" (signal {end.signal})"
    return f" (exit status {end.status})"


def _last_stderr(stream: Stream) -> str:
    lines = stream.stderr_tail().splitlines()
    return f": {lines[-1]}" if lines else ""
