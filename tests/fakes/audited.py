"""Machines to be audited: what stands in their files, and what is seen of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fakes.trees import Files, reader_of
from rtscope.machine.audit.context import Observed
from rtscope.machine.audit.examine import catalogue, examine, read_context
from rtscope.machine.audit.model import Check, CheckOutcome, Profile, Sighting
from rtscope.machine.reader import Content, Denied

RELEASE = "/proc/sys/kernel/osrelease"
ARCH = "/proc/sys/kernel/arch"
SELF = "/proc/self"

BOOTED = "[    0.000000] Linux version 6.12.1\n"

LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max locked memory         {memlock}           unlimited            bytes
Max realtime priority     {rtprio}                    99
Max realtime timeout      {rttime}            unlimited            us
"""


def limits(
    *, memlock: str = "unlimited", rtprio: str = "0", rttime: str = "unlimited"
) -> Files:
    """The limits of a user without capabilities."""
    text = LIMITS.format(memlock=memlock, rtprio=rtprio, rttime=rttime)
    return {
        f"{SELF}/limits": text,
        f"{SELF}/status": "CapEff:\t0000000000000000\n",
    }


def interrupts(device: int, tick: int = 0, call: int = 0) -> str:
    """/proc/interrupts of two CPUs; the counts are those of CPU 1."""
    return (
        "           CPU0       CPU1\n"
        f" 24:          5  {device}   IO-APIC   5-edge      eth0\n"
        f"LOC:        900  {tick}   Local timer interrupts\n"
        f"CAL:        900  {call}   Function call interrupts\n"
        "ERR:          0\n"
    )


def status(name: str, cpus: str, *, memory: bool = True) -> str:
    """/proc/PID/status, as far as it is read; kernel threads have no memory."""
    size = "VmSize:\t    9 kB\n" if memory else ""
    return f"Name:\t{name}\nPid:\t1\n{size}Cpus_allowed_list:\t{cpus}\n"


def watched(path: str, before: str, after: str) -> Observed:
    """What two looks gave, a second apart."""
    return Observed(window_ns=10**9, before={path: before}, after={path: after})


def seen(device: int = 0, tick: int = 0, call: int = 0) -> Observed:
    """What came on CPU 1 within a second."""
    return watched(
        "/proc/interrupts",
        interrupts(7, 7, 7),
        interrupts(7 + device, 7 + tick, 7 + call),
    )


def thread(name: str, policy: int = 0, priority: int = 0, flags: int = 0) -> str:
    """/proc/PID/task/TID/stat; PF_KTHREAD is among the flags of a kernel thread."""
    fields = ["0"] * 50
    fields[5:7] = ["-1", str(flags)]
    fields[37:39] = [str(priority), str(policy)]
    return f"9 ({name}) S {' '.join(fields[1:])}\n"


def threads(*stats: str) -> Files:
    """The threads of a machine, each a process of its own."""
    return {f"/proc/{n}/task/{n}/stat": text for n, text in enumerate(stats, 2)}


KERNEL = 0x00200000
KTHREADD = thread("kthreadd", flags=KERNEL)
IRQ = thread("irq/24-eth0", 1, 50, KERNEL)

ZONE = "/sys/class/thermal/thermal_zone0"


def zone(temperature: str, limit: str = "95000") -> Files:
    """The temperature of a processor, with a fan that starts before the limit."""
    return {
        f"{ZONE}/type": "cpu-thermal",
        f"{ZONE}/temp": temperature,
        f"{ZONE}/trip_point_0_type": "active",
        f"{ZONE}/trip_point_0_temp": "50000",
        f"{ZONE}/trip_point_1_type": "passive",
        f"{ZONE}/trip_point_1_temp": limit,
        f"{ZONE}/trip_point_2_type": "critical",
        f"{ZONE}/trip_point_2_temp": "0",
    }


def smis(before: int, after: int) -> Observed:
    """The count of one CPU, a second apart."""
    msr = "/dev/cpu/0/msr"
    return Observed(window_ns=10**9, smi_before={msr: before}, smi_after={msr: after})


def stat(steal: int) -> str:
    """The first line of /proc/stat."""
    return f"cpu  1 2 3 4 5 6 7 {steal} 0 0\n"


@dataclass(frozen=True, slots=True)
class Case:
    """A machine, and for whom it is judged."""

    files: Files = field(default_factory=dict)
    also: Mapping[str, Content] = field(default_factory=dict)
    observed: Observed = field(default_factory=Observed)
    cpus: tuple[int, ...] | None = (1,)
    profile: Profile = Profile.CONTROL
    release: str = "6.12.1"
    arch: str = "x86_64"


def judged(name: str, case: Case) -> Check:
    """Return what one check says of a machine."""
    kinds = [catalogue()[name]]
    here = {RELEASE: case.release, ARCH: case.arch}
    context = read_context(
        reader_of({**here, **case.files}, also=case.also),
        kinds,
        profile=case.profile,
        cpus=case.cpus,
        observed=case.observed,
    )
    return in_words(examine(context, kinds)[0])


def in_words(check: Check) -> Check:
    """Return a check whose answer and evidence are words, whatever they say."""
    assert isinstance(check.message, str)
    assert check.message
    for sighting in check.evidence:
        assert isinstance(sighting, Sighting)
        assert isinstance(sighting.path, str)
        assert sighting.path
        assert isinstance(sighting.value, str)
    return check


# --- an answer, for tests to compare ------------------------------------------------

FAIL, PASS = CheckOutcome.FAIL, CheckOutcome.PASS
NONE, UNKNOWN = CheckOutcome.NOT_APPLICABLE, CheckOutcome.UNKNOWN
REFUSED = Denied("Permission denied")
NO = "cannot be read: Permission denied"
NOT_APART = "no CPU that is online is set apart; name them with --cpus"
HEAD = "# Automatically generated file; DO NOT EDIT.\n"
"""The first line of a whole configuration of a kernel."""

Wanted = tuple[CheckOutcome, str]
Shown = list[tuple[str, str]]


def shown_of(check: Check) -> Shown:
    """Return the evidence of a check."""
    return [(seen.path, seen.value) for seen in check.evidence]


def answer(name: str, case: Case) -> tuple[CheckOutcome, str, Shown]:
    """Return the answer of a check, and its evidence."""
    found = judged(name, case)
    return found.outcome, found.message, shown_of(found)


def answer_by_path(name: str, case: Case) -> tuple[CheckOutcome, str, dict[str, str]]:
    """Return the answer of a check, and its evidence by path."""
    outcome, message, shown = answer(name, case)
    return outcome, message, dict(shown)
