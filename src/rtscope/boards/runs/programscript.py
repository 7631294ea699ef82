"""
Write the script for a board's shell that runs a program of the user's. Pure.

The order is that of a run: settling, facts, load on; then each start of the program
with its warm-up and its duration; load off. Nothing in the guest watches the program:
its output goes to files in memory, and what is read of it is read when the time that
is judged is over, or in its warm-up.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from rtscope.boards.events import needs_of
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.program import ROOT, Program
from rtscope.boards.runs.script import (
    LOOPBACK,
    MEMORY_GROUPS,
    MODULES_BEFORE,
    PHASE_STEP_NS,
    SCRATCH,
    SYMBOLS_OF_NEW_MODULES,
    agent_line,
    batches,
    lines_before,
    modules_for,
)
from rtscope.host.units import NS_PER_MS, NS_PER_S
from rtscope.machine.tasks.listing import PATHS
from rtscope.machine.tasks.statistics import PATTERN
from rtscope.measure.campaign.model import BOARD_SETTLE_NS
from rtscope.measure.loads import LoadCommand, get_load
from rtscope.measure.plan import load_args

TICK_NS = 4_000_000
"""Of kernels with 250 ticks a second, and a multiple of that of faster ones."""

LEAD_NS = NS_PER_S
"""A load has as long to make its workers before the program begins."""

SETTLE_NS = BOARD_SETTLE_NS
"""The idle time after a boot, unless something else is asked for."""

STREAM_BYTES = 32 << 20
"""Room for the output of a start: what is written beyond it is refused (ENOSPC)."""

KEPT_BYTES = 512 << 10
"""Of the begin, and of the end, of an output that is larger than both."""

TOOLS = ".rtscope"
"""Where the program's root directory has the tools of the board."""

ABOUT_PROCESS = (*("maps", "status", "limits", "smaps", "environ", "fdinfo/*"),)
ABOUT_BOARD = (*PATHS, PATTERN)
"""What is read at the end, if that is asked for."""

LOAD, LOAD_LOG, FACTS = "load.jsonl", "load.log", "facts.jsonl"
GUARD, MAPS, STATS = "guard-{}.jsonl", "maps-{}.jsonl", "stats-{}.jsonl"
THREADS, ABOUT = "threads-{}.jsonl", "about-{}.jsonl"
GUARD_LOG, BEGUN, ENDED, ASKED = "guard-{}.log", "begun-{}", "ended-{}", "asked-{}"
PID = "pid-{}"
STDOUT, STDERR = "stdout-{}", "stderr-{}"
TAIL, SIZE = "{}.tail", "{}.size"
RUN_ENDED = "run-ended"

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """A program for a board, and how to run it."""

    program: Program
    duration_ns: int
    """The longest that a start runs after its warm-up."""
    warmup_ns: int = 0
    settle_ns: int = 0
    """Before the first start, and before the load."""
    seed: int = 1
    phases_ns: tuple[int, ...] = (0,)
    """One for each start: how much later it begins, modulo a tick of the kernel."""
    values: tuple[Mapping[str, str], ...] = ()
    """What {NAME} stands for in command and environment, for each start; none: all
    starts have the same."""
    environment: tuple[tuple[str, str], ...] = ()
    stdin: bytes | None = None
    directory: str = "/"
    user: tuple[int, int] = (0, 0)
    """Its uid and gid."""
    policy: tuple[str, int] | None = None
    """Real-time policy and priority that it begins with; None: it is ordinary."""
    cpus: tuple[int, ...] | None = None
    """CPUs that it may use; None: all."""
    describes: bool = False
    """Whether all threads of the board are listed when its time is over, and read what
    /proc says of its process."""
    load: str = "idle"
    load_command: LoadCommand = field(default_factory=lambda: LoadCommand((), None, ()))

    @property
    def starts_ns(self) -> int:
        """The virtual time of all starts, but for what ends them."""
        return len(self.phases_ns) * (TICK_NS + self.warmup_ns + self.duration_ns)

    @property
    def lead_ns(self) -> int:
        """How long the load runs before the first start."""
        return LEAD_NS if self.load_command.argv else 0


def spread_phases(starts: int) -> tuple[int, ...]:
    """Return the phases of so many starts: spread over a tick of the kernel."""
    return tuple(number * TICK_NS // starts for number in range(starts))


def job_of_program(
    job: ProgramJob,
    *,
    facts: Sequence[str],
    event_modules: Mapping[str, bytes] = MappingProxyType({}),
) -> Job:
    """
    Return the job of a board; the paths `facts` are read before the first start.

    `event_modules` are those that the kernel has for events, by their names.
    """
    modules = modules_for(needs_of(get_load(job.load).event), event_modules)
    files = {"end": _end(job).encode(), **modules}
    for number, values in enumerate(job.values or ({},), 1):
        files[_begin_name(job, number)] = _begin(job, values).encode()
    if job.stdin is not None:
        files["stdin"] = job.stdin
    return Job(
        script_of_program(job, facts=facts, modules=modules),
        disk=bool(job.load_command.argv),
        files=files,
        tree=job.program.tree,
    )


def script_of_program(
    job: ProgramJob, *, facts: Sequence[str], modules: Collection[str] = ()
) -> str:
    """Return the script, which inserts the modules; see `job_of_program`."""
    load = job.load_command
    lines = [
        LOOPBACK,
        *_MOUNTS,
        *(f"{agent_line('read', '--', *b)} >>/out/{FACTS}" for b in batches(facts)),
        *([_sleep(job.settle_ns)] if job.settle_ns else []),
        *_load_lines(job, modules),
    ]
    for number, phase_ns in enumerate(job.phases_ns, 1):
        lines += _start_lines(job, number, phase_ns)
    lines.append(f"cat /proc/uptime >/out/{RUN_ENDED}")
    if modules:
        lines.append(SYMBOLS_OF_NEW_MODULES)
    if load.argv:
        lines += ["kill $load 2>/dev/null", "wait $load"]
    return "\n".join([*lines, "true"]) + "\n"


def _load_lines(job: ProgramJob, modules: Collection[str]) -> Sequence[str]:
    load = job.load_command
    if not load.argv:
        return ()
    guard = agent_line(
        *load_args(
            load,
            duration_ns=job.starts_ns,
            log=f"/out/{LOAD_LOG}",
            scratch_dir=SCRATCH,
        )
    )
    return (
        *((MODULES_BEFORE,) if modules else ()),
        *lines_before(needs_of(get_load(job.load).event), modules),
        *((MEMORY_GROUPS,) if load.memory_limit_bytes else ()),
        f"{guard} </dev/null >/out/{LOAD} &",
        "load=$!",
        _sleep(job.lead_ns),
    )


# What a program expects in its root directory. /dev/shm is that of the board, where the
# library of the tasks keeps its statistics.
_MOUNTS = (
    f"cd /{ROOT} && mkdir -p proc sys dev tmp run {TOOLS} /streams && cd /tmp",
    f"mount -t proc proc /{ROOT}/proc",
    f"mount -t sysfs sysfs /{ROOT}/sys",
    f"mount -t devtmpfs dev /{ROOT}/dev",
    f"mkdir -p /{ROOT}/dev/pts",
    f"mount -t devpts devpts /{ROOT}/dev/pts 2>/dev/null",
    f"mount -o bind /dev/shm /{ROOT}/dev/shm",
    f"mount -o bind /bin /{ROOT}/{TOOLS}",
    f"[ -e /{ROOT}/dev/fd ] || ln -s /proc/self/fd /{ROOT}/dev/fd",
    "chmod 1777 /dev/shm",
)


_HIGHEST = "rtscope-agent start --policy fifo --priority 99 --"


def _start_lines(job: ProgramJob, number: int, phase_ns: int) -> Sequence[str]:
    """Return the lines of one start: a new process, with nothing in its /tmp."""
    begin_ns = (job.seed * PHASE_STEP_NS + phase_ns) % TICK_NS
    guard = agent_line(
        *("load", "--log", f"/out/{GUARD_LOG.format(number)}", "--"),
        *("busybox", "sh", f"/job/{_begin_name(job, number)}", str(number)),
    )
    return (
        f"for at in tmp run; do mount -t tmpfs $at /{ROOT}/$at; done",
        f"mount -t tmpfs -o size={STREAM_BYTES} streams /streams",
        f"chmod 1777 /{ROOT}/tmp",
        ": >/streams/stdout; : >/streams/stderr",
        f"{_HIGHEST} busybox sh /job/end {number} {int(job.describes)} &",
        "ender=$!",
        f"cat /proc/uptime >/out/{BEGUN.format(number)}",
        f"RTSCOPE_PROGRAM={begin_ns} {guard} </dev/null >/out/{GUARD.format(number)}",
        "kill $ender 2>/dev/null",
        f"cat /proc/uptime >/out/{ENDED.format(number)}",
        *_kept(STDOUT.format(number), "/streams/stdout"),
        *_kept(STDERR.format(number), "/streams/stderr"),
        f"umount /streams /{ROOT}/tmp /{ROOT}/run",
    )


def _end(job: ProgramJob) -> str:
    """
    Return the script that ends a start when its time is over.

    It only sleeps until then, with the highest priority: a program whose real-time
    threads never sleep leaves no time to anything of a lower one, nor to its timers.
    """
    early_ns = job.warmup_ns // 2
    maps = f'>>"/out/{MAPS.format("$1")}"'
    lines = (
        f'until [ -s "/out/{PID.format("$1")}" ]; do sleep 0.001; done',
        f'read -r pid <"/out/{PID.format("$1")}"',
        *((_sleep(early_ns),) if early_ns else ()),
        *((f'rtscope-agent read -- "/proc/$pid/maps" {maps}',) if early_ns else ()),
        _sleep(job.warmup_ns - early_ns + job.duration_ns),
        f': >"/out/{ASKED.format("$1")}"',
        f"rtscope-agent read -- '/proc/*/maps' {maps}",
        f"rtscope-agent read -- '/proc/*/stat' >\"/out/{STATS.format('$1')}\"",
        *_about_lines(),
        'kill -KILL "-$pid"',
    )
    return "\n".join(lines) + "\n"


def _about_lines() -> Sequence[str]:
    """
    Return the lines that list all threads, and read what is known of the process.

    Every script has them, so that a boot with them is the same until then.
    """
    of_process = " ".join(f'"/proc/$pid/{name}"' for name in ABOUT_PROCESS)
    of_board = shlex.join(ABOUT_BOARD)
    return (
        'if [ "$2" = 1 ]; then',
        f'rtscope-agent tasks >"/out/{THREADS.format("$1")}"',
        f'rtscope-agent read -- {of_process} {of_board} >"/out/{ABOUT.format("$1")}"',
        "fi",
    )


def _kept(name: str, stream: str) -> Sequence[str]:
    """Return the lines that keep the begin and the end of an output, and its size."""
    return (
        f"wc -c <{stream} >/out/{SIZE.format(name)}",
        f"head -c {KEPT_BYTES} {stream} >/out/{name}",
        f"tail -c {KEPT_BYTES} {stream} >/out/{TAIL.format(name)}",
    )


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the value of each known name in place of {NAME}."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _begin_name(job: ProgramJob, number: int) -> str:
    """Return the name of the script that becomes the program, of one start."""
    return f"begin-{number}" if job.values else "begin"


def _begin(job: ProgramJob, values: Mapping[str, str]) -> str:
    """
    Return the script that becomes the program.

    A thread may take any real-time priority and lock memory, whoever its user is.
    """
    words = ["busybox", "chroot", f"/{ROOT}"]
    if job.cpus is not None:
        mask = sum(1 << cpu for cpu in job.cpus)
        words = ["busybox", "taskset", f"{mask:#x}", *words]
    words += [f"/{TOOLS}/busybox", "env", "-i"]
    words += [filled(one, values) for one in _environment(job)]
    words += [f"/{TOOLS}/busybox", "sh", "-c", 'cd "$0" && exec "$@"', job.directory]
    begins_with = _begins_with(job)
    if begins_with:
        words += [f"/{TOOLS}/rtscope-agent", "start", *begins_with, "--"]
    words += [filled(one, values) for one in job.program.command]
    source = "/dev/null" if job.stdin is None else "/job/stdin"
    return (
        f'echo $$ >"/out/{PID.format("$1")}"\n'
        "ulimit -r 99; ulimit -l unlimited; ulimit -c 0\n"
        f"exec {shlex.join(words)} <{source} >>/streams/stdout 2>>/streams/stderr\n"
    )


def _begins_with(job: ProgramJob) -> Sequence[str]:
    """Return the agent's options for what the program has from its begin."""
    words = []
    if job.policy is not None:
        words += ["--policy", job.policy[0], "--priority", str(job.policy[1])]
    if job.user != (0, 0):
        words += ["--user", f"{job.user[0]}:{job.user[1]}"]
    return words


def _environment(job: ProgramJob) -> Sequence[str]:
    given = dict(job.environment)
    places = ":".join(filter(None, [given.get("LD_LIBRARY_PATH"), *_places(job)]))
    whole = {"PATH": _PATH, "HOME": "/", "LC_ALL": "C", **given}
    if places:
        whole["LD_LIBRARY_PATH"] = places
    return [f"{name}={value}" for name, value in whole.items()]


def _places(job: ProgramJob) -> Sequence[str]:
    return job.program.libraries


def _sleep(time_ns: int) -> str:
    return f"sleep {time_ns / NS_PER_S:.9f}"


LONGEST_END_NS = 20 * NS_PER_S + 500 * NS_PER_MS
"""To read the maps and end a program, beside any load."""
