"""Judges of the kernel's command line and of what the kernel logged."""

import re

from rtscope.audit.model import Answer, CheckKind, Evidence, failed, passed, unknown
from rtscope.audit.scene import Scene
from rtscope.machine.kernelidentity import CMDLINE

LOG = "kernel log"
_UNKNOWN = re.compile(r'Unknown kernel command line parameters "([^"\n]*)"')
_FROM_BOOT = re.compile(r"^(?:\[ *0\.\d+\] )?Linux version ", re.MULTILINE)

# From boot loaders and distributions, for others than the kernel; nokaslr is for what
# unpacks an x86 kernel (arch/x86/boot/compressed/kaslr.c), which calls it unknown.
_HARMLESS = ("BOOT_IMAGE=", "splash", "nokaslr")


def parameters_absent(kind: CheckKind, scene: Scene) -> Answer:
    """Judge that no word of `parameters`, `name`, `name=` or `name=value`, is there."""
    cmdline = scene.text(CMDLINE)
    if cmdline is None:
        return unknown(f"no {CMDLINE}", *scene.refusals(CMDLINE))
    words = cmdline.partition(" -- ")[0].split()
    there = [w for w in words if any(_is(w, p) for p in kind.args["parameters"])]
    if there:
        return failed(", ".join(there), *(Evidence(CMDLINE, word) for word in there))
    return passed("none of them", Evidence(CMDLINE, f"{len(words)} parameters"))


def unknown_parameters(_kind: CheckKind, scene: Scene) -> Answer:
    """Judge by the kernel's own word on parameters that it did not understand."""
    log = scene.observed.kernel_log
    if log is None:
        return unknown(scene.observed.why_no_log)
    found = _UNKNOWN.search(log)
    if found is None:
        if _FROM_BOOT.search(log):
            return passed("the kernel knows all of them", Evidence(LOG, "from boot on"))
        return unknown("the kernel log no longer reaches back to the boot")
    words = [w for w in found[1].split() if not w.startswith(_HARMLESS)]
    if words:
        return failed(", ".join(words), Evidence(LOG, found[0][:400]))
    return passed("the kernel knows all of them", Evidence(LOG, found[0][:400]))


def log_without(kind: CheckKind, scene: Scene) -> Answer:
    """Judge that no line of the kernel log has one of the `patterns`."""
    log = scene.observed.kernel_log
    if log is None:
        return unknown(scene.observed.why_no_log)
    pattern = re.compile("|".join(kind.args["patterns"]))
    lines = [line for line in log.splitlines() if pattern.search(line)]
    if lines:
        count = "1 message" if len(lines) == 1 else f"{len(lines)} messages"
        shown = [Evidence(LOG, line[:200]) for line in lines[:5]]
        return failed(f"{count}: {lines[0][:160]}", *shown)
    if _FROM_BOOT.search(log):
        return passed("nothing of the kind since the boot", Evidence(LOG, "read"))
    return unknown("nothing of the kind in a log that does not reach back to the boot")


def _is(word: str, parameter: str) -> bool:
    # The kernel takes a dash for an underscore (kernel-parameters.rst).
    word = word.replace("-", "_")
    return word.startswith(parameter) if parameter.endswith("=") else word == parameter


JUDGES = (parameters_absent, unknown_parameters, log_without)
