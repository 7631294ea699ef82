"""Ask the agent of a machine for its threads."""

from rtscope.host.units import NS_PER_S
from rtscope.machine.target import Target
from rtscope.machine.target.stream import answer_of
from rtscope.machine.tasks.listing import make_listing, read_surroundings
from rtscope.machine.tasks.model import Listing

TIMEOUT_S = 60.0
"""For the list itself, beside a measuring window."""


def list_threads(machine: Target, *, window_ns: int = 0) -> Listing:
    """Return the threads of a machine, with shares over a window of more than 0 ns."""
    around = read_surroundings(machine.reader)
    args = ["tasks", *(["--window-ns", str(window_ns)] if window_ns else [])]
    # With root's rights if possible: timer slack of others needs CAP_SYS_NICE.
    lines = answer_of(
        machine,
        args,
        timeout_s=TIMEOUT_S,
        works_s=window_ns / NS_PER_S,
        failure="the agent listed no threads",
    )
    return make_listing(lines, around)
