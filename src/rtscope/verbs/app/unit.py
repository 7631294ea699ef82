"""Write a systemd unit with the rights and limits that a running program uses."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import put, say
from rtscope.host.errors import TargetError, UsageError
from rtscope.host.escape import printable
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.machine.audit.examine import auditing_a_unit, examine, read_context
from rtscope.machine.audit.model import Severity
from rtscope.machine.audit.unit import merge
from rtscope.machine.reader import Reader
from rtscope.machine.target.address import address_of, open_target
from rtscope.verbs.app.needs import see_program
from rtscope.verbs.app.running import RunningProgram
from rtscope.verbs.app.service import service_of
from rtscope.verbs.app.unittext import render_unit
from rtscope.verbs.app.watch import find_process

FINDINGS_STATUS = 1
SUFFIX = ".service"


def unit(
    program: Annotated[str, typer.Argument(help="PID, or name, of a running process.")],
    *,
    target: Annotated[
        str,
        typer.Option(
            help="Running machine: local or ssh:HOST (default: local), e.g. ssh:board."
        ),
    ] = "local",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Unit to write (default: standard output), e.g. control.service."
        ),
    ] = None,
) -> int:
    """Write a systemd unit with the rights and limits that a running program uses.

    The program is looked at once, and not changed. The exit status is 1 if `rtscope
    audit --unit` would find something in the unit: then the program has it too. It is
    3, without a unit, if the command of the program could not be read.
    """
    if out is not None:
        if out.suffix != SUFFIX:
            raise UsageError(
                f"--out {out}: a unit that starts a program ends in {SUFFIX}: "
                f"--out {out.with_suffix(SUFFIX)}"
            )
        refuse_unwritable(out)
    with open_target(address_of(target)) as machine:
        pid = find_process(machine, program)
        seen = see_program(machine, pid)
        if not seen.executable or not seen.argv:
            raise TargetError(f"no unit for process {pid}: {_why_no_command(seen)}")
        text = render_unit(service_of(seen))
        failed = _failed(text, machine.reader)
    if out is None:
        put(text)
    else:
        write_atomically(out, text.encode())
        say(f"wrote {out}; check it: rtscope audit --unit {shlex.quote(str(out))}")
    for line in failed:
        say(line)
    return FINDINGS_STATUS if failed else 0


def _failed(text: str, reader: Reader) -> list[str]:
    """Return what `rtscope audit --unit` finds on this machine, a line each."""
    kinds = auditing_a_unit()
    context = read_context(reader, kinds)
    name = f"unit{SUFFIX}"
    checks = examine(replace(context, unit=merge(name, {name: text})), kinds)
    return [
        printable(f"the audit finds: {check.message}; {check.kind.remedy}")
        for check in checks
        if check.failed and check.severity > Severity.INFO
    ]


def _why_no_command(seen: RunningProgram) -> str:
    """Say why nothing tells how a program is started."""
    if not seen.argv and "cmdline" not in seen.denied:
        return (
            "it has no command line: it is a thread of the kernel, or it has ended; "
            "rtscope tasks shows which processes run"
        )
    for name in ("cmdline", "auxv", "maps"):
        if name in seen.denied:
            return f"/proc/{seen.pid}/{name}: {seen.denied[name]}; type it as root"
    return f"/proc/{seen.pid}/maps has no file that it was started from"
