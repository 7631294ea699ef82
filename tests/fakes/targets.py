"""Targets that say what a test wants, for runs whose every effect is in a log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fakes.faketarget import FakeTarget, Script
from fakes.measurements import SECOND_NS, record, thread
from fakes.trees import GUEST, reader_of
from rtscope.contract import (
    AgentResult,
    DiskLine,
    Hello,
    Line,
    LoadEnd,
    LoadHello,
    LoadTick,
    Tick,
    TickCpu,
    Tracing,
)
from rtscope.machine.reader import Content, Reader

STRESS_NG = "stress-ng, version 0.15.06 (gcc 12.2.0)"

HELLO = Hello(schema=2, agent="0.1.0", arch="x86_64", options={"policy": "fifo"})
LOAD_HELLO = LoadHello(schema=2, pid=77, argv=("stress-ng", "--matrix", "1"))
ASKED = LoadEnd(
    status=0,
    signal=None,
    stop_requested=True,
    killed=0,
    oom_kills=None,
    cpu_ns=9 * SECOND_NS,
)
A_DISK = DiskLine(
    path="/var/tmp", fs_magic=0xEF53, free_bytes=10**11, free_inodes=10**7
)

MEASURED = thread([5_000, 7_000, 6_000] * 20, interval_ns=100_000_000)

STATUS = "Name:\tagent\nCpus_allowed_list:\t0\n"
MEMORY = "MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\n"


def result(*, stopped: str | None = None) -> AgentResult:
    """Return the result of six seconds on one CPU."""
    measured = record([MEASURED]).result
    return AgentResult(
        **{
            name: getattr(measured, name)
            for name in AgentResult.__slots__
            if name not in ("type", "stopped", "housekeeping_cpu")
        },
        stopped=stopped,
        housekeeping_cpu=1,
    )


def traced_result(tracing: Tracing) -> AgentResult:
    """Return the same of a run whose kernel recorded its events."""
    return replace(result(), tracing=tracing)


def measuring(*, stopped: str | None = None) -> Script:
    """Return what an agent says that measures for six seconds."""
    ticks: list[Sequence[Line]] = [
        [Tick(n * SECOND_NS, (TickCpu(0, n * 10, 0, 7_000),), {}, {})]
        for n in range(1, 7)
    ]
    return [[HELLO], *ticks, [result(stopped=stopped)]]


def loading(*, busy: bool = True) -> Script:
    """Return what a guard says whose load runs until it is asked to stop."""
    start_ns = MEASURED.start_ns
    ticks: list[Sequence[Line]] = [
        [LoadTick(start_ns + n * SECOND_NS, 3, n * SECOND_NS if busy else 0)]
        for n in range(8)
    ]
    return [[LOAD_HELLO], *ticks, *([[]] * 100)]


@dataclass(slots=True)
class ToldReader:
    """Notes in a log that facts are read, or what an audit needs."""

    reader: Reader
    log: list[str] = field(default_factory=list)

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        """Read, and note it once for all files of a time."""
        if len(paths) > 10:
            audited = "/proc/irq/*/smp_affinity_list" in paths
            self.log.append("audit" if audited else "facts")
        return self.reader.read_many(paths)


def target(
    scripts: Mapping[str, Script] | None = None,
    *,
    on_stop: Mapping[str, Script] | None = None,
    programs: Mapping[str, str] | None = None,
    files: Mapping[str, str | bytes] | None = None,
) -> FakeTarget:
    """Return a guest of one CPU where all goes well, but for what is given."""
    machine = {**GUEST, "/proc/self/status": STATUS, "/proc/meminfo": MEMORY}
    machine["/sys/devices/system/cpu/online"] = "0\n"
    reader = ToldReader(reader_of({**machine, **(files or {})}))
    well: Mapping[str, Script] = {
        "measure": measuring(),
        "load": loading(),
        "disk": [[A_DISK]],
    }
    stopped: Mapping[str, Script] = {
        "load": [[ASKED]],
        "measure": [[result(stopped="signal")]],
    }
    made = FakeTarget(
        {**well, **(scripts or {})},
        on_stop={**stopped, **(on_stop or {})},
        reader=reader,
        programs={"stress-ng": STRESS_NG} if programs is None else programs,
    )
    reader.log = made.log
    return made
