"""What must happen when a thread writes to memory."""

from collections.abc import Iterator

from rtscope.host.units import format_duration
from rtscope.verbs.demo.model import CaseResult, Check, DemoResult


def faults_of(one: CaseResult) -> tuple[int, ...]:
    """Return the page faults of each time that memory was written to."""
    return tuple(count for lane in one.lanes for _, count in lane.times("faults"))


def longest_ns(one: CaseResult) -> int:
    """Return how long the longest of these times took."""
    return max(took for lane in one.lanes for _, took in lane.times("took"))


def pagefault(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of memory that is new, and of memory that was there."""
    yield from _without(result, "fresh", "ready")


def malloc(result: DemoResult) -> Iterator[Check | str]:
    """Yield what must hold of memory from malloc, and of memory from a pool."""
    yield from _without(result, "malloc", "pool")


def _without(result: DemoResult, new: str, had: str) -> Iterator[Check | str]:
    """Yield that one case has page faults in every period, and the other none."""
    meets, spared = result.case(new), result.case(had)
    yield Check(
        f"{meets.case.title}: page faults in every period",
        all(faults_of(meets)),
        _counts(meets),
    )
    yield Check(
        f"{spared.case.title}: no page fault in any period",
        not any(faults_of(spared)),
        _counts(spared),
    )
    yield Check(
        "locked memory was locked, and other was not",
        spared.begin.memory_locked and not meets.begin.memory_locked,
        f"{new} {meets.begin.memory_locked}, {had} {spared.begin.memory_locked}",
    )
    met, spent = (format_duration(longest_ns(one)) for one in (meets, spared))
    yield (
        f"The longest of {len(faults_of(meets))} periods took {met} with page faults, "
        f"and {spent} without."
    )


def _counts(one: CaseResult) -> str:
    return f"faults: {' '.join(map(str, faults_of(one)))}"
