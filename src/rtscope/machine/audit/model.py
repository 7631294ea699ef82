"""The words of an audit: what is checked, what came out, the evidence, as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator

from rtscope.machine.kernelidentity import KernelIdentity

SCHEMA = 2
"""Of the JSON document of an audit. 1 had other names, and no program reads it."""


class CheckOutcome(StrEnum):
    """The four answers, the one to look at first first."""

    FAIL = "fail"
    UNKNOWN = "unknown"
    """It could not be seen; a missing file is never a pass."""
    PASS = "pass"
    NOT_APPLICABLE = "not applicable"
    """This machine has nothing of the kind, so nothing of it can be wrong."""


class Severity(IntEnum):
    """What a failure costs; an `info` is worth knowing and no fault."""

    INFO = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    FATAL = 4


class Profile(StrEnum):
    """What the machine is for: advice that is right for one is wrong for another."""

    CONTROL = "control"
    """A periodic control loop."""
    POLLING = "polling"
    """Threads that own isolated CPUs and never sleep."""
    AUDIO = "audio"
    HOST = "host"
    """Runs virtual machines with real-time guests."""
    GUEST = "guest"


class LockdownMode(StrEnum):
    """The modes of kernel lockdown, as /sys/kernel/security/lockdown names them."""

    NONE = "none"
    INTEGRITY = "integrity"
    """Nobody changes the kernel: no write to debugfs or an MSR, no unsigned kexec."""
    CONFIDENTIALITY = "confidentiality"
    """Nobody reads its memory either: no tracing, no kprobes."""

    @property
    def tightness(self) -> int:
        """How much it refuses: each mode refuses what those below it do."""
        return list(LockdownMode).index(self)


class RemedyPart(StrEnum):
    """What is advised to a failed check, by the name of its field."""

    REMEDY = "remedy"
    PERMANENT_REMEDY = "permanent_remedy"


def _severity(word: str) -> Severity:
    return Severity[word.upper()]


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


NamedSeverity = Annotated[Severity, BeforeValidator(_severity)]
"""In the catalogue a word, such as `high`."""

Version = Annotated[tuple[int, int], BeforeValidator(_version)]
"""In the catalogue a text, such as `6.12`."""

CONFIG_FUNCTIONS = frozenset(
    {
        *("config", "config_lines", "preempt_rt", "preemption_model", "rt_groups"),
        "rt_prerequisites",
        *("high_resolution", "tick_mode", "efi_runtime"),
    }
)


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was seen, and where."""

    path: str
    """A path, or what was tried."""
    value: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A file that a remedy writes, as the agent knows it."""

    knob: str
    """A name of the agent's closed list (`agent/journal/knob.c`)."""
    file: str
    """Its path; `*` stands for the number of a CPU, an interrupt, ..., or for the name
    of a network interface."""
    value: str = ""
    values: str = ""
    """Instead of one value for all: a function of `machine/settings/remedies.py`."""
    beside: bool = False
    """Made beside those before it, not instead of them."""


@dataclass(frozen=True, slots=True)
class CheckKind:
    """A row of the catalogue; `docs/how-to/extend-rtscope.md` explains the keys."""

    id: str
    group: str
    title: str
    severity: NamedSeverity
    expected: str
    rationale: str
    source: str
    function: str
    remedy: str
    """What to type now."""
    permanent_remedy: str = ""
    """How to keep it over a boot; empty if the remedy does."""
    refused_by: Mapping[RemedyPart, LockdownMode] = field(default_factory=dict)
    """The mode of kernel lockdown from which on the kernel refuses the remedy."""
    risk: str = ""
    """What the remedy costs."""
    profiles: frozenset[Profile] = frozenset(Profile)
    severity_for: Mapping[Profile, NamedSeverity] = field(default_factory=dict)
    archs: frozenset[str] = frozenset()
    """As `uname -m` says them; empty: all."""
    since: Version | None = None
    until: Version | None = None
    """The Linux versions for which this is true: from `since`, before `until`."""
    files_decide: bool = False
    """Whether its files show it on a kernel before `since` too: a backport."""
    paths: tuple[str, ...] = ()
    verifies: bool = False
    """Whether it belongs to `rtscope kernel verify`."""
    apply: tuple[Setting, ...] = ()
    """What `rtscope audit --apply` writes: the first that this machine has."""
    safe: bool = False
    """Whether `rtscope run --tuned safe` applies it: it costs no safety or memory."""
    observed_by: str = ""
    """The check of a running machine that decides instead, where it can tell."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """What the check function wants to know; each says which keys."""

    @property
    def about_config(self) -> bool:
        """Whether the kernel's configuration alone answers it."""
        return self.function in CONFIG_FUNCTIONS

    def severity_in(self, profile: Profile) -> Severity:
        """Return what a failure costs a machine of this profile."""
        return self.severity_for.get(profile, self.severity)


@dataclass(frozen=True, slots=True)
class Check:
    """A check, answered."""

    kind: CheckKind
    severity: Severity
    outcome: CheckOutcome
    message: str
    evidence: tuple[Sighting, ...]
    lockdown: LockdownMode = LockdownMode.NONE
    """The mode that is in force, as far as it is known."""

    @property
    def remedy(self) -> str:
        """What to type now, or that the kernel refuses it."""
        return self._advice(RemedyPart.REMEDY, self.kind.remedy)

    @property
    def permanent_remedy(self) -> str:
        """How to keep it over a boot, or that the kernel refuses it."""
        return self._advice(RemedyPart.PERMANENT_REMEDY, self.kind.permanent_remedy)

    def is_refused(self, part: RemedyPart) -> bool:
        """Whether kernel lockdown refuses a part of the remedy, even to root."""
        least = self.kind.refused_by.get(part)
        return least is not None and self.lockdown.tightness >= least.tightness

    def _advice(self, part: RemedyPart, text: str) -> str:
        if not self.is_refused(part):
            return text
        return f"kernel lockdown ({self.lockdown}) refuses this, even to root: {text}"

    @property
    def failed(self) -> bool:
        """Whether this is a fault."""
        return self.outcome is CheckOutcome.FAIL


def worst_first(checks: list[Check]) -> list[Check]:
    """Sort: failures first, the gravest first; then what is unknown, then the rest."""
    order = list(CheckOutcome)
    return sorted(checks, key=lambda c: (order.index(c.outcome), -c.severity))


def checks_document(
    checks: Sequence[Check], *, target: str, kernel: KernelIdentity
) -> dict[str, Any]:
    """Return checks with stable ids, outcome, severity, evidence and remedy."""
    return {
        "schema": SCHEMA,
        "target": target,
        "kernel": {
            "release": kernel.release,
            "preempt_rt": kernel.preempt_rt,
            "preemption_model": kernel.preemption_model,
            "config_digest": kernel.config.digest if kernel.config else None,
        },
        "summary": {o.value: sum(c.outcome is o for c in checks) for o in CheckOutcome},
        "checks": [check_row(check) for check in checks],
    }


def check_row(check: Check) -> dict[str, object]:
    """Return a check for a JSON document."""
    kind = check.kind
    return {
        "id": kind.id,
        "title": kind.title,
        "outcome": check.outcome.value,
        "severity": check.severity.name.lower(),
        "message": check.message,
        "expected": kind.expected,
        "evidence": [{"path": e.path, "value": e.value} for e in check.evidence],
        "rationale": kind.rationale,
        "source": kind.source,
        "remedy": check.remedy,
        "permanent_remedy": check.permanent_remedy,
        "remedy_refused": check.is_refused(RemedyPart.REMEDY),
        "risk": kind.risk,
    }
