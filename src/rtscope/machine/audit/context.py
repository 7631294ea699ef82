"""
What check functions get to see: a machine as it was read once, and for whom.

A locked down kernel refuses to be changed or read out, even by root. Each mode refuses
what the weaker one does too (`enum lockdown_reason` of include/linux/security.h).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rtscope.host.errors import UsageError
from rtscope.host.units import is_whole
from rtscope.machine.audit.model import (
    CheckKind,
    CheckOutcome,
    LockdownMode,
    Profile,
    Sighting,
)
from rtscope.machine.audit.unit import Unit
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.facts import cpus_in
from rtscope.machine.kernelconfig import KernelConfig
from rtscope.machine.kernelidentity import CMDLINE, KernelIdentity, boot_values
from rtscope.machine.snapshot import MachineSnapshot

# --- what a check function answers ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What a check function found."""

    outcome: CheckOutcome
    message: str
    """One sentence without its full stop: the finding, or the reason for unknown."""
    evidence: tuple[Sighting, ...] = ()
    is_note: bool = False
    """Whether a failure is worth knowing and no fault, whatever its row says."""


def passed(message: str, *evidence: Sighting) -> Answer:
    """Answer: as expected."""
    return Answer(CheckOutcome.PASS, message, evidence)


def failed(message: str, *evidence: Sighting) -> Answer:
    """Answer: not as expected."""
    return Answer(CheckOutcome.FAIL, message, evidence)


def noted(message: str, *evidence: Sighting) -> Answer:
    """Answer: not as expected, and here no fault."""
    return Answer(CheckOutcome.FAIL, message, evidence, is_note=True)


def unknown(message: str, *evidence: Sighting) -> Answer:
    """Answer: unknown, with the reason."""
    return Answer(CheckOutcome.UNKNOWN, message, evidence)


def not_applicable(message: str, *evidence: Sighting) -> Answer:
    """Answer: there is nothing here that the check is about."""
    return Answer(CheckOutcome.NOT_APPLICABLE, message, evidence)


# --- what check functions get to see: a machine as it was read once, and for whom -----

INTERRUPTS = "/proc/interrupts"
STAT = "/proc/stat"
FREQUENCIES = "/sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq"
WATCHED = (INTERRUPTS, STAT, FREQUENCIES)
"""The files that are read twice."""
NOT_WATCHED = "no observation window (--observe 0, or a capture without one)"

DMA_LATENCY = "/dev/cpu_dma_latency"
NO_REQUEST_US = 2_000_000_000
"""PM_QOS_CPU_LATENCY_DEFAULT_VALUE (include/linux/pm_qos.h)."""


def is_requested(latency_us: int | None) -> bool:
    """Whether some program asks for short wake-up times; not if that is unknown."""
    return latency_us is not None and latency_us < NO_REQUEST_US


@dataclass(frozen=True, slots=True)
class Expected:
    """The kernel that a machine is meant to run, as far as its image shows it."""

    name: str
    """What the user called it."""
    banner: str | None = None
    """As in /proc/version."""
    build_id: str | None = None
    """Hexadecimal; from the linker, over the whole kernel."""
    config_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """How the kernel answered a child that requested a real-time policy."""

    asked: str
    error: int | None
    """errno; None: it was granted."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """What was tried or watched, in addition to the files."""

    window_ns: int = 0
    """Between the two readings; 0: nothing was watched."""
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    """The files that were read twice, by path."""
    kernel_log: str | None = None
    """As `dmesg` prints it."""
    why_no_log: str = "the kernel log was not read"
    trial: Trial | None = None
    clock_cost_ns: int | None = None
    """Median of one reading of CLOCK_MONOTONIC, with what Python adds to it."""
    clock_resolution_ns: int | None = None
    dma_latency_us: int | None = None
    """Of /dev/cpu_dma_latency: the wake-up time that programs request."""
    dma_holders: Mapping[str, str] = field(default_factory=dict)
    """Names of the processes that have it open, by descriptor, as far as seen."""
    why_no_dma_latency: str = (
        "not read: only on this machine, or by the agent of a board"
    )
    smi_before: Mapping[str, int] = field(default_factory=dict)
    smi_after: Mapping[str, int] = field(default_factory=dict)
    """System management interrupts since the reset of each CPU, by register file."""
    why_no_smi: str = "not read: only on this machine"
    coalescing: Mapping[str, Mapping[str, int]] | None = None
    """How network interfaces that are up delay interrupts; see `coalescing`."""
    why_no_coalescing: str = "not asked: only on this machine"


@dataclass(frozen=True, slots=True)
class AuditContext:
    """What was read, and for whom it is checked."""

    machine: MachineSnapshot
    profile: Profile = Profile.CONTROL
    cpus: tuple[int, ...] | None = None
    """The CPUs that real-time threads run on; None: all of them."""
    arch: str | None = None
    """As `uname -m` prints it; None if unknown."""
    expected: Expected | None = None
    alone: bool = False
    """There is a configuration and no machine."""
    observed: Observed = field(default_factory=Observed)
    """What was tried or watched."""
    unit: Unit | None = None
    """The unit of systemd that is checked."""

    @property
    def kernel(self) -> KernelIdentity:
        """The kernel that runs, or the one that is looked at."""
        return self.machine.kernel

    @property
    def config(self) -> KernelConfig | None:
        """The kernel's configuration."""
        return self.machine.kernel.config

    @property
    def only_requested(self) -> bool:
        """Whether there is no more than a fragment: it asks, and a build decides."""
        return bool(self.kernel.requested)

    def text(self, path: str) -> str | None:
        """See `MachineSnapshot`."""
        return self.machine.text(path)

    def words(self, path: str) -> str:
        """Return the text of a file; empty if it has none."""
        return self.text(path) or ""

    def matching(self, pattern: str) -> Mapping[str, str]:
        """See `MachineSnapshot`."""
        return self.machine.matching(pattern)

    def refusals(self, *patterns: str) -> tuple[Sighting, ...]:
        """Return the files of patterns that are there and may not be read."""
        return tuple(
            Sighting(path, f"cannot be read: {reason}")
            for pattern in patterns
            for path, reason in self.machine.refusals(pattern).items()
        )


CheckFunction = Callable[[CheckKind, AuditContext], Answer]
"""How a check is answered: from its row of `checks/*.toml`, and what was read."""

LOCKDOWN = "/sys/kernel/security/lockdown"

WITNESSES = {
    "/sys/": "/sys/devices/system/cpu/online",
    "/proc/": "/proc/sys/kernel/osrelease",
}
"""What every kernel has there: without it a file system is not mounted, or hidden."""


def absent(kind: CheckKind, context: AuditContext) -> Answer:
    """Answer for a machine that has none of the files of a check."""
    mode = context.words(LOCKDOWN)
    if f"[{kind.args.get('hidden_by')}]" in mode:
        return unknown(
            f"kernel lockdown hides {kind.paths[0]}", Sighting(LOCKDOWN, mode)
        )
    config = context.config
    for name in kind.args.get("needs", ()):
        if config is not None and config.lacks(name):
            return not_applicable(f"{config.source}: CONFIG_{name} is not set")
    why = str(kind.args.get("absent", ""))
    unseen = _unseen(context, kind.paths[0])
    if why and unseen:
        return unknown(f"no such file: {kind.paths[0]}, and no {unseen} either")
    if why:
        return not_applicable(why)
    maybe = kind.args.get("missing", "")
    paths = ", ".join(path for path in kind.paths if path != LOCKDOWN)
    return unknown(f"no such file: {paths}" + (f"; {maybe}" if maybe else ""))


def _unseen(context: AuditContext, path: str) -> str:
    """Return a file that every kernel has there and that is not visible; or empty."""
    if context.matching(path):
        return ""
    for folder, witness in WITNESSES.items():
        if path.startswith(folder):
            return "" if context.text(witness) is not None else witness
    return ""


def not_read(kind: CheckKind, context: AuditContext, *paths: str) -> Answer:
    """Answer for files that have no text: they were refused, or are not there."""
    refused = context.refusals(*paths)
    return unknown("not readable", *refused) if refused else absent(kind, context)


ONLINE = "/sys/devices/system/cpu/online"
ISOLATED = "/sys/devices/system/cpu/isolated"
PARTITIONS = "/sys/fs/cgroup/cpuset.cpus.isolated"
"""CPUs of isolated cpuset partitions (cgroup-v2.rst)."""

CPU_SETS = (ONLINE, ISOLATED, PARTITIONS)
"""Files that list the CPUs and those that are set apart."""

NOT_SET_APART = "no CPU that is online is set apart; name them with --cpus"

Cpus = frozenset[int]


def listed(text: str) -> Cpus | None:
    """Return the CPUs of the kernel's list; None if it is malformed."""
    # sysfs prints "(null)" for a mask that was never allocated.
    return frozenset() if text.strip() in ("", "(null)") else cpus_in(text)


_MASK = re.compile(r"[0-9a-fA-F]+(?:,[0-9a-fA-F]+)*")


def masked(text: str) -> Cpus | None:
    """Return the CPUs of the kernel's mask, `ff,ffffffff`; None if it is malformed."""
    # int() takes signs, underscores and 0x as well.
    if not _MASK.fullmatch(text.strip()):
        return None
    bits = int(text.strip().replace(",", ""), 16)
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def online(context: AuditContext) -> Cpus | None:
    """Return the CPUs that the kernel schedules on; None if unknown."""
    text = context.text(ONLINE)
    return (listed(text) or None) if text is not None else None


def isolated(context: AuditContext) -> Cpus:
    """Return the CPUs that the load balancing leaves alone, as far as visible."""
    texts = (context.text(path) for path in (ISOLATED, PARTITIONS))
    return frozenset().union(*(listed(text) or () for text in texts if text))


def named(context: AuditContext) -> Cpus:
    """Return the CPUs that are meant for real-time threads, also those offline."""
    return frozenset(context.cpus) if context.cpus is not None else isolated(context)


def set_apart(context: AuditContext) -> Cpus | None:
    """Return the CPUs for real-time threads: --cpus, else those that are isolated."""
    there = online(context)
    # Nothing runs on an offline CPU; the check `offline_cpus` reports it.
    cpus = named(context) if there is None else named(context) & there
    return cpus or None


def cpu_of(path: str) -> int | None:
    """Return the number of the directory `cpuN` in a path."""
    for part in path.split("/"):
        if part.startswith("cpu") and is_whole(part[3:]):
            return int(part[3:])
    return None


def refuse_absent(context: AuditContext) -> None:
    """Raise UsageError if --cpus names one that is not online."""
    there = online(context)
    if context.cpus is None or there is None:
        return
    absent = set(context.cpus) - there
    if absent:
        raise UsageError(
            f"--cpus: CPU {format_cpulist(absent)} is not online; this machine has "
            f"{format_cpulist(there)}"
        )


# Which mode of kernel lockdown is in force, as far as a file, words or the log show it.

LOG = "kernel log"

_LOCKED = re.compile(r"Kernel is locked down from|Lockdown: ")
# What only the tighter mode refuses (lockdown_reasons of security/security.c).
_CONFIDENTIAL = re.compile(r"Lockdown: .*(?:tracefs|/proc/kcore|kprobes|of perf) ")


@dataclass(frozen=True, slots=True)
class Lockdown:
    """The mode that is in force, and what shows it."""

    mode: LockdownMode
    message: str
    evidence: Sighting


def lockdown_of(context: AuditContext) -> Lockdown | None:
    """Return the mode of lockdown; None if nothing shows one, which proves nothing."""
    text = context.text(LOCKDOWN)
    if text is None:
        return _without_securityfs(context)
    for mode in LockdownMode:
        if f"[{mode}]" in text:
            return Lockdown(mode, text, Sighting(LOCKDOWN, text))
    return None


def _without_securityfs(context: AuditContext) -> Lockdown | None:
    """Take the tightest mode that is seen: the kernel never loosens it."""
    witnesses = (_by_command_line(context), _by_config(context), _by_log(context))
    seen = [lockdown for lockdown in witnesses if lockdown is not None]
    return max(seen, key=lambda lockdown: lockdown.mode.tightness, default=None)


def _by_command_line(context: AuditContext) -> Lockdown | None:
    modes = boot_values(context.words(CMDLINE), "lockdown")
    for mode in (LockdownMode.CONFIDENTIALITY, LockdownMode.INTEGRITY):
        if mode.value in modes:
            return Lockdown(mode, mode.value, Sighting(CMDLINE, f"lockdown={mode}"))
    return None


def _by_config(context: AuditContext) -> Lockdown | None:
    config = context.config
    for mode in (LockdownMode.CONFIDENTIALITY, LockdownMode.INTEGRITY):
        name = f"LOCK_DOWN_KERNEL_FORCE_{mode.name}"
        if config is not None and config.is_on(name):
            return Lockdown(mode, "forced", Sighting(config.source, f"CONFIG_{name}=y"))
    return None


def _by_log(context: AuditContext) -> Lockdown | None:
    """Return the weakest mode in which the kernel says what it said."""
    lines = (context.observed.kernel_log or "").splitlines()
    said = [line for line in lines if _LOCKED.search(line)]
    if not said:
        return None
    tight = any(_CONFIDENTIAL.search(line) for line in said)
    mode = LockdownMode.CONFIDENTIALITY if tight else LockdownMode.INTEGRITY
    return Lockdown(mode, "on, by the kernel log", Sighting(LOG, said[0][:200]))
