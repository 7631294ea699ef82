"""
Settings that remedy failed checks: chosen here, written by the agent.

Pure: from a context to a list of changes, one for each file. `rtscope audit --apply`,
`--dry-run` and `rtscope run --tuned` show or send the same list.
"""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rtscope.host.errors import UsageError
from rtscope.host.units import is_whole
from rtscope.machine.audit.context import (
    INTERRUPTS,
    NOT_SET_APART,
    AuditContext,
    Cpus,
    Observed,
    cpu_of,
    listed,
    masked,
    online,
    set_apart,
)
from rtscope.machine.audit.examine import catalogue, examine, read_context
from rtscope.machine.audit.interruptchecks import (
    BALANCER,
    counts_of,
    delays_interrupts,
    directed,
)
from rtscope.machine.audit.model import (
    Check,
    CheckKind,
    CheckOutcome,
    Profile,
    RemedyPart,
    Setting,
    Sighting,
)
from rtscope.machine.audit.threadchecks import (
    HIGHEST,
    interrupt_threads_above,
    interrupt_threads_of,
    lowest_priority,
    priority_of,
    why_no_thread,
)
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.reader import Reader

PROFILE = Profile.CONTROL
"""A measurement is of threads that wake up periodically."""

SAFE = "safe"
"""Instead of ids: every remedy that costs neither safety nor memory."""

IRQ_THREADS = "interrupt_threads"
"""The check that takes a device and a priority too: `interrupt_threads:eth0=90`."""

_OF_DEVICE = re.compile(rf"{IRQ_THREADS}:(.+)=(\d{{1,9}})")

NET = "/sys/class/net/"
INTERFACE_INDEX = f"{NET}*/ifindex"

EPERM = os.strerror(errno.EPERM)

KNOB_STRIDE = 4096
"""As agent/journal/knob.h: of two numbers in a path, first + second times this."""

Values = Mapping[str, str]
"""What to write, by path."""

Wanted = Values | str
"""What to write, or why it cannot be known."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One file, and what is to be written there."""

    check: str
    knob: str
    index: int
    path: str
    old: str
    """What it holds now; marks of a chosen word are not in it."""
    value: str

    @property
    def changed(self) -> bool:
        """Whether it was otherwise before."""
        return self.old != self.value


@dataclass(frozen=True, slots=True)
class TuningPlan:
    """What is to be written, and of which checks nothing is."""

    changes: tuple[SettingChange, ...] = ()
    good: Mapping[str, str] = field(default_factory=dict)
    """Checks that need nothing, with what they say."""
    impossible: Mapping[str, str] = field(default_factory=dict)
    """Checks that cannot be remedied now, and why."""
    risks: Mapping[str, str] = field(default_factory=dict)
    """What the changes of a check cost, for those that cost something."""


def tunable() -> list[CheckKind]:
    """Return the checks that have a remedy which can be applied and put back."""
    return [kind for kind in catalogue().values() if kind.apply]


def choose(words: Sequence[str]) -> list[CheckKind]:
    """
    Return the checks that a user means by ids or `safe`, in the catalogue's order.

    Interrupt threads of a device come last, with the word as their id. UsageError for
    an id that is none, or one whose remedy is no setting.
    """
    known = {kind.id: kind for kind in tunable()}
    devices = _of_devices(
        [word for word in words if word.startswith(f"{IRQ_THREADS}:")]
    )
    for word in words:
        if word == SAFE or word in known or word in devices:
            continue
        kind = catalogue().get(word)
        if kind is None:
            raise UsageError(
                f"{word!a} is no check; these can be applied: {', '.join(known)}, or "
                f"{SAFE}"
            )
        raise UsageError(
            f"{word}: its remedy is no setting that can be put back: {kind.remedy}"
        )
    if not words:
        raise UsageError(f"name checks, or {SAFE}: {', '.join(known)}")
    spared = tuple(kind.args["device"] for kind in devices.values())
    known[IRQ_THREADS] = replace(known[IRQ_THREADS], args={"spared": spared})
    named = [k for k in known.values() if k.id in words or (SAFE in words and k.safe)]
    return [*named, *devices.values()]


def _of_devices(words: Sequence[str]) -> dict[str, CheckKind]:
    """Return the check of each device whose interrupt threads get a priority."""
    lowering = catalogue()[IRQ_THREADS]
    kinds: dict[str, CheckKind] = {}
    for word in words:
        match = _OF_DEVICE.fullmatch(word)
        if match is None or not 1 <= int(match[2]) <= HIGHEST:
            raise UsageError(
                f"{word!a}: name a device of /proc/interrupts and a priority of 1 to "
                f"{HIGHEST}, as in {IRQ_THREADS}:snd_hda_intel=90"
            )
        kinds[word] = replace(
            lowering,
            id=word,
            args={"device": match[1], "priority": int(match[2])},
            apply=tuple(replace(x, values=as_named.__name__) for x in lowering.apply),
            risk="programs of this or a lower priority wait for the device",
        )
    if len({kind.args["device"] for kind in kinds.values()}) < len(kinds):
        raise UsageError(f"{', '.join(kinds)}: one device has one priority")
    return kinds


def with_settings(
    context: AuditContext, kinds: Iterable[CheckKind], reader: Reader
) -> AuditContext:
    """Add the files that remedies would write; raises TargetError."""
    files = [setting.file for kind in kinds for setting in kind.apply]
    files += [INTERFACE_INDEX] * any(file.startswith(NET) for file in files)
    machine = context.machine
    contents = {**machine.files, **reader.read_many(files)}
    return replace(context, machine=replace(machine, files=contents))


def planned_for(
    reader: Reader,
    kinds: Sequence[CheckKind],
    *,
    cpus: tuple[int, ...] | None,
    observed: Observed | None = None,
) -> tuple[AuditContext, TuningPlan]:
    """
    Return what a machine shows, and the changes that these checks need there.

    `observed` is what no file tells; see `observe_settings`.
    """
    wanted = [*kinds, catalogue()[BALANCER]]
    seen = observed or Observed()
    context = read_context(reader, wanted, profile=PROFILE, cpus=cpus, observed=seen)
    checks = examine(context, kinds)
    return context, plan(with_settings(context, kinds, reader), checks)


def plan(context: AuditContext, checks: Iterable[Check]) -> TuningPlan:
    """Return what to write for these checks; the context has their settings' files."""
    changes: dict[tuple[str, int], SettingChange] = {}
    good, impossible = {}, {}
    risks: dict[str, str] = {}
    for check in checks:
        kind = check.kind
        if check.outcome is CheckOutcome.UNKNOWN:
            impossible[kind.id] = f"unknown: {check.message}"
        elif not check.failed:
            good[kind.id] = f"{check.outcome.value}: {check.message}"
        elif check.is_refused(RemedyPart.REMEDY):
            impossible[kind.id] = check.remedy
        else:
            wanted = _changes(kind, context)
            if isinstance(wanted, str):
                impossible[kind.id] = wanted
            else:
                changes |= {(change.knob, change.index): change for change in wanted}
                risks |= {kind.id: kind.risk} if kind.risk else {}
    return TuningPlan(tuple(changes.values()), good, impossible, risks)


def _changes(kind: CheckKind, context: AuditContext) -> list[SettingChange] | str:
    """
    Return what the first setting that can be made takes; else why none can.

    Settings that go together (`beside`) are all made.
    """
    reasons: list[str] = []
    made: list[SettingChange] | None = None
    for setting in kind.apply:
        if made is not None and not setting.beside:
            break
        wanted = _values(setting, kind, context)
        if isinstance(wanted, str):
            reasons.append(wanted)
            continue
        made = [*(made or ()), *_changes_of(setting, kind, wanted, context)]
    return "; ".join(dict.fromkeys(reasons)) if made is None else made


def _changes_of(
    setting: Setting, kind: CheckKind, wanted: Values, context: AuditContext
) -> Iterator[SettingChange]:
    for path, value in wanted.items():
        yield SettingChange(
            check=kind.id,
            knob=setting.knob,
            index=_index(setting, path, context),
            path=path,
            old=_old(setting, path, context),
            value=value,
        )


def _index(setting: Setting, path: str, context: AuditContext) -> int:
    """Return the number by which the agent finds a path; of an interface its own."""
    if not setting.file.startswith(NET):
        return index_of(setting.file, path)
    name = path.removeprefix(NET).partition("/")[0]
    return int(context.text(INTERFACE_INDEX.replace("*", name)) or 0)


def _old(setting: Setting, path: str, context: AuditContext) -> str:
    """Return what a setting is now, as the agent writes it."""
    text = context.text(path) or ""
    if setting.knob == "irq_priority":
        return priority_of(text)
    if setting.knob == "coalescing":
        return _delay_of(path, context)
    return marked(text)


def _values(setting: Setting, kind: CheckKind, context: AuditContext) -> Wanted:
    there = context.matching(setting.file)
    if not there:
        refused = context.refusals(setting.file)
        if refused:
            return f"{refused[0].path} {refused[0].value}{_lockdown(refused[0])}"
        return f"this machine has no {setting.file}"
    if setting.values:
        return FUNCTIONS[setting.values](there, kind, context)
    wanted = setting.value
    return {path: wanted for path, text in there.items() if marked(text) != wanted}


def _lockdown(refusal: Sighting) -> str:
    """Explain EPERM of debugfs, which root gets under lockdown (fs/debugfs/file.c)."""
    hidden = refusal.path.startswith("/sys/kernel/debug/")
    return ": kernel lockdown" if hidden and EPERM in refusal.value else ""


def marked(text: str) -> str:
    """Return the marked word of `always [madvise] never`; without a mark, all."""
    match = re.search(r"[\[(]([^])]*)[])]", text)
    return match[1] if match else text


def index_of(pattern: str, path: str) -> int:
    """Return the number by which the agent finds a path of a setting."""
    match = re.fullmatch(re.escape(pattern).replace(r"\*", r"(\d+)"), path)
    numbers = [int(group) for group in match.groups()] if match else []
    return sum(n * KNOB_STRIDE**place for place, n in enumerate(numbers))


def highest_frequency(there: Values, _kind: CheckKind, context: AuditContext) -> Wanted:
    """The highest frequency of the same policy."""
    wanted = {
        path: context.text(path.replace("scaling_min_freq", "scaling_max_freq"))
        for path in there
    }
    return {p: text for p, text in wanted.items() if text and text != there[p]}


def slow_idle_states(there: Values, kind: CheckKind, context: AuditContext) -> Wanted:
    """1, for the states that take too long to wake from."""
    apart = set_apart(context)
    slow = {}
    for path, disabled in there.items():
        latency = context.text(path.replace("/disable", "/latency")) or ""
        if (
            disabled == "0"
            and is_whole(latency)
            and int(latency) > kind.args["latency_us"]
            and (apart is None or cpu_of(path) in apart)
        ):
            slow[path] = "1"
    return slow


def _others(context: AuditContext) -> tuple[Cpus, Cpus] | str:
    """Return the CPUs that are set apart and the rest, or why there is no rest."""
    apart, everywhere = set_apart(context), online(context)
    if apart is None or everywhere is None:
        return NOT_SET_APART
    if not everywhere - apart:
        return "every CPU is set apart: no housekeeping CPU is left"
    return apart, everywhere - apart


def mask_of_others(there: Values, _kind: CheckKind, context: AuditContext) -> Wanted:
    """The mask that it has, without the CPUs that are set apart."""
    return _without_apart(there, context, read=masked, write=_mask_like)


def list_of_others(there: Values, _kind: CheckKind, context: AuditContext) -> Wanted:
    """The list that it has, without the CPUs that are set apart."""

    def write(cpus: Cpus, _like: str) -> str:
        return format_cpulist(cpus)

    return _without_apart(there, context, read=listed, write=write)


def interrupts_elsewhere(
    there: Values, kind: CheckKind, context: AuditContext
) -> Wanted:
    """The list that it has, without the CPUs that are set apart."""
    others = _others(context)
    if isinstance(others, str):
        return others
    used = [n for n in counts_of(context.text(INTERRUPTS) or "") if is_whole(n)]
    wrong = {}
    for name in used:
        _, now = directed(context, name)
        path = f"/proc/irq/{name}/smp_affinity_list"
        if now and path in there and (listed(now) or Cpus()) & others[0]:
            wrong[path] = there[path]
    return list_of_others(wrong, kind, context)


def _without_apart(
    there: Values,
    context: AuditContext,
    *,
    read: Callable[[str], Cpus | None],
    write: Callable[[Cpus, str], str],
) -> Wanted:
    """Leave what each file allows, but for the CPUs that are set apart."""
    others = _others(context)
    if isinstance(others, str):
        return others
    _, rest = others
    wanted = {}
    for path, text in there.items():
        cpus = read(text)
        if cpus is None:
            return f"{path}: {text[:80]!a} is not a CPU list"
        wanted[path] = write((cpus & rest) or rest, text)
    return {path: text for path, text in wanted.items() if text != there[path]}


def _mask_like(cpus: Cpus, like: str) -> str:
    """Write a mask with as many digits as another, which is how the kernel shows it."""
    digits = len(like.replace(",", ""))
    text = f"{sum(1 << cpu for cpu in cpus):0{digits}x}"
    groups = [text[max(end - 8, 0) : end] for end in range(len(text), 0, -8)]
    return ",".join(reversed(groups))


def no_delay(there: Values, _kind: CheckKind, context: AuditContext) -> Wanted:
    """No microseconds, not adaptive and at most 1 packet, where it delays."""
    delays = context.observed.coalescing or {}
    wanted = {}
    for path in there:
        values = delays.get(path.removeprefix(NET).partition("/")[0], {})
        if delays_interrupts(values):
            # a driver that does not count packets refuses any number but 0
            wanted[path] = f"0.{min(values.get('rx-frames', 0), 1)}.0"
    return wanted


def _delay_of(path: str, context: AuditContext) -> str:
    name = path.removeprefix(NET).partition("/")[0]
    values = (context.observed.coalescing or {}).get(name, {})
    parts = (values.get(key, 0) for key in ("rx-usecs", "rx-frames", "adaptive-rx"))
    return ".".join(map(str, parts))


def below_programs(there: Values, kind: CheckKind, context: AuditContext) -> Wanted:
    """fifo and the priority below the lowest of programs, for interrupt threads."""
    lowest = lowest_priority(context)
    if lowest is None or lowest < 2:
        return "no priority is below those of the programs"
    above = set(interrupt_threads_above(context, lowest))
    for device in kind.args.get("spared", ()):
        above -= set(interrupt_threads_of(device, context))
    threads = {f"/proc/{tid}/stat" for tid in above}
    return {path: f"fifo.{lowest - 1}" for path in there if path in threads}


def as_named(there: Values, kind: CheckKind, context: AuditContext) -> Wanted:
    """fifo and the priority that was named, for the interrupt threads of a device."""
    device, wanted = kind.args["device"], f"fifo.{kind.args['priority']}"
    found = interrupt_threads_of(device, context)
    if not found:
        return why_no_thread(device, context)
    threads = {f"/proc/{tid}/stat" for tid in found}
    return {path: wanted for path in there if path in threads}


def zero_where_apart(there: Values, _kind: CheckKind, context: AuditContext) -> Wanted:
    """0, for the CPUs that are set apart."""
    apart = set_apart(context)
    if apart is None:
        return NOT_SET_APART
    return {p: "0" for p, text in there.items() if cpu_of(p) in apart and text != "0"}


FUNCTIONS: Mapping[str, Callable[[Values, CheckKind, AuditContext], Wanted]] = {
    function.__name__: function
    for function in (
        *(highest_frequency, slow_idle_states, mask_of_others, list_of_others),
        *(interrupts_elsewhere, zero_where_apart, no_delay, below_programs),
        as_named,
    )
}
"""What a setting's `values` names; the reference quotes the doc strings."""


def undone_by(context: AuditContext, changes: Iterable[SettingChange]) -> str:
    """Name the running service that would undo what is written; empty if none would."""
    if not any(change.knob == "irq_affinity" for change in changes):
        return ""
    running = context.matching("/proc/[0-9]*/comm").values()
    return BALANCER if BALANCER in running else ""
