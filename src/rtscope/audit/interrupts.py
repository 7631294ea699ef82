"""Judges of interrupts: where they may go, and where they were seen to go."""

import re
from collections.abc import Mapping

from rtscope.audit.cpus import NOT_SET_APART, Cpus, isolated, listed, set_apart
from rtscope.audit.model import (
    Answer,
    CheckKind,
    Evidence,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.audit.scene import Scene
from rtscope.cpulist import format_cpulist

INTERRUPTS = "/proc/interrupts"
BALANCER = "irqbalance"
BALANCER_CONFIG = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance")
NOT_WATCHED = "nothing was watched (--observe 0, or a tree captured without it)"

_BANNED = re.compile(r"^\s*IRQBALANCE_BANNED_CPULIST=[\"']?([0-9,-]*)", re.MULTILINE)
NS_PER_S = 1_000_000_000

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
        if colon and len(words) == len(cpus) and all(w.isdecimal() for w in words):
            rows[name.strip()] = dict(zip(cpus, map(int, words), strict=True))
    return rows


def irq_affinity(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether a device's interrupt is directed at a CPU that is set apart."""
    apart = set_apart(scene)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    table = scene.text(INTERRUPTS)
    if table is None:
        return unknown(f"no {INTERRUPTS}", *scene.refusals(INTERRUPTS))
    # Without a handler an interrupt is in /proc/irq and never comes.
    used = [name for name in counts_of(table) if name.isdecimal()]
    wrong, seen, odd = {}, {}, []
    for name in used:
        path, text = directed(scene, name)
        cpus = None if text is None else listed(text)
        if text is None or cpus is None:
            odd.append(Evidence(path, "cannot be read as a CPU list"))
            continue
        seen[path] = text
        if cpus & apart:
            wrong[path] = text
    if wrong:
        says = f"{len(wrong)} interrupts are directed at CPU {format_cpulist(apart)}"
        return failed(says, *(Evidence(p, t) for p, t in wrong.items()))
    if odd or not used:
        return unknown("not every interrupt's CPUs are known", *odd[:16])
    return passed(
        f"none of {len(seen)}", *(Evidence(p, t) for p, t in list(seen.items())[:16])
    )


def directed(scene: Scene, name: str) -> tuple[str, str | None]:
    """
    Return the file that tells where an interrupt goes, and its CPU list.

    Where one that was just redirected comes next is shown only after it has come once
    more (kernel/irq/migration.c): until then the CPUs that it is allowed on count.
    """
    effective = f"/proc/irq/{name}/effective_affinity_list"
    allowed = f"/proc/irq/{name}/smp_affinity_list"
    now, wanted = scene.text(effective), scene.text(allowed)
    if not now:
        return allowed, wanted
    cpus = listed(wanted) if wanted else None
    moves = cpus and not cpus & (listed(now) or cpus)
    return (allowed, wanted) if moves else (effective, now)


def observed_interrupts(kind: CheckKind, scene: Scene) -> Answer:
    """
    Judge what came on the CPUs that are set apart while they were watched.

    Keys: `rows`, the names of rows (`LOC`), or `devices` for every device;
    `a_second`, how many are still good on one CPU.
    """
    apart = set_apart(scene)
    if apart is None:
        return not_applicable(NOT_SET_APART)
    seen = scene.observed
    if not seen.window_ns or INTERRUPTS not in seen.before:
        return unknown(NOT_WATCHED)
    after = counts_of(seen.after.get(INTERRUPTS, ""))
    before = counts_of(seen.before[INTERRUPTS])
    limit = int(kind.args["a_second"]) * max(seen.window_ns / NS_PER_S, 1)
    rows = [name for name in after if _counts(kind, name)]
    if not rows or not any(cpu in after[rows[0]] for cpu in apart):
        return unknown(f"{INTERRUPTS} does not count them on these CPUs")
    many = _above(rows, before, after, apart=apart, limit=limit)
    window = f"in {seen.window_ns / NS_PER_S:.1f} s"
    if many:
        names = _names(seen.after[INTERRUPTS])
        says = f"{sum(e for _, e in many)} {window}, most of them {names[many[0][0]]}"
        told = [f"{names[name]}: {count}" for name, count in many[:16]]
        return failed(says, *(Evidence(INTERRUPTS, line) for line in told))
    return passed(f"as few as expected {window}", Evidence(INTERRUPTS, ", ".join(rows)))


def _names(text: str) -> Mapping[str, str]:
    """Return what each row of /proc/interrupts is called: `36 virtio1-req.0`."""
    rows = (line.partition(":") for line in text.splitlines()[1:])
    return {
        name.strip(): f"{name.strip()} {rest.split()[-1]}"
        if name.strip().isdecimal() and rest.split()
        else name.strip()
        for name, _, rest in rows
    }


def _counts(kind: CheckKind, name: str) -> bool:
    rows = kind.args["rows"]
    return name.isdecimal() if rows == "devices" else name in rows


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


def irqbalance(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether irqbalance may move interrupts to CPUs that are set apart."""
    names = scene.matching(kind.paths[0])
    if not names:
        return unknown("the processes cannot be seen", *scene.refusals(kind.paths[0]))
    running = [path for path, name in names.items() if name == BALANCER]
    if not running:
        return passed("it does not run", Evidence(kind.paths[0], f"{len(names)} read"))
    evidence = Evidence(running[0], BALANCER)
    apart = set_apart(scene)
    if apart is None:
        return failed("it runs, and moves interrupts every 10 s", evidence)
    for path in BALANCER_CONFIG:
        found = _BANNED.findall(scene.text(path) or "")
        banned = listed(found[-1]) if found else None
        if banned:
            told = Evidence(path, f"IRQBALANCE_BANNED_CPULIST={found[-1]}")
            good = apart <= banned
            says = "keeps off them" if good else "may use some of them"
            return (passed if good else failed)(f"it runs and {says}", evidence, told)
    if apart <= isolated(scene):
        return passed("it runs, and leaves isolated CPUs alone", evidence)
    return failed(f"it runs, and may use CPU {format_cpulist(apart)}", evidence)


JUDGES = (irq_affinity, observed_interrupts, irqbalance)
