"""Whether the latest wake-ups of a load come at a steady distance: sentence, chart."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rtscope.host.units import NS_PER_MS, NS_PER_S, plural
from rtscope.present.model.charts import Chart
from rtscope.present.model.overtime import late_over_time
from rtscope.present.model.rows import Row
from rtscope.present.words import duration, enumeration
from rtscope.stats.latetimes import Distance, Timing, timing_of

FEW_EVENTS = 12
"""With fewer a distance is found if all keep to it: lab/steady-distance.md."""

LONG_S = 1000
"""From here on a distance is written in larger units than seconds."""


@dataclass(frozen=True, slots=True)
class Steadiness:
    """When the latest wake-ups of a row were, and what follows."""

    row: Row
    timing: Timing

    @property
    def what(self) -> str:
        """The name of what was tested, in the plural."""
        if self.timing.seconds:
            return "seconds with the latest wake-ups"
        imported = any(record.imported for record in self.row.counted)
        return "longest latencies" if imported else "latest wake-ups"

    @property
    def sentence(self) -> str:
        """The distance, or that none was found."""
        found = self.timing.steady.found
        return _not_found([self]) if found is None else _found(self, found)

    @property
    def chart(self) -> Chart:
        """The events of one run, each at its time."""
        return Chart(
            name=f"{self.row.anchor}-late",
            title=f"{self.row.name}: {self.what} over time",
            description=self.sentence,
            content=late_over_time(self.timing, watched_ns=self.row.observed_ns or 0),
            virtual=self.row.virtual,
        )


def late_wakeups(rows: Sequence[Row]) -> Mapping[str, Steadiness]:
    """Test the latest wake-ups of each row with enough known times, by its anchor."""
    tested = [(row, timing_of(row.counted)) for row in rows]
    return {
        row.anchor: Steadiness(row, timing)
        for row, timing in tested
        if timing is not None
    }


def steady_sentences(late: Iterable[Steadiness]) -> tuple[str, ...]:
    """Return a sentence for each row with a distance, and one for all without."""
    rows = list(late)
    named = [one.sentence for one in rows if one.timing.steady.found is not None]
    without = [one for one in rows if one.timing.steady.found is None]
    return (*named, *([_not_found(without)] if without else []))


def _found(one: Steadiness, found: Distance) -> str:
    events, timing = f"{one.what} under {one.row.name}", one.timing
    if found.events < timing.events:
        events += f", in {found.events} groups,"
    of = "The" if found.on_time == found.events else f"{found.on_time} of the"
    if found.events < timing.events and found.on_time < found.events:
        of, events = "The", f"{events} {found.on_time} of which"
    runs = sum(bool(run.events) for run in timing.times)
    over = f" in each of {plural(runs, 'run')}" if runs > 1 else ""
    period = _period(found, one.row.virtual)
    return (
        f"{of} {timing.events} {events} come every {period}{over} (p = {found.p:.1g})."
    )


def _not_found(rows: Sequence[Steadiness]) -> str:
    shortest = max(one.timing.steady.shortest_ns for one in rows)
    longest = min(one.timing.steady.longest_ns for one in rows)
    what, virtual = rows[0].what, rows[0].row.virtual
    names = enumeration([one.row.name for one in rows])
    step_ns = max(one.timing.step_ns for one in rows)
    fewest = min(one.timing.events for one in rows)
    keep = "all" if fewest < FEW_EVENTS else "four of five"
    seen = "the JSON has the periods that were tried"
    if shortest < longest:
        seen = (
            f"a {virtual}period of {duration(shortest)} to {duration(longest)} that "
            f"{keep} keep would have been seen"
        )
    if step_ns >= NS_PER_S:
        seen += f"; the times are known to {duration(step_ns)}"
    return f"No steady distance found between the {what} under {names} ({seen})."


def _period(found: Distance, virtual: str) -> str:
    """Write a distance with the digits that its error leaves."""
    if found.period_ns >= LONG_S * NS_PER_S:
        return duration(found.period_ns)
    unit_ns, unit = (
        (NS_PER_S, "s") if found.period_ns >= NS_PER_S else (NS_PER_MS, "ms")
    )
    error = max(2 * found.error_ns / unit_ns, 1e-3)
    digits = min(max(round(-math.log10(error)), 0), 3)
    return f"{found.period_ns / unit_ns:.{digits}f} {virtual}{unit}"
