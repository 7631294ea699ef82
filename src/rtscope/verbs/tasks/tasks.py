"""Show every thread of a machine: policy, priority and CPUs."""

import sys
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

import typer

from rtscope.cli.console import Json, put, stdout_console
from rtscope.host.errors import UsageError
from rtscope.host.units import NS_PER_H, NS_PER_MS, parse_duration
from rtscope.machine.target.address import address_of, open_target
from rtscope.machine.tasks.agentlist import list_threads
from rtscope.machine.tasks.model import Choice, Listing, Order, choose
from rtscope.machine.tasks.statistics import Statistics, read_statistics
from rtscope.present.formats.taskstatistics import statistics_blocks, statistics_rows
from rtscope.present.render.terminal import print_blocks
from rtscope.verbs.tasks.text import render_tasks_json, tasks_blocks

CLEAR = "\x1b[H\x1b[2J\x1b[3J"


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksRequest:
    """The options of `rtscope tasks`."""

    target: str = "local"
    """Running machine: local or ssh:HOST (default: local), e.g. ssh:board."""
    rt: bool = False
    """Only real-time threads: fifo, rr and deadline."""
    cpu: Annotated[int | None, typer.Option(min=0)] = None
    """Only threads allowed on this CPU, e.g. 2."""
    pid: Annotated[int | None, typer.Option(min=1)] = None
    """Only the process of this PID or TID, e.g. 1234."""
    sort: Order = Order.PROCESS
    """Order of the threads (default: process)."""
    share: str | None = None
    """Time over which to measure CPU shares, e.g. 1s."""
    watch: str | None = None
    """Refresh interval of a live list with CPU shares, e.g. 2s."""
    json: Json = False


def tasks(request: TasksRequest) -> int:
    """Show every thread of a machine: policy, priority, CPUs and remarks.

    This changes nothing. Without root's rights, the list names the values it lacks.
    """
    window_ns = _window(request)
    with open_target(address_of(request.target), may_ask=False) as machine:
        while True:
            listing = list_threads(machine, window_ns=window_ns)
            pids = {thread.line.pid for thread in listing.threads}
            _print(listing, read_statistics(machine.reader, pids), request)
            if request.watch is None:
                return 0


def _window(request: TasksRequest) -> int:
    share, watch = request.share, request.watch
    if share is not None and watch is not None:
        raise UsageError("--watch measures shares too: leave --share out")
    if watch is not None and request.json:
        raise UsageError(
            "--watch has no JSON output; for data, repeat: rtscope tasks --share 1s "
            "--json"
        )
    if request.sort is Order.SHARE and share is None and watch is None:
        raise UsageError("--sort share needs a time to measure shares: add --share 1s")
    option, text = ("--share", share) if share is not None else ("--watch", watch)
    if text is None:
        return 0
    try:
        window_ns = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from error
    if not 10 * NS_PER_MS <= window_ns <= NS_PER_H:
        raise UsageError(f"{option}: {text}: write 10ms to 1h")
    return window_ns


def _print(listing: Listing, kept: Statistics, request: TasksRequest) -> None:
    choice = Choice(request.rt, request.cpu, request.pid, request.sort)
    threads = choose(listing.threads, choice)
    kept = kept.of({thread.line.pid for thread in threads}, whole=request.pid is None)
    if request.json:
        programs = statistics_rows(kept)
        put(
            render_tasks_json(
                listing, threads, target=request.target, programs=programs
            )
        )
        return
    if request.watch is not None and sys.stdout.isatty():
        put(CLEAR)
    with stdout_console() as console:
        listed = tasks_blocks(listing, threads, order=request.sort, width=console.width)
        print_blocks(chain(listed, statistics_blocks(kept)), console)
