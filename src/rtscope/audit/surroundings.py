"""Judges of the machine as a whole: guest, stolen time, swap, clock, fair server."""

import re

from rtscope.audit.cpus import cpu_of, listed, set_apart
from rtscope.audit.interrupts import NOT_WATCHED
from rtscope.audit.judges import LOCKDOWN, absent
from rtscope.audit.model import Answer, CheckKind, Evidence, failed, passed, unknown
from rtscope.audit.scene import Scene
from rtscope.cpulist import format_cpulist
from rtscope.machine.reader import Denied

STAT = "/proc/stat"
STEAL = 7
"""user nice system idle iowait irq softirq steal (proc_stat(5))"""

CPUINFO = "/proc/cpuinfo"
_NAMES = (
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/proc/device-tree/compatible",
)
_EMULATED = re.compile(
    r"\b(QEMU|KVM|VMware|VirtualBox|Virtual Machine|linux,dummy-virt|riscv-virtio)"
)


def of_guest(scene: Scene) -> Evidence | None:
    """Return what shows that this is a virtual machine; None if nothing does."""
    if "hypervisor" in (scene.text(CPUINFO) or "").split():
        return Evidence(CPUINFO, "flags: hypervisor")
    for path in _NAMES:
        text = scene.text(path) or ""
        if _EMULATED.search(text):
            return Evidence(path, text[:80])
    return None


def guest(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether this is a virtual machine, by CPU flags and firmware."""
    cpuinfo, *names = kind.paths
    text = scene.text(cpuinfo)
    if evidence := of_guest(scene):
        return failed("a guest", evidence)
    if text and scene.arch in ("x86_64", "i686"):
        return passed("no hypervisor", Evidence(cpuinfo, "flags without hypervisor"))
    seen = [name for name in names if scene.text(name)]
    if seen:
        return passed("the hardware says its name", *(_seen(scene, n) for n in seen))
    return unknown("neither CPU flags nor firmware tell it")


def _seen(scene: Scene, path: str) -> Evidence:
    return Evidence(path, (scene.text(path) or "")[:80].replace("\0", " "))


def steal(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether the host took CPU time away while the machine was watched."""
    seen = scene.observed
    before, after = _stolen(seen.before.get(STAT)), _stolen(seen.after.get(STAT))
    if not seen.window_ns or before is None or after is None:
        return unknown(NOT_WATCHED)
    evidence = Evidence(STAT, f"steal {before}, then {after} ticks")
    if after > before:
        return failed(f"{after - before} ticks of 10 ms within the window", evidence)
    return passed("none within the window", evidence)


def _stolen(text: str | None) -> int | None:
    words = (text or "").partition("\n")[0].split()
    if len(words) <= STEAL + 1 or words[0] != "cpu":
        return None
    return int(words[STEAL + 1]) if words[STEAL + 1].isdecimal() else None


def swap(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether memory may be swapped out."""
    path = kind.paths[0]
    text = scene.text(path)
    if text is None:
        refused = scene.refusals(path)
        return unknown("it cannot be read", *refused) if refused else absent(kind)
    rows = text.splitlines()
    if not rows or not rows[0].startswith("Filename"):
        return unknown("not the table that was expected", Evidence(path, text[:80]))
    if rows[1:]:
        names = ", ".join(row.split()[0] for row in rows[1:] if row.split())
        return failed(names, *(Evidence(path, row) for row in rows[1:]))
    return passed("no swap", Evidence(path, "empty"))


def fair_server(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether ordinary threads are given a share ahead of real-time ones."""
    pattern = kind.paths[0]
    apart = set_apart(scene)
    runtimes = {
        path: text
        for path, text in scene.matching(pattern).items()
        if apart is None or cpu_of(path) in apart
    }
    refused = scene.refusals(pattern)
    if refused and not runtimes:
        return unknown(_why_refused(scene), *refused)
    if not runtimes:
        return unknown("debugfs is not mounted, or this kernel does not show it there")
    on = {path: text for path, text in runtimes.items() if text != "0"}
    if on:
        cpus = format_cpulist(c for p in on if (c := cpu_of(p)) is not None)
        says = f"{next(iter(on.values()))} ns of each period on CPU {cpus}"
        return failed(says, *(Evidence(p, t) for p, t in on.items()))
    if refused:
        return unknown("not all of it can be read", *refused)
    return passed("off", *(Evidence(p, t) for p, t in runtimes.items()))


def _why_refused(scene: Scene) -> str:
    mode = scene.text(LOCKDOWN)
    if mode and "[none]" not in mode:
        return (
            f"kernel lockdown ({mode}) refuses debugfs also to root; the fair server "
            "can then not be turned off either"
        )
    if isinstance(scene.content(LOCKDOWN), Denied):
        return "it may not be read, and whether that is kernel lockdown neither"
    return "it may not be read; only root may"


def watchdog(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether the lockup watchdog leaves the real-time CPUs alone."""
    switch, mask = kind.paths
    text = scene.text(switch)
    if text is None:
        refused = scene.refusals(switch)
        return unknown("it cannot be read", *refused) if refused else absent(kind)
    if text == "0":
        return passed("off", Evidence(switch, text))
    apart, where = set_apart(scene), scene.text(mask)
    # A list (0-3), although its name says mask (admin-guide/lockup-watchdogs.rst).
    cpus = listed(where) if where else None
    if apart is None or cpus is None:
        return failed("on", Evidence(switch, text))
    evidence = (Evidence(switch, text), Evidence(mask, where or ""))
    inside = apart & cpus
    if inside:
        return failed(f"on, also on CPU {format_cpulist(inside)}", *evidence)
    return passed("on, and on other CPUs only", *evidence)


def trace_instances(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether an instance of tracing, which has settings of its own, traces."""
    events, tracers, above, _ = kind.paths
    refused = [*scene.refusals(events), *scene.refusals(tracers)]
    on = {p: t for p, t in scene.matching(events).items() if t != "0"}
    on |= {p: t for p, t in scene.matching(tracers).items() if t != "nop"}
    if on:
        says = f"{next(iter(on.values()))} in {next(iter(on))}"
        return failed(says, *(Evidence(p, t) for p, t in on.items()))
    if refused:
        return unknown("not all of it can be read", *refused)
    if scene.text(above) is None:
        return unknown(absent(kind, scene).says, *scene.refusals(above))
    return passed(
        "none traces", Evidence(above, "instances beside it: none that trace")
    )


def clock_cost(kind: CheckKind, scene: Scene) -> Answer:
    """
    Judge by measuring: what a look at the clock costs, and its resolution if known.

    Key: `good_ns`, the cost that is still good.
    """
    seen = scene.observed
    if seen.clock_cost_ns is None:
        return unknown("it was not measured: only on this machine, or over SSH")
    steps = seen.clock_resolution_ns
    says = f"{seen.clock_cost_ns} ns" + (f", in steps of {steps} ns" if steps else "")
    evidence = Evidence("clock_gettime(CLOCK_MONOTONIC), measured", says)
    bad = seen.clock_cost_ns > kind.args["good_ns"] or (steps or 1) > 1
    return (failed if bad else passed)(says, evidence)


def undervoltage(kind: CheckKind, scene: Scene) -> Answer:
    """Judge by the alarm of a Raspberry Pi's firmware (raspberrypi-hwmon.rst)."""
    names = scene.matching(kind.paths[0])
    for path, name in names.items():
        if name != "rpi_volt":
            continue
        alarm = path.replace("/name", "/in0_lcrit_alarm")
        text = scene.text(alarm)
        if text in ("0", "1"):
            evidence = Evidence(alarm, text)
            if text == "1":
                return failed("the supply voltage was too low", evidence)
            return passed("no alarm", evidence)
        return unknown("the alarm cannot be read", *scene.refusals(alarm))
    model = scene.text(kind.paths[2]) or ""
    if "Raspberry Pi" in model:
        return unknown("a Raspberry Pi whose kernel has no driver for the alarm")
    return absent(kind)


def isa_extension(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether every hart has an `extension`, by /proc/cpuinfo."""
    path = kind.paths[0]
    isas = re.findall(r"^isa\s*:\s*(\S+)", scene.text(path) or "", re.MULTILINE)
    if not isas:
        return unknown(f"{path} does not tell the ISA", *scene.refusals(path))
    wanted = kind.args["extension"]
    missing = [isa for isa in isas if wanted not in isa.split("_")]
    if missing:
        return failed(f"no {wanted}", *(Evidence(path, isa) for isa in missing[:4]))
    return passed(wanted, Evidence(path, isas[0]))


def lockdown(kind: CheckKind, scene: Scene) -> Answer:
    """Judge whether the kernel is locked down, which hides settings also from root."""
    text = scene.text(LOCKDOWN)
    if text is None:
        refused = scene.refusals(LOCKDOWN)
        if refused:
            return unknown("it may not be read", *refused)
        return absent(kind)
    if "[none]" in text:
        return passed("none", Evidence(LOCKDOWN, text))
    if "[" not in text:
        return unknown("no mode is marked", Evidence(LOCKDOWN, text[:80]))
    return failed(text, Evidence(LOCKDOWN, text))


JUDGES = (
    *(guest, steal, swap, fair_server, watchdog, trace_instances, clock_cost),
    *(undervoltage, isa_extension, lockdown),
)
