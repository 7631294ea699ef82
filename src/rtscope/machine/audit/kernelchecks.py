"""
Checks of the kernel: its configuration, its command line, its log, any file's value.

Most rows of `checks/*.toml` need no more than `config` and `value`.
"""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from rtscope.host.errors import first_of
from rtscope.machine import kernelidentity
from rtscope.machine.audit.context import (
    LOG,
    Answer,
    AuditContext,
    absent,
    failed,
    not_applicable,
    noted,
    online,
    passed,
    unknown,
)
from rtscope.machine.audit.model import CheckKind, CheckOutcome, Sighting
from rtscope.machine.kernelconfig import KernelConfig, oddities
from rtscope.machine.kernelidentity import BANNER, CMDLINE, boot_values, turned_off
from rtscope.machine.kernelimage import build_id_in

MAX_NAMES = 6
MAX_SIGHTINGS = 40


def config(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check by the kernel's configuration.

    Keys: `on` (must be y), `off` (must not be set), `is` (option = value), `needs`
    (options without which the check means nothing).
    """
    kernel_config = context.config
    if kernel_config is None:
        return unknown(f"no configuration: {context.kernel.config_source}")
    for name in kind.args.get("needs", ()):
        if _value(kernel_config, name) == "n":
            return not_applicable(f"{name} is not set")
    wrong, right, unseen = _compare(kernel_config, _wanted(kind))
    if wrong:
        return failed(_listed(wrong), *_lines(kernel_config, wrong))
    if unseen:
        return unknown(
            f"{kernel_config.source} is not a whole configuration and does not mention "
            f"{_listed(unseen)}"
        )
    return passed(_listed(right), *_lines(kernel_config, right))


def rt_prerequisites(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check by the configuration that PREEMPT_RT stays in it; keys as `config`.

    What make wrote is evidence: a dependency that is off was none in that source.
    """
    by_config, kernel_config = config(kind, context), context.config
    if by_config.outcome is not CheckOutcome.FAIL or kernel_config is None:
        return by_config
    off = [name for name in kind.args["on"] if kernel_config.lacks(name)]
    if not all(map(kernel_config.was_made_with, off)):
        return by_config
    says = (
        f"{by_config.message}, and make wrote PREEMPT_RT=y with all that follows from "
        "it: in this source, a patched one, PREEMPT_RT does not depend on that"
    )
    return noted(says, *by_config.evidence)


def config_lines(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the configuration says one thing of each symbol."""
    kernel_config = context.config
    if kernel_config is None:
        return unknown(f"no configuration: {context.kernel.config_source}")
    odd = [one for one in oddities(kernel_config) if one != kernel_config.prefix]
    if not odd:
        says = f"{len(kernel_config.options)} symbols, each on one line"
        if kernel_config.prefix:  # of the mail or log around it, which is no fault
            says += f"; {kernel_config.prefix}"
        return passed(says, Sighting(kernel_config.source, "read"))
    more = f"; and {len(odd) - 1} more" if len(odd) > 1 else ""
    sightings = [Sighting(kernel_config.source, one) for one in odd[:MAX_SIGHTINGS]]
    return failed(f"{odd[0]}{more}", *sightings)


def high_resolution(kind: CheckKind, context: AuditContext) -> Answer:
    """Check by the configuration (`on`), and whether the command line turns it off."""
    by_config = config(kind, context)
    off = turned_off(context.words(CMDLINE), "highres")
    if off and by_config.outcome is CheckOutcome.PASS:
        return failed(f"turned off by {off}", Sighting(CMDLINE, off))
    return by_config


def tick_mode(kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the tick of an idle CPU goes on, by configuration or `nohz=`."""
    full = boot_values(context.words(CMDLINE), "nohz_full")
    off = turned_off(context.words(CMDLINE), "nohz")
    if full and off:
        return failed(
            f"{off} disables nohz_full=",
            Sighting(CMDLINE, f"{off} nohz_full={full[-1]}"),
        )
    if full:
        return not_applicable("nohz_full= needs a tick that stops")
    if off:
        return passed(off, Sighting(CMDLINE, off))
    return config(kind, context)


def value(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check by what files say: each that is there must have a good value.

    Keys: `good` (values, or patterns of the shell), or instead of it `bad` and `known`
    (what a file may say at all; anything else is unknown), `absent`
    (why it does not apply if there is no such file; without it that is unknown),
    `needs` (options without which no kernel has such a file: where a configuration
    lacks one, it does not apply), `missing` (why that may be), `hidden_by` (the mode
    of kernel lockdown that takes the file away).
    """
    pattern = kind.paths[0]
    refused, texts = context.refusals(pattern), context.matching(pattern)
    if not texts and not refused:
        return absent(kind, context)
    wrong = {path: text for path, text in texts.items() if not _is_good(kind, text)}
    if wrong:
        return failed(_values(wrong), *_seen(wrong))
    if refused:
        return unknown("only partly readable", *refused)
    odd = {path: text for path, text in texts.items() if not _is_known(kind, text)}
    if odd:
        return unknown(f"not understood: {_values(odd)}", *_seen(odd))
    return passed(_values(texts), *_seen(texts))


def preempt_rt(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether this is PREEMPT_RT, by all witnesses."""
    kernel = context.kernel
    if kernel.preempt_rt is None:
        return unknown(kernel.how)
    evidence = _witnesses(context)
    return (passed if kernel.preempt_rt else failed)(kernel.how, *evidence)


def preemption_model(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check how a kernel that is not PREEMPT_RT preempts."""
    kernel = context.kernel
    if kernel.preempt_rt:
        return not_applicable("the kernel is PREEMPT_RT")
    if kernel.preemption_model is None:
        return unknown(kernel.model_how)
    says = f"{kernel.preemption_model}: {kernel.model_how}"
    good = kernel.preemption_model in ("full", "lazy")
    return (passed if good else failed)(says, *_witnesses(context))


def same_kernel(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the running kernel is the one that was built."""
    wanted = context.expected
    if wanted is None:
        return not_applicable("no kernel was named to compare it with")
    config_digest = context.config.digest if context.config else None
    seen = {
        "build ID": (wanted.build_id, _build_id(context)),
        "version": (wanted.banner, context.text(BANNER)),
        "configuration": (wanted.config_digest, config_digest),
    }
    known = {name: pair for name, pair in seen.items() if None not in pair}
    if not known:
        return unknown(
            f"neither {wanted.name} nor the machine has a build ID, a version or a "
            "configuration to compare"
        )
    evidence = [
        Sighting(name, f"running {_short(got)}, built {_short(built)}")
        for name, (built, got) in known.items()
    ]
    other = [name for name, (built, got) in known.items() if built != got]
    if other:
        return failed(f"not {wanted.name}: another {', '.join(other)}", *evidence)
    return passed(f"the {', the '.join(known)} of {wanted.name}", *evidence)


NOTES = "/sys/kernel/notes"


def _build_id(context: AuditContext) -> str | None:
    notes = context.machine.raw(NOTES)
    return build_id_in(notes) if notes is not None else None


def _wanted(kind: CheckKind) -> Mapping[str, str]:
    on: Sequence[str] = kind.args.get("on", ())
    off: Sequence[str] = kind.args.get("off", ())
    values: Mapping[str, Any] = kind.args.get("is", {})
    wanted = dict.fromkeys(on, "y") | dict.fromkeys(off, "n")
    return wanted | {name: str(v) for name, v in values.items()}


def _compare(
    config: KernelConfig, wanted: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    wrong: dict[str, str] = {}
    right: dict[str, str] = {}
    unseen: dict[str, str] = {}
    for name, want in wanted.items():
        got = _value(config, name)
        if got is None:
            unseen[name] = want
        else:
            (right if got == want else wrong)[name] = got
    return wrong, right, unseen


def _value(config: KernelConfig, name: str) -> str | None:
    """Return an option's value; what a whole configuration leaves out is not set."""
    return config.options.get(f"CONFIG_{name}", "n" if config.whole else None)


def _listed(options: Mapping[str, str]) -> str:
    return first_of(MAX_NAMES, [f"{name}={value}" for name, value in options.items()])


def _lines(config: KernelConfig, options: Mapping[str, str]) -> list[Sighting]:
    return [
        Sighting(
            config.source,
            f"CONFIG_{name}={value}" if value != "n" else f"CONFIG_{name} is not set",
        )
        for name, value in options.items()
    ]


def _is_good(kind: CheckKind, text: str) -> bool:
    if "bad" in kind.args:
        return not any(fnmatchcase(text, bad) for bad in kind.args["bad"])
    return any(fnmatchcase(text, good) for good in kind.args["good"])


def _is_known(kind: CheckKind, text: str) -> bool:
    known = kind.args.get("known", ["*"])
    return any(fnmatchcase(text, one) for one in known)


def _values(files: Mapping[str, str]) -> str:
    kinds = list(dict.fromkeys(files.values()))
    texts = (" ".join(text[:80].split()) for text in kinds[:MAX_NAMES])
    examples = ", ".join(text or "empty" for text in texts)
    where = next(iter(files)) if len(files) == 1 else f"{len(files)} files"
    return f"{examples} in {where}"


def _seen(files: Mapping[str, str]) -> list[Sighting]:
    return [Sighting(path, text[:200]) for path, text in files.items()]


def _witnesses(context: AuditContext) -> tuple[Sighting, ...]:
    kernel = context.kernel
    witnesses = [Sighting("uname -v", kernel.version)] if kernel.version else []
    config_ = kernel.config
    if config_ is not None:
        witnesses += [
            Sighting(config_.source, f"{name}={value}")
            for name, value in config_.options.items()
            if name in MODELS and value == "y"
        ]
    return tuple(witnesses)


MODELS = tuple(
    f"CONFIG_{name}"
    for name in (
        *("PREEMPT_RT", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_VOLUNTARY"),
        *("PREEMPT_NONE", "PREEMPT_DYNAMIC"),
    )
)


def _short(text: str | None) -> str:
    return (text or "")[:60]


FROM_BOOT = re.compile(r"^(?:\[ *0\.\d+\] )?Linux version ", re.MULTILINE)

# From boot loaders and distributions, for others than the kernel; nokaslr is for what
# unpacks an x86 kernel (arch/x86/boot/compressed/kaslr.c), which calls it unknown.
_HARMLESS = ("BOOT_IMAGE=", "splash", "nokaslr")


def parameters_absent(kind: CheckKind, context: AuditContext) -> Answer:
    """Check that no word of `parameters`, `name`, `name=` or `name=value`, is there."""
    cmdline = context.text(CMDLINE)
    if cmdline is None:
        return unknown(f"no {CMDLINE}", *context.refusals(CMDLINE))
    words = cmdline.partition(" -- ")[0].split()
    there = [w for w in words if any(_is(w, p) for p in kind.args["parameters"])]
    if there:
        return failed(", ".join(there), *(Sighting(CMDLINE, word) for word in there))
    return passed("none of them", Sighting(CMDLINE, f"{len(words)} parameters"))


def boot_parameter(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check the last value of a boot parameter.

    Keys: `parameter`, `good` (patterns of its value), `cpus` (with fewer CPUs online
    it does not matter).
    """
    there = online(context)
    if there is not None and len(there) < int(kind.args.get("cpus", 1)):
        return not_applicable(f"{len(there)} CPU is online")
    cmdline = context.text(CMDLINE)
    if cmdline is None:
        return unknown(f"no {CMDLINE}", *context.refusals(CMDLINE))
    name = kind.args["parameter"]
    *_, last = ("", *boot_values(cmdline, name))
    says = f"{name}={last}" if last else f"no {name}="
    good = any(fnmatchcase(last, pattern) for pattern in kind.args["good"])
    return (passed if good else failed)(says, Sighting(CMDLINE, says))


def forced_threads(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check whether the handlers of interrupts run in threads."""
    config, cmdline = context.config, context.text(CMDLINE)
    if context.kernel.preempt_rt:
        return not_applicable("PREEMPT_RT always runs them in threads")
    if context.kernel.preempt_rt is None:
        return unknown(context.kernel.how)
    if cmdline is None:
        return unknown(f"no {CMDLINE}", *context.refusals(CMDLINE))
    name = "CONFIG_IRQ_FORCED_THREADING"
    if config is not None and config.lacks(name.removeprefix("CONFIG_")):
        evidence = Sighting(config.source, f"{name} is not set")
        return failed("this kernel cannot", evidence)
    words = cmdline.partition(" -- ")[0].split()
    parameters = [w for w in words if w.partition("=")[0] == "threadirqs"]
    if parameters:
        return passed(parameters[0], Sighting(CMDLINE, parameters[0]))
    return failed("no threadirqs", Sighting(CMDLINE, "no threadirqs"))


def mitigations(kind: CheckKind, context: AuditContext) -> Answer:
    """Check which weaknesses of the processor the kernel makes up for, at a cost."""
    pattern = kind.paths[0]
    refused, texts = context.refusals(pattern), context.matching(pattern)
    if not texts and not refused:
        return absent(kind, context)
    kinds: dict[str, dict[str, str]] = {}
    for path, text in texts.items():
        found = next((n for n, is_it in _WEAKNESSES if is_it.search(text)), "unknown")
        kinds.setdefault(found, {})[path] = text
    rest = [
        f"{found}: {', '.join(path.rpartition('/')[2] for path in kinds[found])}"
        for found in _TOLD
        if found in kinds
    ]
    paid = kinds.get("in force", {}) | kinds.get("vulnerable in part", {})
    if paid:
        listed = ", ".join(path.rpartition("/")[2] for path in paid)
        says = "; ".join([f"{len(paid)} in force: {listed}", *rest])
        return failed(says, *_seen(paid | kinds.get("vulnerable", {})))
    if refused:
        return unknown("only partly readable", *refused)
    if odd := kinds.get("unknown", {}) | kinds.get("for virtual machines alone", {}):
        return unknown("neither in force nor needless", *_seen(odd))
    return passed("; ".join(["none in force", *rest]), *_seen(texts))


_TOLD = (
    *("vulnerable in part", "vulnerable", "unknown"),
    "for virtual machines alone",
)
# drivers/base/cpu.c and arch/*/kernel/cpu/bugs.c; of KVM stands before some.
_WEAKNESSES = (
    ("not affected", re.compile(r"^Not affected")),
    ("vulnerable", re.compile(r"^(?:KVM: |Processor )?[Vv]ulnerable")),
    ("vulnerable in part", re.compile(r"^Mitigation.*[Vv]ulnerable")),
    ("in force", re.compile(r"^Mitigation")),
    ("for virtual machines alone", re.compile(r"^KVM: Mitigation")),
)


def unknown_parameters(_kind: CheckKind, context: AuditContext) -> Answer:
    """Check by the kernel's own message on parameters that it does not know."""
    log = context.observed.kernel_log
    if log is None:
        return unknown(context.observed.why_no_log)
    message = kernelidentity.unknown_parameters(log)
    if message is None:
        if FROM_BOOT.search(log):
            return passed("the kernel knows all of them", Sighting(LOG, "from boot on"))
        return unknown("the kernel log no longer reaches back to the boot")
    words = kernelidentity.words_in(message)
    bad = [word for word in words if not word.startswith(_HARMLESS)]
    if bad:
        return failed(", ".join(bad), Sighting(LOG, message[:400]))
    return passed("the kernel knows all of them", Sighting(LOG, message[:400]))


def log_without(kind: CheckKind, context: AuditContext) -> Answer:
    """
    Check that no line of the kernel log has one of the `patterns`.

    Key: `notes`, patterns of messages that are worth knowing and no fault.
    """
    log = context.observed.kernel_log
    if log is None:
        return unknown(context.observed.why_no_log)
    for key, answered in (("patterns", failed), ("notes", noted)):
        lines = _lines_with(kind.args.get(key, ()), log)
        if lines:
            count = "1 message" if len(lines) == 1 else f"{len(lines)} messages"
            sightings = [Sighting(LOG, line[:200]) for line in lines[:5]]
            return answered(f"{count}: {lines[0][:160]}", *sightings)
    if FROM_BOOT.search(log):
        return passed("no such message since the boot", Sighting(LOG, "read"))
    return unknown("no such message, but the log does not reach back to the boot")


def _lines_with(patterns: Sequence[str], log: str) -> list[str]:
    pattern = re.compile("|".join(patterns) or r"(?!)")
    return [line for line in log.splitlines() if pattern.search(line)]


def _is(word: str, parameter: str) -> bool:
    # The kernel takes a dash for an underscore (kernel-parameters.rst).
    word = word.replace("-", "_")
    return word.startswith(parameter) if parameter.endswith("=") else word == parameter
