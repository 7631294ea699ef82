"""From a machine, a captured tree, a configuration or an image to answered checks."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from importlib import resources
from inspect import get_annotations
from typing import Any

from pydantic import TypeAdapter

from rtscope.machine import kernelidentity
from rtscope.machine.audit import (
    cachechecks,
    cpuchecks,
    interruptchecks,
    kernelchecks,
    machinechecks,
    sessionchecks,
    threadchecks,
    unitchecks,
)
from rtscope.machine.audit.context import (
    CPU_SETS,
    LOCKDOWN,
    Answer,
    AuditContext,
    CheckFunction,
    Expected,
    Observed,
    lockdown_of,
    not_applicable,
    unknown,
)
from rtscope.machine.audit.kernelchecks import NOTES
from rtscope.machine.audit.model import (
    Check,
    CheckKind,
    CheckOutcome,
    LockdownMode,
    Profile,
    Severity,
    worst_first,
)
from rtscope.machine.facts import catalogue as catalogue_of_facts
from rtscope.machine.guest import CPUINFO
from rtscope.machine.kernelconfig import KernelConfig
from rtscope.machine.kernelidentity import KernelIdentity, is_release_since
from rtscope.machine.reader import Content, Reader
from rtscope.machine.snapshot import MachineSnapshot

# --- the checks that there are: one TOML file for each group in `checks/` -------------

_MODULES = (
    *(cachechecks, cpuchecks, interruptchecks),
    *(kernelchecks, machinechecks, sessionchecks, threadchecks, unitchecks),
)

FUNCTIONS: Mapping[str, CheckFunction] = {
    name: function
    for module in _MODULES
    for name, function in vars(module).items()
    if not name.startswith("_")
    and getattr(function, "__module__", "") == module.__name__
    and get_annotations(function).get("return") is Answer
}
"""Every check function by the name that the rows of `checks/*.toml` use."""

_KIND = TypeAdapter(CheckKind)
_OWN_KEYS = {field.name for field in fields(CheckKind)}


@cache
def catalogue() -> Mapping[str, CheckKind]:
    """Return every check by its id, in the order of the files and their rows."""
    kinds: dict[str, CheckKind] = {}
    folder = resources.files("rtscope.machine.audit").joinpath("checks")
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".toml"):
            continue
        group = file.name.removesuffix(".toml")
        for name, row in tomllib.loads(file.read_text("utf-8")).items():
            if name in kinds:
                raise ValueError(f"{file.name}: {name} is there already")
            kinds[name] = parse_row(name, row, group=group)
    return kinds


def parse_row(name: str, row: Mapping[str, Any], *, group: str) -> CheckKind:
    """Make a check of a row; ValueError for a row that is wrong."""
    own = {key: value for key, value in row.items() if key in _OWN_KEYS}
    args = {key: value for key, value in row.items() if key not in _OWN_KEYS}
    function = own.setdefault("function", "config")
    if function not in FUNCTIONS:
        raise ValueError(f"{name}: there is no check function {function!r}")
    return _KIND.validate_python({**own, "id": name, "group": group, "args": args})


# --- from a machine, a captured tree, a configuration or an image to answered checks --

ARCH = "/proc/sys/kernel/arch"
"""As `uname -m` says it; since Linux 6.1."""

UNIT = "unit"
"""The group of checks that are about a unit of systemd, and not about the machine."""


def paths(kinds: Iterable[CheckKind]) -> list[str]:
    """Return what checks read, each once."""
    # Several checks ask whether this is a guest, as the facts beside a record do.
    wanted = [*catalogue_of_facts()["guest"].paths, NOTES, ARCH, LOCKDOWN, *CPU_SETS]
    wanted += [path for kind in kinds for path in kind.paths]
    return list(dict.fromkeys([*kernelidentity.PATHS, *wanted]))


def read_context(
    reader: Reader,
    kinds: Iterable[CheckKind],
    *,
    profile: Profile = Profile.CONTROL,
    cpus: tuple[int, ...] | None = None,
    expected: Expected | None = None,
    observed: Observed | None = None,
) -> AuditContext:
    """Read all that the checks need, in two round trips; raises TargetError."""
    observed = observed or Observed()
    files = reader.read_many(paths(kinds))
    log = observed.kernel_log or ""
    kernel = kernelidentity.identify(reader, files=files, kernel_log=log)
    if kernel.config and kernel.config.source not in files:
        # For a capture, which must hold all that was checked.
        files = {**files, **reader.read_many([kernel.config.source])}
    context = AuditContext(
        MachineSnapshot(files, kernel),
        profile=profile,
        cpus=cpus,
        expected=expected,
        observed=observed,
    )
    return replace(context, arch=context.text(ARCH) or _arch_by_files(files))


def context_of_config(
    config: KernelConfig,
    *,
    profile: Profile = Profile.CONTROL,
    banner: str | None = None,
    expected: Expected | None = None,
    of_build: bool = True,
) -> AuditContext:
    """
    Return what a configuration, or an image with its banner, shows by itself.

    `of_build`: make wrote it, even if it is an extract; not so of a file of a user.
    """
    kernel = kernelidentity.identify_config(config, banner=banner, of_build=of_build)
    files: dict[str, Content] = {}
    if banner:
        files[kernelidentity.BANNER] = banner.encode()
    return AuditContext(
        MachineSnapshot(files, kernel),
        profile=profile,
        arch=_arch_by_config(config),
        expected=expected,
        alone=True,
    )


def examine(
    context: AuditContext, kinds: Iterable[CheckKind], *, observed_first: bool = False
) -> list[Check]:
    """
    Answer the checks that fit the profile, worst first.

    With `observed_first` what the machine shows decides over how its kernel is built.
    """
    seen = lockdown_of(context)
    mode = seen.mode if seen is not None else LockdownMode.NONE
    checks = [
        replace(_answer(kind, context), lockdown=mode)
        for kind in kinds
        if context.profile in kind.profiles
    ]
    if observed_first:
        by_id = {check.kind.id: check for check in checks}
        checks = [_unless_observed(check, by_id) for check in checks]
    return worst_first(checks)


def auditing(*, config_only: bool = False) -> list[CheckKind]:
    """Return the checks of `rtscope audit`; those that a configuration answers."""
    return [
        kind
        for kind in catalogue().values()
        if kind.function != "same_kernel"
        and kind.group != UNIT
        and (kind.about_config or not config_only)
    ]


def auditing_a_unit() -> list[CheckKind]:
    """Return the checks of `rtscope audit --unit`."""
    return [kind for kind in catalogue().values() if kind.group == UNIT]


def _unless_observed(check: Check, by_id: Mapping[str, Check]) -> Check:
    seen = by_id.get(check.kind.observed_by)
    if not check.failed or seen is None or seen.outcome is CheckOutcome.UNKNOWN:
        return check
    return replace(
        check,
        outcome=CheckOutcome.NOT_APPLICABLE,
        message=f"{check.message}; the running machine decides ({seen.kind.title})",
    )


def verifying() -> list[CheckKind]:
    """Return the checks of `rtscope kernel verify`."""
    return [kind for kind in catalogue().values() if kind.verifies]


def _answer(kind: CheckKind, context: AuditContext) -> Check:
    answer = _gate(kind, context) or FUNCTIONS[kind.function](kind, context)
    if context.only_requested and kind.about_config:
        answer = _of_request(kind, answer)
    return Check(
        kind,
        Severity.INFO if answer.is_note else kind.severity_in(context.profile),
        answer.outcome,
        answer.message,
        answer.evidence,
    )


def _of_request(kind: CheckKind, answer: Answer) -> Answer:
    """Say of a fragment what it asks for: a pass needs what a build makes of it."""
    if answer.outcome is CheckOutcome.PASS and kind.function != "config_lines":
        says = f"it asks for {answer.message}; what a build makes of it is unknown"
        return unknown(says, *answer.evidence)
    if answer.outcome is CheckOutcome.FAIL and kind.function == "config":
        return replace(answer, message=f"it asks for {answer.message}")
    return answer


def _gate(kind: CheckKind, context: AuditContext) -> Answer | None:
    """Answer for a check that is not about this kernel or machine."""
    if context.alone and not kind.about_config and kind.function != "same_kernel":
        return unknown("needs a running machine")
    if kind.archs and context.arch is None:
        return unknown("unknown architecture")
    if kind.archs and context.arch not in kind.archs:
        return not_applicable(f"not on {context.arch}")
    if kind.files_decide and context.matching(kind.paths[0]):
        return None
    return _gate_by_version(kind, context.kernel)


def _gate_by_version(kind: CheckKind, kernel: KernelIdentity) -> Answer | None:
    for version, wanted in ((kind.since, True), (kind.until, False)):
        if version is None:
            continue
        is_since = is_release_since(kernel.release, version)
        text = f"Linux {version[0]}.{version[1]}"
        if is_since is None:
            return unknown(f"unknown whether this is {text} or later")
        if is_since is not wanted:
            return not_applicable(f"{'before' if wanted else 'since'} {text}")
    return None


# The option that each architecture's configuration always has.
_ARCH_OPTIONS = {
    "x86_64": "CONFIG_X86_64",
    "aarch64": "CONFIG_ARM64",
    "riscv64": "CONFIG_RISCV",
    "armv7l": "CONFIG_ARM",
}


def _arch_by_config(config: KernelConfig) -> str | None:
    for arch, option in _ARCH_OPTIONS.items():
        if config.options.get(option) == "y":
            return arch
    return None


def _arch_by_files(files: Mapping[str, Content]) -> str | None:
    """Guess from the CPU's own words where the kernel does not say it."""
    text = files.get(CPUINFO)
    if not isinstance(text, bytes):
        return None
    marks = {b"vendor_id": "x86_64", b"CPU implementer": "aarch64", b"isa\t": "riscv64"}
    return next((arch for mark, arch in marks.items() if mark in text), None)
