"""Answered checks on the command line: what they are of, how shown, when they fail."""

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rtscope.cli.console import note, put_json, say, stdout_console, typed_words
from rtscope.host.errors import TargetError, UsageError
from rtscope.host.escape import printable
from rtscope.host.files.opening import read_named
from rtscope.machine.audit.context import AuditContext
from rtscope.machine.audit.model import Check, Severity, checks_document
from rtscope.machine.kernelconfig import KernelConfig, oddities, parse_config
from rtscope.machine.reader import MAX_FILE_BYTES
from rtscope.present.document import Detail
from rtscope.present.formats.audit import print_brief_checks, print_checks, summary

NOT_SHOWN = 4
"""What was given cannot show it; docs/reference/exit-status.md."""

MAX_CAVEATS = 3


class FailOn(StrEnum):
    """The lowest severity that makes the exit status 1."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    FATAL = "fatal"


@dataclass(frozen=True, slots=True)
class Checked:
    """The object of checks, and how they are printed."""

    what: str
    json: bool
    detail: Detail


def show_checks(checks: list[Check], context: AuditContext, form: Checked) -> None:
    """Print checks, as text or as JSON."""
    what, kernel = form.what, context.kernel
    if form.json:
        put_json(checks_document(checks, target=what, kernel=kernel))
        return
    with stdout_console() as console:
        if form.detail is Detail.QUIET:
            console.print(summary(checks), soft_wrap=True)
        elif form.detail is Detail.ALL:
            print_checks(checks, console, target=what, kernel=kernel)
        else:
            command = shlex.join(typed_words())
            print_brief_checks(
                checks, console, target=what, kernel=kernel, command=command
            )


def fails(checks: list[Check], least: FailOn) -> int:
    """Return the exit status: 1 if a check of this severity or a higher one failed."""
    lowest = Severity[least.name]
    return int(any(check.failed and check.severity >= lowest for check in checks))


def not_shown(context: AuditContext) -> int:
    """Return 4, with the reason, for a fragment or defconfig; 0 for a kernel."""
    if not context.only_requested:
        return 0
    say(f"not shown: {context.kernel.how}")
    return NOT_SHOWN


def read_config(path: Path, *, called: str | None = None) -> KernelConfig:
    """
    Read a configuration, and tell what is odd in it; UsageError if it is none.

    `called` replaces the path in the evidence.
    """
    content = read_named(
        path, limit=MAX_FILE_BYTES, kind="configuration", error=UsageError
    )
    try:
        config = parse_config(content, source=called or str(path))
    except TargetError as error:
        raise UsageError(str(error)) from error
    odd = list(oddities(config))
    for line in odd[:MAX_CAVEATS]:
        note(printable(f"caveat: {config.source}: {line}"))
    if len(odd) > MAX_CAVEATS:
        note(f"caveat: {config.source}: {len(odd) - MAX_CAVEATS} more such lines")
    return config


def refuse_two(**options: object) -> None:
    """Raise UsageError if more than one of these options is given."""
    names = [f"--{name}" for name, value in options.items() if value is not None]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} cannot be combined: keep one of them")
