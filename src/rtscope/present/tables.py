"""What the tables of reports and comparisons have beside their figures."""

from collections.abc import Sequence

from rtscope.host.units import format_us, plural
from rtscope.present.model.published_comparison import MeasuredSide, PublishedSide
from rtscope.present.model.rows import Row
from rtscope.present.words import NOTHING, as_published
from rtscope.record.published import KernelKind
from rtscope.stats.figures import Figure, columns

SEEDS_HEADINGS = ("lowest max", "median max", "highest max", "worst seed", "seeds")
SEEDS_EXPLAINED = (
    "A seed is one trajectory, not a repetition: each row of the main table merges the "
    "trajectories of its seeds, and its maximum is the highest of theirs. More seeds "
    "can only raise it."
)


def seeds_title(rows: Sequence[Row]) -> str:
    """Return the heading of the table over seeds, with their number."""
    seeds = {seed for row in rows if row.seeds for seed, _ in row.seeds.maxima_ns}
    return f"Maxima over {plural(len(seeds), 'seed')}"


def seeds_cells(row: Row) -> tuple[str, ...]:
    """Write how a row's maximum varies over seeds, in the order of the headings."""
    assert row.seeds is not None
    maxima = (row.seeds.lowest_ns, row.seeds.median_ns, row.seeds.highest_ns)
    last = str(row.seeds.worst_seed), str(len(row.seeds.maxima_ns))
    return (*map(format_us, maxima), *last)


Cells = list[tuple[Figure, str]]


def published_cells(side: PublishedSide) -> Cells:
    """Write the published figures of a load, those of each kernel kind in turn."""
    return [
        (one, as_published(getattr(side.figures.get(kind), f"{one.key}_ns", None)))
        for kind in KernelKind
        for one in columns("published")
    ]


def measured_cells(side: MeasuredSide) -> Cells:
    """Write the measured latencies of a load, in the same columns."""
    rows = [side.rows.get(kind) for kind in KernelKind]
    return [
        (one, one.text(row) if row else NOTHING)
        for row in rows
        for one in columns("published")
    ]
