"""`rtscope audit --unit`: a unit of systemd, on a machine or from a file."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rtscope.audit.context import refuse_absent
from rtscope.audit.examine import auditing_a_unit, examine, read_context
from rtscope.audit.unit import Unit, UnitThread, load_unit, processes_of
from rtscope.cli.audit import AuditRequest
from rtscope.cli.kernelverify import fails, show_checks
from rtscope.cli.tasks import look
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import Reader, read, text_of
from rtscope.report.escape import printable
from rtscope.target import Target
from rtscope.target.address import address_of, open_target

FIRST_PROCESS = "/proc/1/comm"


def audit_unit(request: AuditRequest, name: str) -> int:
    """Check a unit; 1 if a check of at least the severity `fail_on` fails."""
    with _machine(request.target, request.root) as (reader, machine):
        unit = load_unit(name, reader)
        unit = _with_threads(unit, reader, machine)
        kinds = auditing_a_unit()
        context = read_context(
            reader, kinds, profile=request.profile, cpus=request.cpu_list
        )
    refuse_absent(context)
    checks = examine(replace(context, unit=unit), kinds)
    what = printable(f"{unit.name} ({', '.join(unit.files)})")
    show_checks(checks, context, what=what, json=request.json)
    return fails(checks, request.fail_on)


@contextlib.contextmanager
def _machine(
    target: str | None, root: Path | None
) -> Iterator[tuple[Reader, Target | None]]:
    if root is not None:
        yield FileReader(root), None
        return
    with open_target(address_of(target), may_ask=False) as machine:
        yield machine.reader, machine


def _with_threads(unit: Unit, reader: Reader, machine: Target | None) -> Unit:
    """Add the threads of the unit, or the reason why they are unknown."""
    why = _why_no_threads(unit, reader, machine)
    if why or machine is None:
        return replace(unit, why_no_threads=why)
    processes = processes_of(unit, reader)
    threads = look(machine).threads if processes else ()
    return replace(
        unit,
        threads=tuple(
            UnitThread(t.line.tid, t.name, t.line.policy, t.line.priority, cpus=t.cpus)
            for t in threads
            if t.line.pid in processes
        ),
    )


def _why_no_threads(unit: Unit, reader: Reader, machine: Target | None) -> str:
    if machine is None:
        return "a captured file tree has no threads"
    if not unit.installed:
        return "this is a file; to compare its threads, name the installed unit"
    first = text_of(read(reader, FIRST_PROCESS))
    if first != "systemd":
        return f"systemd does not run here: process 1 is {first or 'unknown'}"
    return ""
