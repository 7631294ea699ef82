"""
Inspect a virtual board from inside: its files, its log, a trial, settings for it.

This takes one boot: the board's own agent reads files, watches counters and tries a
policy. Its answers are sent as results, and checked on this machine.

The inspection is a boot of its own, so that reading the files costs the measured boot
nothing. Equal boards show equal files: what is chosen depends on declared inputs alone.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import Booted, boot, in_steps
from rtscope.boards.runs.script import MOUNT_DEBUGFS, agent_line, batches
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.contract import FileLine, sha256_of_json
from rtscope.host.errors import BoardError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_S
from rtscope.machine.audit.context import WATCHED, Observed
from rtscope.machine.audit.examine import catalogue, paths
from rtscope.machine.audit.model import CheckKind
from rtscope.machine.audit.observe import TRIAL_ARGS, TRIAL_NS, latency_of, read_trial
from rtscope.machine.reader import Content, answer_from, text_of
from rtscope.machine.settings.remedies import TuningPlan, planned_for, tunable
from rtscope.machine.target.agentreader import content_of
from rtscope.measure.settings import refuse_missing

# --- files that the agent of a board has read, as the files of a machine --------------


@dataclass(frozen=True, slots=True)
class GuestFiles:
    """A Reader over the files that the board's agent has read."""

    files: Mapping[str, Content]

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        """Return those files; others are missing."""
        contents: dict[str, Content] = {}
        for path in paths:
            contents |= answer_from(self.files, path)
        return contents


def files_of(prepared: Prepared, booted: Booted, name: str) -> GuestFiles:
    """Return what the agent of a board has read, and its kernel's configuration."""
    files: dict[str, Content] = {}
    for line in booted.lines(name):
        if isinstance(line, FileLine):
            files[line.path] = content_of(line)
    kernel = prepared.kernel
    if kernel.config is not None and kernel.release is not None:
        files[f"/boot/config-{kernel.release}"] = kernel.config.read_bytes()
    return GuestFiles(files)


# --- inspect a virtual board from inside, for an audit: its files, its log, a trial ---

SEED = 1

# Where tracing, the scheduler's servers and lockdown can be seen; a kernel without one
# of them refuses, and what lies below is then missing.
_MOUNTS = (
    MOUNT_DEBUGFS,
    "mount -t securityfs securityfs /sys/kernel/security 2>/dev/null",
)

_LEVEL = re.compile(r"^<\d+>", re.MULTILINE)
"""As busybox's dmesg writes it before each message."""


@dataclass(frozen=True, slots=True)
class GuestSnapshot:
    """Files and observations from inside a board, for an audit."""

    reader: GuestFiles
    observed: Observed
    status: int
    """Of the script."""


def inspect_guest(
    prepared: Prepared,
    paths: Sequence[str],
    *,
    window_ns: int,
    first: Sequence[str] = (),
    stopped: Callable[[], bool] = lambda: False,
    progress: Progress = lambda _step: None,
) -> GuestSnapshot:
    """
    Boot once, read `paths` (patterns as well), watch for `window_ns`, try a policy.

    The board's shell runs the lines `first` before that. Raises BoardError if the board
    does not boot, or has read nothing.
    """
    booted = boot(
        prepared,
        Job("\n".join(script_of(paths, window_ns, first)) + "\n"),
        seed=SEED,
        timeout=BootTimeout(TRIAL_NS, window_ns),
        stopped=stopped,
        on_progress=in_steps(f"{prepared.kernel.name} boots", progress),
    )
    status = booted.text("status").strip()
    reader = files_of(prepared, booted, "files.jsonl")
    if not status.isdecimal() or not reader.files:
        raise BoardError(
            f"{prepared.board.name}: no file was read in the guest: "
            f"{booted.text('script.log').strip()[-500:] or 'no message'}"
        )
    return GuestSnapshot(reader, _observed(prepared, booted, window_ns), int(status))


def script_of(
    paths: Sequence[str], window_ns: int, first: Sequence[str]
) -> Sequence[str]:
    """Return the lines for the board's shell: `first`, then read, watch and try."""
    watched = agent_line("read", "--", *WATCHED)
    window = (
        f"{watched} >/out/before.jsonl",
        f"sleep {window_ns / NS_PER_S:g}",
        f"{watched} >/out/after.jsonl",
    )
    return (
        *_MOUNTS,
        *first,
        *(
            f"{agent_line('read', '--', *batch)} >>/out/files.jsonl"
            for batch in batches(paths)
        ),
        *(window if window_ns else ()),
        "head -c 4 /dev/cpu_dma_latency >/out/dma_latency 2>/dev/null",
        f"{agent_line(*TRIAL_ARGS)} >/out/measure.jsonl",
        "true",
    )


def _observed(prepared: Prepared, booted: Booted, window_ns: int) -> Observed:
    log = booted.text("kernel.log") if "kernel.log" in booted.files else None
    latency_us = latency_of(booted.files.get("dma_latency", b""))
    return Observed(
        window_ns=window_ns,
        before=_texts(prepared, booted, "before.jsonl"),
        after=_texts(prepared, booted, "after.jsonl"),
        kernel_log=None if log is None else _LEVEL.sub("", log),
        trial=read_trial(booted.lines("measure.jsonl")).trial,
        dma_latency_us=latency_us,
        why_no_dma_latency="the board's kernel has no /dev/cpu_dma_latency",
    )


def _texts(prepared: Prepared, booted: Booted, name: str) -> Mapping[str, str]:
    files = files_of(prepared, booted, name).files
    return {
        path: text
        for path in WATCHED
        if (text := text_of(files.get(path, b""))) is not None and path in files
    }


# Choose the settings of `--tuned` for a virtual board; each kernel is inspected once.


@dataclass(slots=True)
class GuestInspections:
    """The files of boards, each of which boots once for them."""

    progress: Progress
    known: dict[str, GuestFiles] = field(default_factory=dict)
    """By kernel, board and kernel parameters."""

    def files(self, prepared: Prepared) -> GuestFiles:
        """Return the files that any remedy asks for; BoardError if it does not boot."""
        board = prepared.board
        key = sha256_of_json([prepared.kernel.digest, board.name, list(board.append)])
        if key not in self.known:
            kinds = [*tunable(), catalogue()["irqbalance"]]
            settings = [one.file for kind in kinds for one in kind.apply]
            wanted = list(dict.fromkeys([*paths(kinds), *settings]))
            seen = inspect_guest(prepared, wanted, window_ns=0, progress=self.progress)
            self.known[key] = seen.reader
        return self.known[key]


_OF_A_THREAD = "irq_priority"
"""The knob that is found by the id of a thread."""


def _without_threads(planned: TuningPlan) -> TuningPlan:
    """Leave out what the next boot, with other thread ids, would do to another."""
    threads = [c for c in planned.changes if c.knob == _OF_A_THREAD]
    why = "a virtual board numbers its threads anew at each boot"
    return replace(
        planned,
        changes=tuple(c for c in planned.changes if c.knob != _OF_A_THREAD),
        impossible={**planned.impossible, **{c.check: why for c in threads}},
    )


def settings_for(
    prepared: Prepared,
    kinds: Sequence[CheckKind],
    inspections: GuestInspections,
    *,
    named: Sequence[str],
    cpus: tuple[int, ...] | None,
) -> TuningPlan:
    """
    Return the changes that remedy these checks on a board.

    Raises TargetError if a check that is `named` cannot be remedied.
    """
    _, found = planned_for(inspections.files(prepared), kinds, cpus=cpus)
    planned = _without_threads(found)
    refuse_missing(prepared.board.name, named, planned.impossible)
    return planned
