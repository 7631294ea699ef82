"""The doubts of all runs in one list, the gravest first, each said once."""

from collections.abc import Sequence
from dataclasses import dataclass

from rtscope.caveats.catalogue import Caveat, Effect, gravest_first, kind_of
from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.report.words import micro, virtual_word
from rtscope.stats.determinism import caveats_among


@dataclass(frozen=True, slots=True)
class MergedCaveat:
    """One kind of doubt, with what each run had to say about it."""

    id: str
    effect: Effect
    says: str
    details: tuple[str, ...]
    remedy: str
    runs: tuple[str, ...]
    everywhere: bool
    """Whether every run of the report has it."""


def merged_caveats(records: Sequence[RunRecord]) -> tuple[MergedCaveat, ...]:
    """Merge the caveats of records: their own, of their figures, of them together."""
    among = caveats_among(records)
    by_run = {r.run.id + str(i): among[i] for i, r in enumerate(records)}
    names = {r.run.id + str(i): printable(r.run.id) for i, r in enumerate(records)}
    ordered = gravest_first(c for caveats in by_run.values() for c in caveats)
    merged = []
    for caveat_id in dict.fromkeys(c.id for c in ordered):
        same = [c for c in ordered if c.id == caveat_id]
        runs = [
            key
            for key, caveats in by_run.items()
            if any(c.id == caveat_id for c in caveats)
        ]
        kind = kind_of(same[0])
        merged.append(
            MergedCaveat(
                id=printable(caveat_id),
                effect=kind.effect,
                says=printable(kind.says),
                details=tuple(
                    micro(printable(detail), virtual)
                    for detail, virtual in _details(caveat_id, records, among)
                ),
                remedy=kind.remedy,
                runs=tuple(dict.fromkeys(names[key] for key in runs)),
                everywhere=len(runs) == len(records),
            )
        )
    return tuple(merged)


def _details(
    caveat_id: str, records: Sequence[RunRecord], among: Sequence[Sequence[Caveat]]
) -> list[tuple[str, str]]:
    """Return what the runs had to say, and `virtual ` where times in it are so."""
    return sorted(
        {
            (caveat.detail, virtual_word([record]))
            for record, raised in zip(records, among, strict=True)
            for caveat in raised
            if caveat.id == caveat_id and caveat.detail
        }
    )
