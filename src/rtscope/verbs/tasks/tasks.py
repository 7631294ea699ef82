"""Show every thread of a machine: policy, priority and CPUs."""

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from itertools import count as counting
from typing import Annotated

import typer

from rtscope.cli.console import Json, put, put_blocks, stdout_console
from rtscope.host.errors import UsageError
from rtscope.host.units import NS_PER_H, NS_PER_MS, parse_duration
from rtscope.machine.target import Target
from rtscope.machine.target.address import address_of, open_target
from rtscope.machine.tasks.agentlist import list_threads
from rtscope.machine.tasks.model import Choice, Listing, Order, choose
from rtscope.machine.tasks.statistics import Statistics, read_statistics
from rtscope.present.document import Block
from rtscope.present.formats.taskstatistics import statistics_blocks, statistics_rows
from rtscope.present.render.terminal import print_blocks
from rtscope.verbs.tasks.changes import Change, changes
from rtscope.verbs.tasks.changing import change_json, change_words, ending, heading
from rtscope.verbs.tasks.shielding import shield_held
from rtscope.verbs.tasks.text import (
    LIVE_LINES,
    live_blocks,
    render_tasks_json,
    tasks_blocks,
)

AGENT_NAME = "rtscope-agent"
"""As the kernel has it, which keeps 15 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksRequest:
    """The options of `rtscope tasks`."""

    target: str = "local"
    """
    Running machine: local, ssh:HOST or lab:PLACE (default: local), e.g. ssh:board.
    """
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
    changes: bool = False
    """With --watch, a line for each change in place of the list: threads that begin and
    end, policy, priority, CPUs, state, group, capabilities."""
    count: Annotated[int | None, typer.Option(min=1)] = None
    """With --watch, number of looks after which it ends (default: until Ctrl-C), e.g.
    10."""
    shield: str | None = None
    """CPUs to keep for COMMAND, or for what you bring in until Ctrl-C: a partition of
    CPU sets, without other tasks and interrupts; needs root and cgroup v2, e.g. 2-3."""
    json: Json = False
    verbose: Annotated[bool, typer.Option("--verbose")] = False
    """Control group and capabilities below each thread, where they change."""


def tasks(
    request: TasksRequest,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="With --shield, program and its arguments, after -- (default: none)."
        ),
    ] = None,
) -> int:
    """Show every thread of a machine: policy, priority, CPUs and remarks.

    This changes nothing, but for --shield, which lists no threads and puts all back at
    its end. Without root's rights, the list names the values it lacks.
    """
    window_ns = _window(request)
    if request.shield is not None or command:
        return shield_held(request, command or [])
    with open_target(address_of(request.target), may_ask=False) as machine:
        if request.changes:
            _print_changes(machine, request, interval_ns=window_ns)
            return 0
        for _ in _looks(request):
            listing = list_threads(machine, window_ns=window_ns)
            pids = {thread.line.pid for thread in listing.threads}
            _print(listing, read_statistics(machine.reader, pids), request)
    return 0


def _looks(request: TasksRequest) -> Iterable[int]:
    if request.watch is None:
        return range(1)
    return counting() if request.count is None else range(request.count)


def _print_changes(machine: Target, request: TasksRequest, *, interval_ns: int) -> None:
    before = list_threads(machine)
    begin_ns, seen, looks = time.monotonic_ns(), 0, 0
    if not request.json:
        chosen = choose(before.threads, _choice(request))
        put_blocks(heading(len(chosen), interval_ns))
    for _ in _looks(request):
        after = list_threads(machine, window_ns=interval_ns)
        at_ns, looks = time.monotonic_ns() - begin_ns, looks + 1
        for change in _chosen_changes(before, after, _choice(request)):
            seen += 1
            if request.json:
                put(change_json(change, at_ns))
            else:
                put_blocks(change_words(change, at_ns))
        before = after
    if not request.json:
        put_blocks(ending(looks, seen))


def _chosen_changes(
    before: Listing, after: Listing, choice: Choice
) -> Iterator[Change]:
    """Yield changes of threads that are chosen before or after, but for the agent's."""
    chosen = {
        thread.line.tid
        for listing in (before, after)
        for thread in choose(listing.threads, choice)
        if thread.process != AGENT_NAME
    }
    for change in changes(before, after):
        if change.thread.line.tid in chosen:
            yield change


def _choice(request: TasksRequest) -> Choice:
    return Choice(request.rt, request.cpu, request.pid, request.sort)


def _window(request: TasksRequest) -> int:
    share, watch = request.share, request.watch
    if share is not None and watch is not None:
        raise UsageError("--watch measures shares too: leave --share out")
    if watch is None and (request.changes or request.count is not None):
        option = "--changes" if request.changes else "--count"
        raise UsageError(f"{option} needs an interval: add --watch 1s")
    if request.changes and request.sort is not Order.PROCESS:
        raise UsageError("--changes come as they happen: leave --sort out")
    if watch is not None and request.json and not request.changes:
        raise UsageError(
            "--watch has no JSON output; for data, repeat: rtscope tasks --share 1s "
            "--json; for changes as they happen: rtscope tasks --watch 1s --changes "
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
    threads = choose(listing.threads, _choice(request))
    kept = kept.of({thread.line.pid for thread in threads}, whole=request.pid is None)
    if request.json:
        programs = statistics_rows(kept)
        put(
            render_tasks_json(
                listing, threads, target=request.target, programs=programs
            )
        )
        return
    live = request.watch is not None and sys.stdout.isatty()
    with stdout_console() as console:
        if live:
            console.clear()
        rows = max(1, console.height - LIVE_LINES)
        if live and not request.verbose and len(threads) > rows:
            print_blocks(_on_one_screen(listing, request, console.width, rows), console)
            return
        listed = tasks_blocks(
            listing,
            threads,
            order=request.sort,
            width=console.width,
            whole=request.verbose,
        )
        print_blocks(chain(listed, statistics_blocks(kept)), console)


def _on_one_screen(
    listing: Listing, request: TasksRequest, width: int, rows: int
) -> Iterator[Block]:
    """Yield what fits of a live list: without an order, what runs first."""
    choice = _choice(request)
    if choice.order is Order.PROCESS:
        choice = replace(choice, order=Order.PRIORITY)
    threads = choose(listing.threads, choice)
    return live_blocks(listing, threads, order=choice.order, width=width, rows=rows)
