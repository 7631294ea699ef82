"""
Virtual runs: equal inputs are identical, and how a maximum varies over the seeds.

A virtual board's result follows from its inputs. So equal results count once, however
often they were measured (`distinct`; a record of a machine that is given twice also
counts once), and equal inputs with different results mean that
an unrecorded input reached the board: then none of those results may be used
(`contradictions`).

The check compares runs with each other (`among`), or with those of a stored record
(`against`). What differs is named: the result, and each input.

A seed is one trajectory: the same board does exactly the same with it each time. So
repetitions of a seed add nothing, and runs with different seeds are not repetitions of
equal conditions but a sample of trajectories, which the user chose. The maximum of all
is the maximum over seeds; how far the seeds' own maxima lie apart says how much one of
them alone would have told.

Their times may be added up as exposure, as in any seeded Monte Carlo experiment, only
if they are independent. A seed changes little of an idle board: its worst wake-ups can
be the very same activations. Seeds that share more of them than chance gives are one
trajectory told several times, and count with the time of their longest run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from rtscope.contract import ThreadResult
from rtscope.record.caveats.catalogue import Caveat, gravest_first, make
from rtscope.record.model import RunRecord
from rtscope.stats.exposure import SIGNIFICANCE
from rtscope.stats.integrity import TELLING_BUCKETS
from rtscope.stats.runcaveats import all_caveats
from rtscope.stats.summary import observed_ns

Inputs = Mapping[str, object]


def inputs_of(record: RunRecord) -> Inputs | None:
    """Return what decides a virtual result; None for a machine, which nothing does."""
    virtual = record.virtual
    if virtual is None:
        return None
    return {"load": record.run.load, **virtual.inputs_by_label}


def distinct(records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """
    Return the records, each measurement once, in the same order.

    Equal digests are one measurement: an exact repetition on a virtual board, or a
    copy of a record, because no machine wakes twice at the same nanoseconds. Runs of a
    machine without a wake-up have nothing to tell them apart, and all are kept.
    """
    seen: set[str] = set()
    kept = []
    for record in records:
        if _tells_apart(record):
            if record.result_digest in seen:
                continue
            seen.add(record.result_digest)
        kept.append(record)
    return tuple(kept)


def _tells_apart(record: RunRecord) -> bool:
    """Whether only the same measurement can have the digest of this one."""
    if record.virtual is not None:
        return True
    return any(
        t.worst or (t.foreign and len(t.histogram) >= TELLING_BUCKETS)
        for t in record.result.threads
    )


def contradictions(
    records: Sequence[RunRecord],
) -> tuple[tuple[RunRecord, ...], ...]:
    """Return the groups of records that have equal inputs and different results."""
    groups = (tuple(records[at] for at in same) for same in _by_inputs(records))
    return tuple(same for same in groups if len({r.result_digest for r in same}) > 1)


def caveats_among(records: Sequence[RunRecord]) -> tuple[tuple[Caveat, ...], ...]:
    """
    Return the caveats of each record, and those that only several records show.

    That is a contradiction (invalid), that it repeats another result exactly or is a
    copy of another record, and that others are of another model of its board.
    """
    raised: list[list[Caveat]] = [[] for _ in records]
    for same in _by_inputs(records):
        load, results = (
            records[same[0]].run.load,
            [records[at].result_digest for at in same],
        )
        different = len(set(results))
        for at, result in zip(same, results, strict=True):
            if different > 1:
                detail = f"{load}: {len(same)} runs, {different} different results"
                raised[at].append(make("not_deterministic", detail))
            if (alike := results.count(result)) > 1:
                detail = f"{load}: {alike} runs with the same digest"
                raised[at].append(make("identical_repeats", detail))
    for same in _copies(records):
        detail = f"{records[same[0]].run.load}: {len(same)} copies of one record"
        for at in same:
            raised[at].append(make("copied_record", detail))
    for at, detail in _other_models(records):
        raised[at].append(make("other_board_model", detail))
    return tuple(
        gravest_first((*all_caveats(record), *among))
        for record, among in zip(records, raised, strict=True)
    )


def _other_models(records: Sequence[RunRecord]) -> Iterator[tuple[int, str]]:
    """Yield the runs of boards of which others have another revision, in words."""
    revisions: dict[str, set[int]] = {}
    boards = [record.virtual for record in records]
    for board in boards:
        if board is not None:
            revisions.setdefault(board.board, set()).add(board.board_revision)
    for at, board in enumerate(boards):
        if board is not None and len(numbers := revisions[board.board]) > 1:
            words = " and ".join(map(str, sorted(numbers)))
            yield at, f"{board.board}: revisions {words}"


def _copies(records: Sequence[RunRecord]) -> Iterable[Sequence[int]]:
    """Return where records of machines are that hold the same measurement."""
    by_result: dict[str, list[int]] = {}
    for at, record in enumerate(records):
        if record.virtual is None and _tells_apart(record):
            by_result.setdefault(record.result_digest, []).append(at)
    return [same for same in by_result.values() if len(same) > 1]


def _by_inputs(records: Sequence[RunRecord]) -> Iterable[Sequence[int]]:
    """Return where records of virtual boards are, those with equal inputs together."""
    by_inputs: dict[tuple[object, ...], list[int]] = {}
    for at, record in enumerate(records):
        if inputs := inputs_of(record):
            by_inputs.setdefault(tuple(inputs.values()), []).append(at)
    return by_inputs.values()


Key = tuple[object, ...]
"""What a run was asked to be; the seed is the last."""

Cells = dict[Key, list[RunRecord]]


@dataclass(frozen=True, slots=True)
class Compared:
    """The runs of one cell of the matrix, which should be identical."""

    name: str
    runs: tuple[str, ...]
    """What each run is called; those of the stored record come first."""
    results: tuple[str, ...]
    """The digest of the result of each run."""
    differing: tuple[str, ...]
    """Inputs that were not the same in all of them."""
    known: bool
    """Whether all of them recorded their inputs."""

    @property
    def same_result(self) -> bool:
        """Whether there are results to compare, and all are equal."""
        return len(self.results) > 1 and len(set(self.results)) == 1

    @property
    def identical(self) -> bool:
        """Whether inputs and results were equal."""
        return self.same_result and self.known and not self.differing


def among(records: Sequence[RunRecord]) -> tuple[Compared, ...]:
    """Compare the repetitions of each run."""
    return tuple(_compared(runs) for runs in _cells(records).values())


def against(
    records: Sequence[RunRecord], stored: Sequence[RunRecord]
) -> tuple[Compared, ...]:
    """
    Compare each run with its repetitions and with the same run of a stored record.

    Where nothing but the seed tells them apart, and there is one on each side, they are
    each other's like: then the seed is the input that differs.
    """
    ours, theirs = _cells(records), _cells(stored)
    return tuple(
        _compared(runs, theirs.get(key) or _but_for_the_seed(key, ours, theirs))
        for key, runs in ours.items()
    )


def _but_for_the_seed(key: Key, ours: Cells, theirs: Cells) -> Sequence[RunRecord]:
    like = [runs for other, runs in theirs.items() if other[:-1] == key[:-1]]
    mine = [other for other in ours if other[:-1] == key[:-1]]
    return like[0] if len(like) == len(mine) == 1 else ()


def _cells(records: Iterable[RunRecord]) -> Cells:
    cells: Cells = {}
    for record in records:
        run = record.run
        key = (
            *(run.load, run.kernel, run.policy, run.priority, run.interval_ns),
            *(run.duration_ns, run.cpus, run.deadline_runtime_ns, run.event),
            run.seed,
        )
        cells.setdefault(key, []).append(record)
    return cells


def _compared(
    records: Sequence[RunRecord], stored: Sequence[RunRecord] = ()
) -> Compared:
    first = records[0].run
    seed = None if first.seed is None else f"seed {first.seed}"
    all_runs = (*stored, *records)
    boards = [record.virtual for record in all_runs]
    inputs = [one for record in all_runs if (one := inputs_of(record))]
    return Compared(
        name=", ".join(
            part for part in (first.load, first.event_words, first.kernel, seed) if part
        ),
        runs=(
            *(f"stored {record.run.id}" for record in stored),
            *(record.run.id for record in records),
        ),
        results=tuple(record.result_digest for record in all_runs),
        differing=tuple(
            name
            for name in (inputs[0] if inputs else ())
            if len({row[name] for row in inputs}) > 1
        ),
        known=all(
            board is not None and board.input_digests is not None for board in boards
        ),
    )


# --- how a maximum varies over the seeds of a virtual board ---------------------------


@dataclass(frozen=True, slots=True)
class OverSeeds:
    """The maxima of runs that differ in nothing but the seed."""

    maxima_ns: tuple[tuple[int, int], ...]
    """(seed, its maximum), by seed."""
    observed_ns: int
    """Time watched: of each independent trajectory, its longest run."""
    trajectories: int
    """Seeds that are independent; of those that are alike, one."""

    @property
    def lowest_ns(self) -> int:
        """The least of the maxima."""
        return min(maximum for _, maximum in self.maxima_ns)

    @property
    def median_ns(self) -> float:
        """The median of the maxima."""
        return float(median(maximum for _, maximum in self.maxima_ns))

    @property
    def highest_ns(self) -> int:
        """The maximum over all seeds."""
        return max(maximum for _, maximum in self.maxima_ns)

    @property
    def worst_seed(self) -> int:
        """The (first) seed with that maximum."""
        return next(s for s, maximum in self.maxima_ns if maximum == self.highest_ns)


def over_seeds(records: Sequence[RunRecord]) -> OverSeeds | None:
    """Return what runs of one load and kernel did; None with fewer than two seeds."""
    maxima: dict[int, int] = {}
    measured = []
    for record in records:
        seed, max_ns = record.run.seed, record.max_ns
        if seed is not None and max_ns is not None:
            maxima[seed] = max(maxima.get(seed, 0), max_ns)
            measured.append(record)
    if len(maxima) < 2:
        return None
    alone = independent(measured)
    return OverSeeds(
        maxima_ns=tuple(sorted(maxima.items())),
        observed_ns=sum(observed_ns(record.result.threads) or 0 for record in alone),
        trajectories=len(alone),
    )


def independent(records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Return the longest run of each independent trajectory: their times add up."""
    return tuple(
        max(runs, key=lambda record: observed_ns(record.result.threads) or 0)
        for runs in trajectories(records)
    )


def trajectories(records: Sequence[RunRecord]) -> tuple[tuple[RunRecord, ...], ...]:
    """
    Divide records into independent trajectories, in the order of the first of each.

    Runs with one seed are alike, and those whose worst wake-ups coincide; so are runs
    that are both like a third. Each run of a machine is independent.
    """
    clusters: list[list[RunRecord]] = [[record] for record in records]
    seeded = [record for record in records if record.run.seed is not None]
    pairs = list(combinations(seeded, 2))
    for one, other in pairs:
        again = one.run.seed == other.run.seed
        if again or coincide(one, other, comparisons=len(pairs)):
            first, second = (
                next(c for c in clusters if any(r is record for r in c))
                for record in (one, other)
            )
            if first is not second:
                first.extend(second)
                clusters = [c for c in clusters if c is not second]
    return tuple(map(tuple, clusters))


def coincide(one: RunRecord, other: RunRecord, *, comparisons: int = 1) -> bool:
    """
    Whether the worst wake-ups of two runs are the same activations beyond chance.

    Of n activations of a CPU, lists of a and b that know nothing of each other share
    a b / n on average; P(Poisson ≥ shared) at 5 %, divided by the comparisons made.
    """
    from scipy.special import gammainc

    shared, expected = 0, 0.0
    for mine, theirs in _of_equal_cpus(one, other):
        a, b = ({w.seq for w in t.worst} for t in (mine, theirs))
        shared += len(a & b)
        activations = max((mine.end_ns - mine.start_ns) // mine.interval_ns, 1)
        expected += len(a) * len(b) / activations
    return bool(shared and gammainc(shared, expected) * comparisons <= SIGNIFICANCE)


def _of_equal_cpus(
    one: RunRecord, other: RunRecord
) -> Iterator[tuple[ThreadResult, ThreadResult]]:
    theirs = list(other.result.threads)
    for mine in one.result.threads:
        same = next((thread for thread in theirs if thread.cpu == mine.cpu), None)
        if same is not None:
            theirs.remove(same)
            yield mine, same
