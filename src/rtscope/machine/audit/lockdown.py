"""
Which mode of kernel lockdown is in force, as far as a file, words or the log show it.

A locked down kernel refuses to be changed or read out, even by root. Each mode refuses
what the weaker one does too (`enum lockdown_reason` of include/linux/security.h).
"""

import re
from dataclasses import dataclass

from rtscope.machine.audit.context import LOCKDOWN, AuditContext
from rtscope.machine.audit.model import LockdownMode, Sighting
from rtscope.machine.kernelidentity import CMDLINE, boot_values

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
