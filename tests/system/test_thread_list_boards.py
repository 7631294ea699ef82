"""
Threads of a virtual board, where what is true of them is known.

A PREEMPT_RT kernel with two isolated CPUs: interrupts have threads, and a FIFO thread
on another CPU is where it should not be.
"""

import pytest
from rig import NEEDS_APT

from rtscope.boards.catalogue import get_board, with_append
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.inspect import files_of
from rtscope.boards.runs.script import agent_line
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.contract import parse_line
from rtscope.machine.target import agent_file
from rtscope.machine.tasks.listing import PATHS, make_listing, read_surroundings
from rtscope.machine.tasks.model import Listing, ThreadKind

pytestmark = [
    pytest.mark.system,
    NEEDS_APT,
]

LONG = ("--interval-ns", "10000000", "--duration-ns", "10000000000")

# The board has no other program that can run with a real-time policy.
SCRIPT = f"""\
{agent_line("measure", "--cpus", "0", "--priority", "40", *LONG)} >/dev/null &
{agent_line("measure", "--cpus", "3", "--priority", "60", *LONG)} >/dev/null &
sleep 0.1
{agent_line("read", "--", *PATHS)} >/out/around.jsonl
{agent_line("tasks")} >/out/tasks.jsonl
"""


@pytest.fixture(scope="module")
def listing() -> Listing:
    board = with_append(get_board("rpi3"), ["isolcpus=2-3"])
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    prepared = prepare(board, "debian-6.12-rt", context=context)
    booted = boot(
        prepared,
        Job(SCRIPT),
        seed=1,
        timeout=BootTimeout(100_000_000),
        stopped=lambda: False,
    )
    lines = [parse_line(line) for line in booted.files["tasks.jsonl"].splitlines()]
    around = read_surroundings(files_of(prepared, booted, "around.jsonl"))
    return make_listing(lines, around)


def test_what_is_isolated_is_known_and_who_may_run_elsewhere_is_marked(
    listing: Listing,
) -> None:
    assert listing.around.isolated == frozenset({2, 3})
    ours = {
        t.line.priority: t
        for t in listing.threads
        if t.kind is ThreadKind.USER and t.line.policy == "fifo"
    }

    assert set(ours) == {40, 60}
    assert (ours[40].line.cpus, ours[60].line.cpus) == ("0", "3")
    marks = {
        priority: {m.id: m.detail for m in t.marks} for priority, t in ours.items()
    }
    assert marks[40]["housekeeping"] == "allowed on CPU 0; isolated: CPU 2-3"
    assert marks[60] == {}


def test_interrupts_have_threads_with_their_devices(listing: Listing) -> None:
    irqs = [t for t in listing.threads if t.kind is ThreadKind.IRQ]

    assert {t.irq.device for t in irqs if t.irq} >= {"rtc-pl031"}
    assert {(t.line.policy, t.line.priority) for t in irqs} == {("fifo", 50)}
    (below,) = (t for t in listing.threads if t.line.priority == 40)
    assert "irq_above" in {mark.id for mark in below.marks}
    assert listing.end.not_read == listing.end.vanished == 0
