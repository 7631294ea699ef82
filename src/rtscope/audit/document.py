"""Answered checks as a JSON document: for --json, and beside a record."""

from collections.abc import Sequence
from typing import Any

from rtscope.audit.model import Check, Outcome
from rtscope.machine.kernelidentity import KernelIdentity


def checks_document(
    checks: Sequence[Check], *, of: str, kernel: KernelIdentity
) -> dict[str, Any]:
    """Return checks with stable ids, outcome, severity, evidence and remedy."""
    return {
        "of": of,
        "kernel": {
            "release": kernel.release,
            "preempt_rt": kernel.preempt_rt,
            "preemption_model": kernel.preemption_model,
            "config_digest": kernel.config.digest if kernel.config else None,
        },
        "summary": {o.value: sum(c.outcome is o for c in checks) for o in Outcome},
        "checks": [check_row(check) for check in checks],
    }


def check_row(check: Check) -> dict[str, object]:
    """Return a check for a JSON document."""
    kind = check.kind
    return {
        "id": kind.id,
        "title": kind.title,
        "outcome": check.outcome.value,
        "severity": check.severity.name.lower(),
        "says": check.says,
        "expects": kind.expects,
        "evidence": [{"where": e.where, "what": e.what} for e in check.evidence],
        "why": kind.why,
        "source": kind.source,
        "remedy": kind.remedy,
        "lasting": kind.lasting,
        "risk": kind.risk,
    }
