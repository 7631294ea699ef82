"""Checks of the firmware: whether the kernel calls it, and for whom that takes time."""

import re

from rtscope.machine.audit.answers import (
    Answer,
    failed,
    not_applicable,
    passed,
    unknown,
)
from rtscope.machine.audit.context import AuditContext, masked, online, set_apart
from rtscope.machine.audit.kernelchecks import FROM_BOOT
from rtscope.machine.audit.model import CheckKind, Sighting
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.kernelidentity import CMDLINE

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
