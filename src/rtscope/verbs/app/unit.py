"""Write a systemd unit with the rights and limits that a running program uses."""

import shlex
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import own_command, put, say
from rtscope.host.errors import TargetError, UsageError
from rtscope.host.escape import printable
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.machine.audit.examine import auditing_a_unit, examine, read_context
from rtscope.machine.audit.model import Severity
from rtscope.machine.audit.unit import merge
from rtscope.machine.audit.unitfiles import load_unit
from rtscope.machine.reader import Reader, text_of
from rtscope.machine.target import Target
from rtscope.machine.target.address import address_of, open_target
from rtscope.verbs.app.cycletables import WIDE
from rtscope.verbs.app.ownunit import is_its_own, with_own_unit
from rtscope.verbs.app.running import (
    FILES,
    GROUP,
    ONLINE,
    PASSWD,
    RunningProgram,
    devices_of,
    memory_max,
    running_program,
)
from rtscope.verbs.app.service import Service, service_of
from rtscope.verbs.app.watch import find_process, list_threads, privileged_reader

FINDINGS_STATUS = 1
SUFFIX = ".service"


def unit(
    program: Annotated[str, typer.Argument(help="PID, or name, of a running process.")],
    *,
    target: Annotated[
        str,
        typer.Option(
            help="Running machine: local, ssh:HOST or lab:PLACE (default: local), e.g. "
            "ssh:board."
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
        starter = own_command() if machine.name == "local" else ()
        service = service_of(seen, starter=starter)
        text = render_unit(_with_its_own(service, machine.reader))
        failed = _failed(text, machine.reader)
    if out is None:
        put(text)
    else:
        write_atomically(out, text.encode())
        say(f"wrote {out}; check it: rtscope audit --unit {shlex.quote(str(out))}")
    for line in failed:
        say(line)
    return FINDINGS_STATUS if failed else 0


def _with_its_own(service: Service, reader: Reader) -> Service:
    """Add what the unit says in which the program runs, if that unit starts it."""
    name = service.program.service
    if name is None:
        return service
    try:
        own = load_unit(name, reader)
    except UsageError as error:
        why = str(error).removeprefix(f"--unit {name}: ")
        more = f"What {name} says, in which it runs: {why}"
        return replace(service, unknown=(*service.unknown, more))
    if is_its_own(own, service):
        return with_own_unit(service, own)
    more = f"It runs in {name}, which starts another program: nothing of that is here."
    return replace(service, unknown=(*service.unknown, more))


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


# --- what the program is seen to use ------------------------------------------------


def see_program(machine: Target, pid: int) -> RunningProgram:
    """Return what is seen of a process; TargetError if it is not there any more."""
    paths = [*(f"/proc/{pid}/{name}" for name in FILES), PASSWD, GROUP, ONLINE]
    contents = privileged_reader(machine).read_many(paths)
    threads = list_threads(machine).threads
    if not any(thread.line.pid == pid for thread in threads):
        raise TargetError(f"process {pid} ended while it was looked at")
    directory = _directory(pid) if machine.name == "local" else None
    seen = running_program(pid, threads, contents, directory=directory)
    files = machine.reader.read_many(seen.cgroups) if seen.cgroups else {}
    limit = memory_max(text_of(content) for content in files.values())
    devices = _devices(pid) if machine.name == "local" else None
    return replace(seen, memory_max_bytes=limit, devices=devices)


def _devices(pid: int) -> Mapping[str, str] | None:
    """Return the devices that it has open: links, which only this machine's can be."""
    opened: list[tuple[str, int]] = []
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                path = str(link.readlink())
                flags = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
                opened.append((path, int(flags.partition("flags:")[2].split()[0], 8)))
    except (OSError, ValueError, IndexError):
        return None
    return devices_of(opened)


def _directory(pid: int) -> str | None:
    """Return its working directory: a link, which only this machine's can be read."""
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return None


# --- the text of the unit -----------------------------------------------------------

WIDTH = 88


def render_unit(service: Service) -> str:
    """Return the text of the unit: before each line, in a comment, its reason."""
    program = service.program
    name = printable(program.name)
    lines = [
        *_comment(
            f"A unit for {name}, made by rtscope app unit of process {program.pid}."
        ),
        *_comment(
            "It asks for what the program had then. Its end says what could not "
            "be known."
        ),
    ]
    sections = {
        "Unit": service.general,
        "Service": service.settings,
        "Install": service.install,
    }
    for section, settings in sections.items():
        lines += ["", f"[{section}]"]
        for setting in settings:
            lines += _comment(printable(setting.why, limit=WIDE))
            if setting.key:
                lines.append(f"{setting.key}={setting.value}")
    lines.append("")
    lines += _comment("Not known from outside:")
    for sentence in service.unknown:
        lines += _comment(f"* {printable(sentence)}", indent="  ")
    return "\n".join(lines) + "\n"


def _comment(text: str, *, indent: str = "") -> Iterator[str]:
    # A backslash at the end of a comment would continue it in old systemds.
    for line in textwrap.wrap(text, WIDTH - 2, subsequent_indent=indent):
        yield f"# {line}".rstrip("\\")
