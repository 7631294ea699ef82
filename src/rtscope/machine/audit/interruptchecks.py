"""
Checks of interrupts, also of network interfaces: affinity, and where they occurred.
"""

import re
from collections.abc import Callable, Collection, Mapping

from rtscope.host.units import NS_PER_S, is_whole
from rtscope.machine.audit.context import (
    INTERRUPTS,
    ISOLATED,
    NOT_SET_APART,
    NOT_WATCHED,
    STAT,
    Answer,
    AuditContext,
    Cpus,
    Observed,
    absent,
    failed,
    listed,
    masked,
    not_applicable,
    passed,
    set_apart,
    unknown,
)
from rtscope.machine.audit.model import CheckKind, Sighting
from rtscope.machine.cpulist import format_cpulist

BALANCER = "irqbalance"
BALANCER_CONFIG = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance")

NOHZ_FULL = "/sys/devices/system/cpu/nohz_full"

# Interrupts that no mask directs: on RISC-V those of a hart's own controller; with the
# GIC of ARM, numbers 16 to 31 (PPI); on older Raspberry Pis another controller.
_OF_EACH_CPU = re.compile(
    r"RISC-V INTC\b|GIC(?:v[34])?(?:-\d+)? +(?:1[6-9]|2\d|3[01])\b|bcm2836-"
)

# Its list of CPUs counts more than the older mask (irqbalance(1)).
_BANS: tuple[tuple[str, re.Pattern[str], Callable[[str], Cpus | None]], ...] = tuple(
    (name, re.compile(rf"^\s*{name}=[\"']?([0-9a-fA-F,-]*)", re.MULTILINE), read)
    for name, read in (
        ("IRQBALANCE_BANNED_CPULIST", listed),
        ("IRQBALANCE_BANNED_CPUS", masked),
    )
)

Counts = Mapping[str, Mapping[int, int]]


def counts_of(text: str) -> Counts:
    """Return /proc/interrupts as counts by row (`24`, `LOC`) and CPU."""
    lines = text.splitlines()
    head = lines[0].split() if lines else []
    cpus = [int(word[3:]) for word in head if re.fullmatch(r"CPU\d+", word)]
    rows: dict[str, Mapping[int, int]] = {}
    for line in lines[1:]:
        name, colon, rest = line.partition(":")
        words = rest.split()[: len(cpus)]
        # ERR and MIS have one count for the whole machine.
        if colon and len(words) == len(cpus) and all(is_whole(w) for w in words):
            rows[name.strip()] = dict(zip(cpus, map(int, words), strict=True))
    return rows


def irq_affinity(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether a device's interrupt is directed at a CPU that is set apart."""
    apart = set_apart(context)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    table = context.text(INTERRUPTS)
    if table is None:
        return unknown(f"no {INTERRUPTS}", *context.refusals(INTERRUPTS))
    # Without a handler an interrupt is in /proc/irq and never comes.
    labels = labels_of(table)
    used = [name for name in counts_of(table) if _is_device(name, labels[name])]
    wrong, seen, odd = {}, {}, []
    for name in used:
        path, text = directed(context, name)
        cpus = None if text is None else listed(text)
        if text is None or cpus is None:
            odd.append(Sighting(path, "cannot be read as a CPU list"))
            continue
        seen[path] = text
        if cpus & apart:
            wrong[path] = text
    if wrong:
        what = "1 interrupt is" if len(wrong) == 1 else f"{len(wrong)} interrupts are"
        says = f"{what} directed at CPU {format_cpulist(apart)}"
        return failed(says, *(Sighting(p, t) for p, t in wrong.items()))
    if odd or not used:
        return unknown("the CPUs of some interrupts are unknown", *odd[:16])
    return passed(
        f"none of {len(seen)} interrupts",
        *(Sighting(p, t) for p, t in list(seen.items())[:16]),
    )


def directed(context: AuditContext, name: str) -> tuple[str, str | None]:
    """
    Return the file with the CPUs of an interrupt, and its CPU list.

    Where one that was just redirected comes next is shown only after it has come once
    more (kernel/irq/migration.c): until then the CPUs that it is allowed on count.
    """
    effective = f"/proc/irq/{name}/effective_affinity_list"
    allowed = f"/proc/irq/{name}/smp_affinity_list"
    now, wanted = context.text(effective), context.text(allowed)
    if not now:
        return allowed, wanted
    cpus = listed(wanted) if wanted else None
    moves = cpus and not cpus & (listed(now) or cpus)
    return (allowed, wanted) if moves else (effective, now)


def observed_interrupts(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check what came on the CPUs that are set apart while they were watched.

    Keys: `rows`, the names of rows (`LOC`) or what stands at their end, or `devices`
    for every device; `a_second`, how many are still good on one CPU.
    """
    apart = set_apart(context)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    seen = context.observed
    if not seen.window_ns or INTERRUPTS not in seen.before:
        return unknown(NOT_WATCHED)
    after = counts_of(seen.after.get(INTERRUPTS, ""))
    before = counts_of(seen.before[INTERRUPTS])
    limit = int(kind.args["a_second"]) * max(seen.window_ns / NS_PER_S, 1)
    labels = labels_of(seen.after.get(INTERRUPTS, ""))
    rows = [name for name in after if _counts(kind, name, labels[name])]
    if not rows or not any(cpu in after[rows[0]] for cpu in apart):
        return unknown(f"{INTERRUPTS} does not count them on these CPUs")
    many = _above(rows, before, after, apart=apart, limit=limit)
    window = f"in {seen.window_ns / NS_PER_S:.1f} s"
    if many:
        named = {name: _called(name, labels[name]) for name, _ in many}
        says = f"{sum(e for _, e in many)} {window}, most of them {named[many[0][0]]}"
        lines = [f"{named[name]}: {count}" for name, count in many[:16]]
        return failed(says, *(Sighting(INTERRUPTS, line) for line in lines))
    idle = _idle(seen, apart) if kind.args.get("busy") else ()
    if idle:
        return unknown(
            f"CPU {format_cpulist(idle)} was idle {window}, and an idle CPU has no "
            "tick; run the audit while your threads run"
        )
    return passed(f"as few as expected {window}", Sighting(INTERRUPTS, ", ".join(rows)))


_IDLE_SHARE = 0.95


def _idle(seen: Observed, cpus: Collection[int]) -> tuple[int, ...]:
    """Return the CPUs that executed next to nothing while they were watched."""
    before, after = _cpu_ticks(seen.before), _cpu_ticks(seen.after)
    idle = []
    for cpu in sorted(cpus):
        # user nice system idle iowait irq softirq steal (proc_stat(5))
        if cpu not in before or cpu not in after:
            continue
        spent = [b - a for a, b in zip(before[cpu], after[cpu], strict=False)]
        if sum(spent[3:5]) >= _IDLE_SHARE * sum(spent):
            idle.append(cpu)
    return tuple(idle)


def _cpu_ticks(files: Mapping[str, str]) -> Mapping[int, tuple[int, ...]]:
    rows = (line.split() for line in files.get(STAT, "").splitlines())
    return {
        int(row[0][3:]): tuple(map(int, row[1:9]))
        for row in rows
        if row and row[0].startswith("cpu") and is_whole(row[0][3:])
    }


def labels_of(text: str) -> Mapping[str, str]:
    """Return what stands behind the counts of each row: `GICv3 27 Level arch_timer`."""
    lines = text.splitlines()
    cpus = len(lines[0].split()) if lines else 0
    rows = (line.partition(":") for line in lines[1:])
    return {name.strip(): " ".join(rest.split()[cpus:]) for name, _, rest in rows}


def _called(name: str, label: str) -> str:
    if not name.isdecimal():
        return f"{name} {label}" if name.startswith("IPI") else name
    return f"{name} {label.split()[-1]}" if label else name


def _is_device(name: str, label: str) -> bool:
    """Whether a row is a device's: not a timer's or counter's that each CPU has."""
    return name.isdecimal() and not _OF_EACH_CPU.match(label)


def _counts(kind: CheckKind, name: str, label: str) -> bool:
    rows = kind.args["rows"]
    if rows == "devices":
        return _is_device(name, label)
    return name in rows or label in rows or label.rpartition(" ")[2] in rows


def _above(
    rows: list[str], before: Counts, after: Counts, *, apart: Cpus, limit: float
) -> list[tuple[str, int]]:
    """Return rows that came too often, with how often in all, the most first."""
    many = []
    for name in rows:
        came = [
            after[name][cpu] - before.get(name, {}).get(cpu, 0)
            for cpu in apart
            if cpu in after[name]
        ]
        if any(count > limit for count in came):
            many.append((name, sum(came)))
    return sorted(many, key=lambda row: -row[1])


def irqbalance(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether irqbalance may move interrupts to CPUs that are set apart."""
    names = context.matching(kind.paths[0])
    if not names:
        return unknown(
            "the processes are not visible", *context.refusals(kind.paths[0])
        )
    running = [path for path, name in names.items() if name == BALANCER]
    if not running:
        return passed("not running", Sighting(kind.paths[0], f"{len(names)} read"))
    evidence = Sighting(running[0], BALANCER)
    apart = set_apart(context)
    if apart is None:
        return failed("running: it moves interrupts every 10 s", evidence)
    banned, setting = _banned(context)
    if apart <= banned:
        return passed("running, but it spares these CPUs", evidence, setting)
    says = f"running, and may use CPU {format_cpulist(apart - banned)}"
    return failed(says, evidence, setting)


def _banned(context: AuditContext) -> tuple[Cpus, Sighting]:
    """Return the CPUs that irqbalance leaves alone, and by what."""
    for path in BALANCER_CONFIG:
        for name, pattern, read in _BANS:
            values = pattern.findall(context.words(path))
            cpus = read(values[-1]) if values else None
            if cpus:
                return cpus, Sighting(path, f"{name}={values[-1]}")
    # What it takes if nothing is named; of cpuset partitions it does not know.
    texts = {path: context.words(path) for path in (ISOLATED, NOHZ_FULL)}
    cpus = frozenset().union(*(listed(text) or () for text in texts.values()))
    return cpus, Sighting(", ".join(texts), format_cpulist(cpus) or "none")


# --- network interfaces: when a packet interrupts, and which CPUs -------------------


def interrupt_coalescing(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether a network interface delays the interrupt for a packet."""
    every, hardware = kind.paths
    seen = context.observed
    if seen.coalescing is None:
        there = context.matching(every)
        if there and not context.matching(hardware) and not context.refusals(hardware):
            read = Sighting(every, f"{len(there)} read")
            return not_applicable("no network interface of hardware", read)
        return unknown(seen.why_no_coalescing)
    if not seen.coalescing:
        return not_applicable("no network interface of hardware is up")
    sightings = {
        name: Sighting(name, _describe(v)) for name, v in seen.coalescing.items()
    }
    late = [name for name, v in seen.coalescing.items() if delays_interrupts(v)]
    if late:
        says = f"{late[0]}: {sightings[late[0]].value}"
        return failed(says, *(sightings[name] for name in late[:16]))
    silent = [name for name, values in seen.coalescing.items() if not values]
    if silent:
        says = f"the driver of {silent[0]} does not tell"
        return unknown(says, *(sightings[name] for name in silent[:16]))
    return passed("none delays interrupts of packets", *list(sightings.values())[:16])


def packet_steering(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether packets are steered to CPUs that are set apart."""
    apart = set_apart(context)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    pattern = kind.paths[0]
    masks = context.matching(pattern)
    cpus = {path: masked(text) for path, text in masks.items()}
    wrong = [path for path, mask in cpus.items() if mask and mask & apart]
    if wrong:
        says = f"{len(wrong)} of {len(masks)} queues, such as {wrong[0]}"
        return failed(says, *(Sighting(path, masks[path]) for path in wrong[:16]))
    odd = [path for path, mask in cpus.items() if mask is None]
    if odd:
        return unknown("not a CPU mask", Sighting(odd[0], masks[odd[0]][:80]))
    refused = context.refusals(pattern)
    if refused:
        return unknown("only partly readable", *refused)
    if not masks:
        return absent(kind, context)
    seen = [Sighting(path, text) for path, text in masks.items()]
    return passed(f"none of {len(masks)} queues", *seen[:16])


def delays_interrupts(values: Mapping[str, int]) -> bool:
    """Tell whether an interface delays the interrupt for a packet, by its settings."""
    # Whichever comes first: so many microseconds, or so many packets (0: any number).
    packets = values.get("rx-frames", 0)
    waits = packets != 1 and values.get("rx-usecs", 0) > 0
    return waits or packets > 1 or values.get("adaptive-rx", 0) > 0


def _describe(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or "no answer"
