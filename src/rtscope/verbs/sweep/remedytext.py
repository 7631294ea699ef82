"""A sweep of remedies: what it adds to a sweep, and its result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import kernel_names
from rtscope.cli.console import log, note
from rtscope.host.errors import UsageError
from rtscope.host.escape import printable
from rtscope.host.units import format_us, plural
from rtscope.machine.audit.model import CheckKind
from rtscope.machine.settings.remedies import choose
from rtscope.measure.campaign.file import from_dict, to_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.present.document import Block, Span, Table, Words, table
from rtscope.present.render.fitted import Compose, Room
from rtscope.record.directory.journal import REMEDY
from rtscope.record.directory.place import CAMPAIGN, SWEEP, read_document
from rtscope.record.directory.records import ResultDir
from rtscope.record.explanation import find_explained
from rtscope.record.pack import is_packed
from rtscope.verbs.sweep.doubts import lines_of_checks
from rtscope.verbs.sweep.effects import CellEffect
from rtscope.verbs.sweep.file import Diagnosis, Sweep
from rtscope.verbs.sweep.remedies import worst_records, worst_wakeups
from rtscope.verbs.sweep.remedydesign import Original, sweep_of_remedies
from rtscope.verbs.sweep.result import SweepResult
from rtscope.verbs.sweep.survey import explain_missing
from rtscope.verbs.sweep.text import interval_of, lines_of_limits, sweep_data, value_of

WORST, AVERAGE = "worst", "average"


def remedies_answer(result: SweepResult, diagnoses: Sequence[Diagnosis]) -> str:
    """Return the answer in a sentence: the best remedy of the load that is latest."""
    with_remedies = [one for one in diagnoses if one.remedies]
    if not with_remedies:
        return f"nothing to try: {'; '.join(dict.fromkeys(map(_why, diagnoses)))}"
    first = with_remedies[0]
    tested = effects_on(result, first, WORST)
    head = f"{printable(first.load)}, late by {printable(first.cause)}"
    if not tested:
        whys = [cell.not_counted for cell in result.cells if cell.not_counted]
        return ": ".join((head, "no remedy was measured", *map(printable, whys[:1])))
    best = min(tested, key=lambda one: one.ratio)
    name = printable(remedy_of(best))
    if best.ratio >= 1:
        return f"{head}: none of {plural(len(tested), 'remedy')} lowers the worst"
    doubt = "" if best.found else f", not shown by {plural(best.pairs, 'seed')}"
    return f"{head}: {name} lowers the worst to {best.ratio:.3g} times{doubt}"


def _why(one: Diagnosis) -> str:
    """Return the cause, and why no remedy is tried for it."""
    whys = [f"{name}: {why}" for name, why in one.not_tried.items()] or [one.why]
    return printable(": ".join(filter(None, (one.cause, ", ".join(whys)))))


def effects_on(
    result: SweepResult, diagnosis: Diagnosis, figure: str
) -> tuple[CellEffect, ...]:
    """Return what the remedies of a load do to a figure, the most helpful first."""
    effects = [
        one
        for one in result.effects
        if one.figure == figure
        and remedy_of(one) in diagnosis.remedies
        and _is_of(one, diagnosis)
    ]
    return tuple(sorted(effects, key=lambda one: one.ratio))


def _is_of(effect: CellEffect, diagnosis: Diagnosis) -> bool:
    """Whether the base of an effect is the run of a diagnosis, all else equal."""
    if diagnosis.key:
        return effect.key == diagnosis.key
    return effect.key[:2] == (diagnosis.load, diagnosis.kernel)


def remedy_of(effect: CellEffect) -> str:
    """Return the name of the remedy that an effect is of."""
    return effect.cell.removeprefix(f"{REMEDY}: ")


def compose_remedies(
    result: SweepResult, diagnoses: Sequence[Diagnosis], *, more: str
) -> Compose:
    """Return what composes the short form for `print_fitted`."""

    def compose(room: Room) -> Iterator[Block]:
        yield (remedies_answer(result, diagnoses), "strong")
        if result.missing:
            text = f"{plural(result.missing, 'planned run')} without a result"
            yield (f"LIMIT: {text}", "limit")
        yield from lines_of_limits(result)
        yield ""
        left = room.rows
        for one in diagnoses:
            if left <= 0:
                yield "…"
                break
            lines = lines_of_cause(one)
            yield from lines
            left -= len(lines)
            rows = effects_on(result, one, WORST)[: max(left, 0)]
            if rows:
                yield _table(result, one, rows)
                left -= 1 + len(rows)
        yield ""
        if room.sentences > 1 and result.effects:
            yield (
                "Ratios to the original of the same seeds; * is found by an exact "
                "test, all others may be chance."
            )
        yield from lines_of_checks(result.checks)
        yield Words((more,), fit="whole")

    return compose


def lines_of_cause(one: Diagnosis) -> list[str]:
    """Return a line on the cause of a load, and one for each remedy not tried."""
    where = f" on {one.kernel}" if one.kernel else ""
    cause = f": {one.cause}" if one.cause else ""
    why = f"; {one.why}" if one.why else ""
    head = f"{one.load}{where}, {format_us(one.worst_ns)} µs{cause}{why}"
    others = (f"  {name}: {reason}" for name, reason in one.not_tried.items())
    return [printable(line) for line in (head, *others)]


def _table(
    result: SweepResult, diagnosis: Diagnosis, effects: Sequence[CellEffect]
) -> Table:
    averages = {remedy_of(one): one for one in effects_on(result, diagnosis, AVERAGE)}
    rows: list[list[Span]] = []
    for one in effects:
        name = remedy_of(one)
        average = averages.get(name)
        rows.append(
            [
                f"  {printable(name)}",
                value_of(one.base, WORST),
                value_of(one.changed, WORST),
                (_ratio(one), "bad" if one.ratio > 1 else "good"),
                interval_of(one),
                _ratio(average) if average else "",
            ]
        )
    heads = ("worst", "with it", "ratio", "95 %", "average")
    return table(("  remedy",), heads, rows)


def _ratio(effect: CellEffect) -> str:
    return f"{effect.ratio:.3g}{'*' if effect.found else ''}"


def remedies_data(
    result: SweepResult, diagnoses: Sequence[Diagnosis]
) -> Mapping[str, Any]:
    """Return the result as plain values; latencies in ns."""
    return {
        **sweep_data(result),
        "answer": remedies_answer(result, diagnoses),
        "diagnoses": [asdict(one) for one in diagnoses],
    }


# --- what a sweep of remedies adds: a record's causes, and its campaign as the base ---

NAME = "remedies"
"""Instead of a file: `rtscope sweep remedies RECORD`."""


def remedies_for(path: Path | None) -> Sweep:
    """
    Return the sweep of the remedies for a record; without axes if none can be tried.

    Raises UsageError for a record of a machine, or without a finished run.
    """
    if path is None:
        raise UsageError(
            "sweep remedies: name the result of a virtual board: rtscope sweep "
            "remedies RECORD"
        )
    campaign = _campaign_of(path)
    store = ResultDir(path)
    records = store.records()
    if not records:
        raise UsageError(
            f"{path}: has no finished run; continue with {CAMPAIGN.to_go_on(path)}"
        )
    worst = worst_records(records)
    explain_missing(worst, store)
    board = get_board(campaign.board or "")
    sweep = sweep_of_remedies(
        Original(
            campaign=campaign,
            base=to_dict(campaign),
            source=str(path),
            kernels=kernel_names(board.arch),
            cpus=board.cpus,
            arch=board.arch,
            append=(*board.append, *campaign.append),
            tuned=frozenset(kind.id for kind in _tuned(campaign)),
        ),
        worst_wakeups(worst, find_explained([path], worst, log=log)),
    )
    if sweep.axes and (tried := _seeds(sweep)) < (all_of_it := len(campaign.run_seeds)):
        note(f"  with {tried} of the {all_of_it} seeds of {path}")
    return sweep


def _campaign_of(path: Path) -> Campaign:
    """Return the campaign of a board; UsageError for all that is none."""
    _refuse_other_results(path)
    document = read_document(path, CAMPAIGN)
    campaign = from_dict(document.asked, source=document.source)
    if campaign.board is None:
        raise UsageError(
            f"{path}: measured on a machine ({campaign.target}); remedies are tried "
            "on virtual boards only. On the machine: rtscope audit names its remedies, "
            "and rtscope run --tuned ID measures with one"
        )
    get_board(campaign.board)
    if campaign.qemu is not None:  # a result may have come by mail
        raise UsageError(
            f"{path}: measured with a QEMU of its own ({campaign.qemu}); measure again "
            "without --qemu, then type rtscope sweep remedies with that result"
        )
    return campaign


def _refuse_other_results(path: Path) -> None:
    """Raise UsageError, with what to type, for what is no result of `rtscope run`."""
    if CAMPAIGN.is_in(path):
        return
    again = f"rtscope sweep {NAME}"
    for whole in path.parents:
        if path.exists() and CAMPAIGN.is_in(whole):
            raise UsageError(
                f"{path}: a part of the result {whole}; type {again} {whole}"
            )
    if path.is_file():
        if is_packed(path):
            raise UsageError(
                f"{path}: an archive; unpack it with tar -xzf {path}, then type "
                f"{again} DIRECTORY"
            )
        raise UsageError(
            f"{path}: a file, and no result directory; type {again} DIRECTORY, after "
            "rtscope run --target virtual:pc --out DIRECTORY"
        )
    if SWEEP.is_in(path):
        raise UsageError(
            f"{path}: a sweep; name one of its cells, for example {again} "
            f"{path / SWEEP.parts / '000-base'}"
        )
    if ResultDir(path).done_ids():
        raise UsageError(
            f"{path}: imported from another tool, or without its {CAMPAIGN.file}; "
            "remedies are tried on virtual boards only: rtscope run --target virtual:pc"
        )


def _tuned(campaign: Campaign) -> list[CheckKind]:
    return choose(campaign.tuned) if campaign.tuned else []


def _seeds(sweep: Sweep) -> int:
    return len(from_dict(dict(sweep.base), source=sweep.source).run_seeds)


def announce(diagnoses: Sequence[Diagnosis]) -> None:
    """Say what is tried against what, and what is not."""
    for one in diagnoses:
        tried = f"; tried: {', '.join(one.remedies)}" if one.remedies else ""
        first, *rest = lines_of_cause(one)
        note(f"  {first}{printable(tried)}")
        for further in rest:
            note(f"  {further}")
