"""How explained wake-ups are counted: those that fail, and those that hide it."""

from culprits.invariants import Counts, table_of
from rtscope.explain.model import Broken, Cause, Explanation, Invariant, Part, Segment

KIND = ("pc", "debian-6.12", "idle")


def explanation(*broken: Broken) -> Explanation:
    held = Segment(Part.A, 0, 900, Cause.INTERRUPTS_OFF, "zap")
    back = Segment(Part.E, 900, 1000, Cause.RETURN, "user")
    return Explanation(1, 7, 1000, (held, back), broken=broken)


def broken(begin_ns: int, end_ns: int) -> Broken:
    return Broken(Invariant.IDLE, begin_ns, end_ns, {"task": "swapper/1"})


def test_a_wake_up_that_fails_counts_as_certain_only_with_a_dominant_cause() -> None:
    counts = Counts()
    withdrawn, slight = broken(0, 900), broken(960, 1000)

    for found in (explanation(), explanation(withdrawn), explanation(slight)):
        counts.add(KIND, found)

    assert "| pc | debian-6.12 | idle | 3 | 1 | 1 |" in table_of(counts)
    assert "1 of 3 pass all invariants (33.33 %)" in table_of(counts)
    assert counts.broken == {"idle": 2}
    assert counts.failed[0].startswith("pc, debian-6.12, idle, CPU 1, wake-up 7: idle")
