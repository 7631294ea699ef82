"""
Checks of the machine as a whole: guest, stolen time, swap, clock, fair server, and
what happens below the kernel: management interrupts, heat.
"""

import errno
import os
import re
from collections.abc import Sequence

from rtscope.host.units import NS_PER_S, is_whole
from rtscope.machine.audit.context import (
    LOCKDOWN,
    NOT_WATCHED,
    STAT,
    Answer,
    AuditContext,
    absent,
    cpu_of,
    failed,
    listed,
    lockdown_of,
    masked,
    not_applicable,
    not_read,
    online,
    passed,
    set_apart,
    unknown,
)
from rtscope.machine.audit.kernelchecks import FROM_BOOT
from rtscope.machine.audit.model import CheckKind, Sighting
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.guest import CPUINFO, guest
from rtscope.machine.kernelidentity import CMDLINE

STEAL = 7
"""user nice system idle iowait irq softirq steal (proc_stat(5))"""


def bare_metal(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether this is a virtual machine, as the fact `guest` does."""
    sign = guest(context.machine)
    evidence = Sighting(sign.where, sign.what)
    if sign.value is None:
        return unknown("neither CPU flags nor firmware show it")
    if sign.value:
        return failed("a guest", evidence)
    by_cpu = sign.where == CPUINFO
    return passed(
        "no hypervisor" if by_cpu else "the firmware names the hardware", evidence
    )


def steal(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the host took CPU time away while the machine was watched."""
    seen = context.observed
    before, after = _stolen(seen.before.get(STAT)), _stolen(seen.after.get(STAT))
    if not seen.window_ns or before is None or after is None:
        return unknown(NOT_WATCHED)
    evidence = Sighting(STAT, f"steal {before}, then {after} ticks")
    if after > before:
        return failed(f"{after - before} ticks of 10 ms within the window", evidence)
    return passed("none within the window", evidence)


def _stolen(text: str | None) -> int | None:
    if text is None:
        return None
    words = text.partition("\n")[0].split()
    if len(words) <= STEAL + 1 or words[0] != "cpu":
        return None
    return int(words[STEAL + 1]) if is_whole(words[STEAL + 1]) else None


def swap(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether memory may be swapped out."""
    path = kind.paths[0]
    text = context.text(path)
    if text is None:
        return not_read(kind, context, path)
    rows = text.splitlines()
    if not rows or not rows[0].startswith("Filename"):
        return unknown("not a table of swap areas", Sighting(path, text[:80]))
    if rows[1:]:
        names = ", ".join(row.split()[0] for row in rows[1:] if row.split())
        return failed(names, *(Sighting(path, row) for row in rows[1:]))
    return passed("no swap", Sighting(path, "empty"))


def fair_server(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether ordinary threads are given a share ahead of real-time ones."""
    pattern = kind.paths[0]
    apart = set_apart(context)
    runtimes = {
        path: text
        for path, text in context.matching(pattern).items()
        if apart is None or cpu_of(path) in apart
    }
    refused = context.refusals(pattern)
    if refused and not runtimes:
        return unknown(_why_refused(context, refused), *refused)
    if not runtimes:
        return unknown("debugfs is not mounted, or this kernel does not show it there")
    on = {path: text for path, text in runtimes.items() if text != "0"}
    if on:
        cpus = format_cpulist(c for p in on if (c := cpu_of(p)) is not None)
        says = f"{next(iter(on.values()))} ns of each period on CPU {cpus}"
        return failed(says, *(Sighting(p, t) for p, t in on.items()))
    if refused:
        return unknown("only partly readable", *refused)
    return passed("off", *(Sighting(p, t) for p, t in runtimes.items()))


_REFUSED_TO_ROOT = os.strerror(errno.EPERM)
"""Without the right it is EACCES."""


def _why_refused(context: AuditContext, refused: Sequence[Sighting]) -> str:
    mode = context.text(LOCKDOWN)
    if mode and "[none]" not in mode:
        return (
            f"kernel lockdown ({mode}) closes debugfs even to root: the fair server "
            "cannot be turned off either"
        )
    if any(_REFUSED_TO_ROOT in seen.value for seen in refused):
        return "the kernel refuses it even to root, as kernel lockdown does"
    if context.refusals(LOCKDOWN):
        return "not readable, nor is the state of kernel lockdown: run as root"
    return "not readable: run as root"


def watchdog(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the lockup watchdog leaves the real-time CPUs alone."""
    switch, mask = kind.paths
    text = context.text(switch)
    if text is None:
        return not_read(kind, context, switch)
    if text == "0":
        return passed("off", Sighting(switch, text))
    apart, where = set_apart(context), context.words(mask)
    # A list (0-3), although its name says mask (admin-guide/lockup-watchdogs.rst).
    cpus = listed(where) if where else None
    if apart is None or cpus is None:
        return failed("on", Sighting(switch, text))
    evidence = (Sighting(switch, text), Sighting(mask, where))
    inside = apart & cpus
    if inside:
        return failed(f"on, also on CPU {format_cpulist(inside)}", *evidence)
    return passed("on, and on other CPUs only", *evidence)


def trace_instances(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether an instance of tracing, which has settings of its own, traces."""
    events, tracers, above, _ = kind.paths
    refused = context.refusals(events, tracers)
    on = {p: t for p, t in context.matching(events).items() if t != "0"}
    on |= {p: t for p, t in context.matching(tracers).items() if t != "nop"}
    if on:
        says = f"{next(iter(on.values()))} in {next(iter(on))}"
        return failed(says, *(Sighting(p, t) for p, t in on.items()))
    if refused:
        return unknown("only partly readable", *refused)
    if context.text(above) is None:
        return unknown(absent(kind, context).message, *context.refusals(above))
    return passed("none traces", Sighting(above, "no instance that traces"))


def clock_cost(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check by measuring: what a look at the clock costs, and its resolution if known.

    Key: `good_ns`, the cost that is still good.
    """
    seen = context.observed
    if seen.clock_cost_ns is None:
        return unknown("not measured: only on this machine, or over SSH")
    steps = seen.clock_resolution_ns
    says = f"{seen.clock_cost_ns} ns" + (f", in steps of {steps} ns" if steps else "")
    evidence = Sighting("clock_gettime(CLOCK_MONOTONIC), measured", says)
    bad = seen.clock_cost_ns > kind.args["good_ns"] or (steps or 1) > 1
    return (failed if bad else passed)(says, evidence)


def undervoltage(kind: CheckKind, context: AuditContext) -> Answer:
    """Check by the alarm of a Raspberry Pi's firmware (raspberrypi-hwmon.rst)."""
    names = context.matching(kind.paths[0])
    for path, name in names.items():
        if name != "rpi_volt":
            continue
        alarm = path.replace("/name", "/in0_lcrit_alarm")
        text = context.text(alarm)
        if text in ("0", "1"):
            evidence = Sighting(alarm, text)
            if text == "1":
                return failed("the supply voltage was too low", evidence)
            return passed("no alarm", evidence)
        return unknown("the alarm cannot be read", *context.refusals(alarm))
    model = context.words(kind.paths[2])
    if "Raspberry Pi" in model:
        return unknown("a Raspberry Pi whose kernel has no driver for the alarm")
    return absent(kind, context)


def isa_extension(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether every hart has an `extension`, by /proc/cpuinfo."""
    path = kind.paths[0]
    isas = re.findall(r"^isa\s*:\s*(\S+)", context.words(path), re.MULTILINE)
    if not isas:
        return unknown(f"{path} does not show the ISA", *context.refusals(path))
    wanted = kind.args["extension"]
    missing = [isa for isa in isas if wanted not in isa.split("_")]
    if missing:
        return failed(f"no {wanted}", *(Sighting(path, isa) for isa in missing[:4]))
    return passed(wanted, Sighting(path, isas[0]))


def lockdown(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the kernel is locked down, which hides settings also from root."""
    text = context.text(LOCKDOWN)
    if text is None:
        refused = context.refusals(LOCKDOWN)
        return unknown("not readable", *refused) if refused else _lockdown_seen(context)
    if "[none]" in text:
        return passed("none", Sighting(LOCKDOWN, text))
    if "[" not in text:
        return unknown("no mode is marked", Sighting(LOCKDOWN, text[:80]))
    return failed(text, Sighting(LOCKDOWN, text))


def _lockdown_seen(context: AuditContext) -> Answer:
    """Answer without securityfs: by the configuration, command line and kernel log."""
    seen = lockdown_of(context)
    if seen is not None:
        return failed(seen.message, seen.evidence)
    config = context.config
    if (
        config is not None
        and config.whole
        and not config.is_on("SECURITY_LOCKDOWN_LSM")
    ):
        name = "CONFIG_SECURITY_LOCKDOWN_LSM"
        return not_applicable(f"{config.source}: {name} is not set")
    return unknown(
        "securityfs is not mounted: mount -t securityfs none /sys/kernel/security"
    )


_PROCESSOR = re.compile(r"cpu|x86_pkg_temp|soc|acpitz", re.IGNORECASE)
_LIMITS = ("passive", "hot", "critical")
"""Trips at which something is done about it (sysfs-api.rst); `active` is a fan."""


def smi_count(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the firmware took the CPUs away while they were watched."""
    words = context.words(kind.paths[0]).split()
    if guest(context.machine).value:
        return not_applicable("a guest does not see the SMIs of its host")
    if words and "GenuineIntel" not in words:
        # It has them all the same (Documentation/trace/hwlat_detector.rst).
        return unknown(
            "only Intel processors count SMIs; look for their gaps: rtla hwnoise"
        )
    seen = context.observed
    if not seen.smi_after:
        return unknown(seen.why_no_smi)
    if not seen.window_ns:
        return unknown("no observation window (--observe 0)")
    came = {
        path: after - seen.smi_before[path]
        for path, after in seen.smi_after.items()
        if path in seen.smi_before
    }
    window = f"in {seen.window_ns / NS_PER_S:.1f} s"
    sightings = [
        Sighting(path, f"{count} {window}, {seen.smi_after[path]} since the reset")
        for path, count in list(came.items())[:16]
    ]
    if any(came.values()):
        # An SMI stops all CPUs together, and each of them counts it.
        return failed(f"{max(came.values())} {window}", *sightings)
    if not came:
        return unknown("no CPU's counter could be read twice")
    return passed(f"none {window}", *sightings)


def temperature(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check how far a processor is from the heat at which it is slowed down.

    Key: `margin_mc`, the distance that is still good, in thousandths of a degree.
    """
    zones = [
        path.removesuffix("/type")
        for path, text in context.matching(kind.paths[0]).items()
        if _PROCESSOR.search(text)
    ]
    if not zones:
        return absent(kind, context)
    near, seen = [], []
    for zone in zones:
        limit, now = (
            _limit_mc(context, zone),
            _millidegrees(context.text(f"{zone}/temp")),
        )
        if limit is None or now is None:
            continue
        said = Sighting(f"{zone}/temp", f"{now / 1000:.0f} of {limit / 1000:.0f} C")
        seen.append(said)
        if limit - now < int(kind.args["margin_mc"]):
            near.append(said)
    if near:
        return failed(near[0].value, *near)
    if not seen:
        refused = context.refusals(*kind.paths)
        return unknown("no processor's zone shows a temperature and a limit", *refused)
    return passed(seen[0].value, *seen)


def _limit_mc(context: AuditContext, zone: str) -> int | None:
    limits = [
        limit
        for path, kind_of_trip in context.matching(f"{zone}/trip_point_*_type").items()
        if kind_of_trip in _LIMITS
        and (limit := _millidegrees(context.text(path.replace("_type", "_temp"))))
        # Trips that nobody has set are 0 or below.
        and limit > 0
    ]
    return min(limits, default=None)


def _millidegrees(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"-?\d{1,9}", text) else None


# --- firmware: whether the kernel calls it, and for how long ------------------------

EFI_BITS = "/sys/firmware/efi/fw_platform_size"
"""The kernel makes it if EFI firmware started it (drivers/firmware/efi/efi.c)."""
EFI_WORKERS = "/sys/devices/virtual/workqueue/efi_runtime/cpumask"
"""Where calls run; only newer kernels have it, and only if the services are on."""

_EFI_OPTION = "EFI_DISABLE_RUNTIME"
_EFI_BANNER = re.compile(r"\befi: EFI v\d")


def efi_runtime(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the kernel may call EFI firmware, and on which CPUs."""
    if context.config is not None and context.config.lacks("EFI"):
        where = f"{context.config.source}: CONFIG_EFI is not set"
        return not_applicable(where)
    if context.text(EFI_WORKERS) is not None:
        return _efi_workers(context)
    enabled, evidence = _efi_enabled(context)
    if enabled is False:
        return passed("disabled", evidence)
    started = True if context.alone else _started_by_efi(context)
    if started is False:
        return not_applicable("EFI firmware did not start this kernel")
    if started is None:
        return unknown(
            f"no {EFI_BITS}, and the kernel log does not reach back to the boot"
        )
    if enabled is None:
        return unknown(evidence.value, evidence)
    if context.alone:
        return failed("enabled, if EFI firmware starts this kernel", evidence)
    return failed("enabled", evidence)


def _efi_workers(context: AuditContext) -> Answer:
    text = context.words(EFI_WORKERS)
    cpus, apart, there = masked(text), set_apart(context), online(context)
    evidence = Sighting(EFI_WORKERS, text[:80])
    if cpus is not None and there is not None:
        cpus &= there
    if not cpus:
        return unknown("enabled, but their CPUs are unknown", evidence)
    if apart is None:
        return failed("enabled, and no CPU is set apart", evidence)
    if cpus & apart:
        return failed(f"enabled, also on CPU {format_cpulist(cpus & apart)}", evidence)
    return passed(f"enabled, on CPU {format_cpulist(cpus)} only", evidence)


def _efi_enabled(context: AuditContext) -> tuple[bool | None, Sighting]:
    """Return whether the services are on if there are any; None: unknown, and why."""
    cmdline = context.words(CMDLINE).partition(" -- ")[0]
    enabled, evidence = _efi_by_config(context)
    for word in cmdline.split():
        options = word.removeprefix("efi=").split(",") if "=" in word else [word]
        if word == "noefi" or (word.startswith("efi=") and "noruntime" in options):
            enabled, evidence = False, Sighting(CMDLINE, word)
        # The kernel looks for this one second, in the same word too.
        if word.startswith("efi=") and "runtime" in options:
            enabled, evidence = True, Sighting(CMDLINE, word)
    return enabled, evidence


def _efi_by_config(context: AuditContext) -> tuple[bool | None, Sighting]:
    config = context.config
    if config is None:
        why = f"no configuration: {context.kernel.config_source}"
        return None, Sighting("kernel configuration", why)
    name = f"CONFIG_{_EFI_OPTION}"
    if config.is_on(_EFI_OPTION):
        return False, Sighting(config.source, f"{name}=y")
    # Kernels that had not this option yet had another rule for PREEMPT_RT.
    if name in config.options or (config.whole and context.kernel.preempt_rt is False):
        return True, Sighting(config.source, f"{name} is not set")
    return None, Sighting(config.source, f"it does not mention {name}")


def _started_by_efi(context: AuditContext) -> bool | None:
    if context.machine.exists(EFI_BITS):
        return True
    log = context.observed.kernel_log or ""
    if _EFI_BANNER.search(log):
        return True
    return False if FROM_BOOT.search(log) else None
