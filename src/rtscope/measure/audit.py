"""
Audit a machine before each run: `audit.json`, and a caveat for severe failures.

The audit only reads and does not wait. If it fails, the run gets a caveat and goes on.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rtscope.host.version import __version__
from rtscope.machine.audit.context import AuditContext, Observed
from rtscope.machine.audit.examine import auditing, examine, read_context
from rtscope.machine.audit.model import Check, CheckKind, Severity, checks_document
from rtscope.machine.audit.observe import observe_here
from rtscope.machine.reader import Reader
from rtscope.record.caveats.catalogue import Caveat, make

FILE = "audit.json"

LEFT_OUT = "rights"
"""This group is skipped: the agent has its own rights, and reports a missing one."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit."""

    document: bytes | None
    """For FILE; None if there was no audit."""
    caveats: tuple[Caveat, ...]


def run_checks(*, config_only: bool = False) -> list[CheckKind]:
    """Return the checks to make before a run."""
    kinds = auditing(config_only=config_only)
    return [kind for kind in kinds if kind.group != LEFT_OUT]


def audit_before(
    reader: Reader, *, target: str, cpus: tuple[int, ...] | None, here: bool
) -> AuditResult:
    """
    Audit a machine for a run on some of its CPUs; None: its isolated CPUs.

    `here`: it is this machine, so read its kernel log and clock too.
    """
    try:
        seen = observe_here(Observed(), trial=False) if here else Observed()
        kinds = run_checks()
        context = read_context(reader, kinds, cpus=cpus, observed=seen)
        return audit_files(context, kinds, target=target)
    except Exception as error:
        return failed_audit(error)


def audit_files(
    context: AuditContext, kinds: Iterable[CheckKind], *, target: str
) -> AuditResult:
    """Check the files of a machine, or the kernel of a virtual board."""
    checks = examine(context, kinds, observed_first=True)
    document = {
        "rtscope": __version__,
        "profile": context.profile.value,
        "cpus": None if context.cpus is None else list(context.cpus),
        **checks_document(checks, target=target, kernel=context.kernel),
    }
    content = json.dumps(document, indent=1).encode() + b"\n"
    return AuditResult(content, tuple(_caveats(checks)))


def failed_audit(error: Exception) -> AuditResult:
    """Return no document, and a caveat with the reason."""
    why = str(error) or type(error).__name__
    return AuditResult(None, (make("audit_missing", why),))


def _caveats(checks: Iterable[Check]) -> Iterator[Caveat]:
    """Yield one caveat for all severe failures; the document has the others too."""
    grave: dict[Severity, list[str]] = {}
    for check in checks:
        if check.failed and check.severity >= Severity.HIGH:
            grave.setdefault(check.severity, []).append(check.kind.id)
    if grave:
        parts = [
            f"{severity.name.lower()}: {', '.join(names)}"
            for severity, names in sorted(grave.items(), reverse=True)
        ]
        yield make("audit_failed", "; ".join(parts))
