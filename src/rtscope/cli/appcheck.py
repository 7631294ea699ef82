"""Check a running program: what its threads do that costs them their real time."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from rtscope.app.model import RANK, Examined, Weight
from rtscope.app.rules import examine
from rtscope.cli.console import Json, put_json, stdout_console
from rtscope.errors import MeasurementError, UsageError
from rtscope.measure.appwatch import (
    list_threads,
    observe,
    process_named,
    running_command,
)
from rtscope.report.formats.appcheck import examined_row, print_examined
from rtscope.target import Target
from rtscope.target.address import address_of, open_target
from rtscope.units import NS_PER_H, NS_PER_MS, NS_PER_S, parse_duration

FOUND = 1


class FailOn(StrEnum):
    """The least weight of a finding that makes the exit status 1."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NEVER = "never"


def check(
    program: Annotated[
        list[str],
        typer.Argument(
            help="PID, or name, of a running process; or -- and a command to run."
        ),
    ],
    *,
    target: Annotated[
        str,
        typer.Option(
            help="Running machine: local or ssh:HOST (default: local), e.g. ssh:board."
        ),
    ] = "local",
    duration: Annotated[
        str, typer.Option(help="Time to watch (default: 10s), e.g. 1m.")
    ] = "10s",
    settle: Annotated[
        str,
        typer.Option(help="Time before a command is watched (default: 1s), e.g. 5s."),
    ] = "1s",
    thread: Annotated[
        str | None,
        typer.Option(
            help="Threads to judge, by name or TID (default: real-time ones), e.g. "
            "control,io."
        ),
    ] = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            help="Least weight of a finding for exit status 1 (default: low)."
        ),
    ] = FailOn.LOW,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Everything, in lines of any length."),
    ] = False,
    json: Json = False,
) -> int:
    """Check a running program for what costs its threads their real time.

    It is watched from outside: not restarted, and nothing is loaded into it.
    """
    duration_ns = _time("--duration", duration, 100 * NS_PER_MS)
    settle_ns = _time("--settle", settle, NS_PER_MS)
    threads = [] if thread is None else thread.split(",")
    command = "--" in sys.argv
    if not command and len(program) > 1:
        raise UsageError(
            f"{program[1]}: name one process; before a command write --: rtscope app "
            f"check -- {' '.join(program)}"
        )
    with open_target(address_of(target)) as machine:
        if command:
            with running_command(
                machine, program, settle_s=settle_ns / NS_PER_S
            ) as pid:
                observation = observe(machine, pid, duration_ns=duration_ns)
        else:
            pid = _process(machine, program[0])
            observation = observe(machine, pid, duration_ns=duration_ns)
    examined = examine(observation, threads=threads)
    if json:
        put_json(examined_row(examined))
    else:
        with stdout_console() as console:
            print_examined(examined, console, everything=verbose)
    return status_of(examined, fail_on)


def status_of(examined: Examined, fail_on: FailOn) -> int:
    """Return 1 for a finding of this weight, 3 if none and not all was seen, else 0."""
    if fail_on is not FailOn.NEVER:
        least = RANK[Weight(fail_on.value)]
        if any(RANK[one.weight] <= least for one in examined.findings):
            return FOUND
    return MeasurementError.exit_status if examined.unseen else 0


def _process(machine: Target, name: str) -> int:
    found = process_named(list_threads(machine), name)
    if not found:
        raise UsageError(
            f"{name}: there is no such process; list them with rtscope tasks"
        )
    if len(found) > 1:
        pids = ", ".join(str(pid) for pid in found[:10])
        raise UsageError(f"{name}: {len(found)} processes have this name: {pids}")
    return found[0]


def _time(option: str, text: str, least_ns: int) -> int:
    try:
        time_ns = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from error
    if not least_ns <= time_ns <= NS_PER_H:
        raise UsageError(f"{option}: {text}: write 100ms to 1h")
    return time_ns
