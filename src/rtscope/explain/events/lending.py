"""
Who lent a priority to whom: the evidence of priority inheritance. Pure.

A thread that waits for a lock of that kind lends its priority to the holder, and to
all that the holder itself waits for: each has an event, which the waiting thread
writes.
"""

from collections.abc import Iterator

from rtscope.explain.events.histories import (
    PI_SETPRIO,
    Histories,
    Priority,
    priority_words,
)
from rtscope.record.events.events import Event

_LISTED = 3


def lending_evidence(
    priority: Priority, facts: Histories, *, expiry_ns: int
) -> Iterator[str]:
    """Say who lent a priority that was inherited."""
    for raised in priority.raised[-_LISTED:]:
        yield lent_words(raised, facts, expiry_ns=expiry_ns)
    taken = priority.until
    if not priority.raised and taken is not None and taken.name == PI_SETPRIO:
        old = priority_words(taken.numbers.get("oldprio"))
        new = priority_words(taken.numbers.get("newprio"))
        yield (
            f"sched_pi_setprio took it away at {_since(taken, expiry_ns)}: from {old} "
            f"to {new}; who lent it was not recorded"
        )


def lent_words(raised: Event, facts: Histories, *, expiry_ns: int) -> str:
    """Write an event that raised a priority, and who lent it."""
    comm, pid = raised.text("comm"), raised.numbers.get("pid")
    old = priority_words(raised.numbers.get("oldprio"))
    new = priority_words(raised.numbers.get("newprio"))
    told = (
        f"sched_pi_setprio at {_since(raised, expiry_ns)}: {comm}-{pid} from {old} to "
        f"{new}"
    )
    if raised.pid in (-1, pid):
        return told
    lender = f"{raised.comm or '<...>'}-{raised.pid}"
    over = [
        f"{one.text('comm')}-{one.numbers.get('pid')}"
        for one in facts.along_the_chain(raised)
    ]
    if not over:
        return f"{told}; {lender} waits for its lock"
    return f"{told}; {lender} waits for a lock in a chain with {' and '.join(over)}"


def _since(event: Event, expiry_ns: int) -> str:
    return f"{(event.at_ns - expiry_ns) / 1000:+,.3f} us"
