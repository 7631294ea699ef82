"""Which nights are new, and which ones before they are compared with."""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from rtscope.host.errors import UsageError, quote
from rtscope.stats.runsets import MAX_LENGTH_RATIO
from rtscope.verbs.history.database import Row, conditions
from rtscope.verbs.history.judge import Question
from rtscope.verbs.history.query import Filters
from rtscope.verbs.history.series import Night, Series, changes, series_of
from rtscope.verbs.history.tags import checked_tag

LATEST, LATEST_OF_BOARD = 4, 1
"""New nights, unless others are asked for: a virtual board repeats exactly."""

LAST = 20
"""Nights before, unless others are named."""

MOST_NIGHTS = 1_000

RUNS_OF_A_NIGHT, RUNS_AT_LEAST = 4, 100
"""Of each series so many newest runs are read for a night that is asked for."""

RUNS_BEFORE_A_RESULT = 5_000
"""Of each series, where a result is named that need not be the newest."""

_LAST = re.compile(r"last:([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class Baseline:
    """The nights to compare with: the last ones before, or those with a tag."""

    last: int = LAST
    tag: str = ""

    @property
    def words(self) -> str:
        """Name it: `20 nights before`."""
        return f"tag:{self.tag}" if self.tag else f"last:{self.last}"


def baseline_of(text: str) -> Baseline:
    """Return the baseline of `last:20` or `tag:good`; UsageError for others."""
    if text.startswith("tag:"):
        return Baseline(tag=checked_tag(text.removeprefix("tag:")))
    found = _LAST.fullmatch(text)
    if not found or int(found[1]) > MOST_NIGHTS:
        raise UsageError(
            f"--baseline: {quote(text)}: write last:20, for 1 to {MOST_NIGHTS:,} "
            "nights, or tag:good"
        )
    return Baseline(last=int(found[1]))


@dataclass(frozen=True, slots=True)
class Asked:
    """What is compared with what."""

    latest: int | None
    """The newest nights of each series, unless directories are named; None: usual."""
    directories: frozenset[str]
    baseline: Baseline
    deadline_ns: int | None

    def new_nights(self, *, virtual: bool) -> int:
        """Return how many nights of a series are new."""
        return self.latest or (LATEST_OF_BOARD if virtual else LATEST)


def questions(
    index: sqlite3.Connection, filters: Filters, asked: Asked
) -> tuple[Question, ...]:
    """Return a question for each series that has new nights."""
    rows, texts = _rows(index, filters, asked)
    tagged = {
        row["directory"]
        for row in index.execute(
            "SELECT directory FROM tag WHERE tag = ?", (asked.baseline.tag,)
        )
    }
    by_name: dict[str, list[Series]] = {}
    for one in series_of(rows):
        by_name.setdefault(one.name, []).append(one)
    return tuple(
        question
        for group in by_name.values()
        for question in _of_group(group, asked, tagged, texts)
    )


def _rows(
    index: sqlite3.Connection, filters: Filters, asked: Asked
) -> tuple[Sequence[Row], Mapping[int, str]]:
    where = " AND ".join(("part_of = ''", *filters.conditions))
    rows = index.execute(
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY series "
        f"ORDER BY started DESC) AS place FROM run WHERE {where}) WHERE place <= ? "
        "OR directory IN (SELECT directory FROM tag WHERE tag = ?)",
        (*filters.values, _most_runs(asked), asked.baseline.tag),
    ).fetchall()
    return rows, conditions(index)


def _most_runs(asked: Asked) -> int:
    if asked.directories:
        return RUNS_BEFORE_A_RESULT
    nights = asked.new_nights(virtual=False) + asked.baseline.last
    return RUNS_OF_A_NIGHT * nights + RUNS_AT_LEAST


def _of_group(
    group: Sequence[Series],
    asked: Asked,
    tagged: set[str],
    texts: Mapping[int, str],
) -> Iterator[Question]:
    """Yield the questions of series of one name, which differ in their settings."""
    newest = max((one.nights[-1] for one in group), key=lambda night: night.started)
    for series in group:
        new = _new(series, asked, newest)
        if not new:
            continue
        counting = tuple(night for night in new if night.runs)
        before = series.nights[: series.nights.index(new[0])]
        base = _base(series, before, new, asked.baseline, tagged)
        alike = tuple(night for night in base if _is_as_long(night, counting))
        enough = alike if asked.baseline.tag else alike[-asked.baseline.last :]
        question = Question(
            series=series,
            new=counting,
            base=enough,
            other_lengths=len(base) - len(alike),
            deadline_ns=asked.deadline_ns,
        )
        yield replace(
            question,
            differs=_differs(question, new, group, texts),
            changed=_changed(question, texts),
        )


def _new(series: Series, asked: Asked, newest: Night) -> tuple[Night, ...]:
    if asked.directories:
        return tuple(
            night for night in series.nights if night.directory in asked.directories
        )
    # Of settings that are no longer measured nothing is new.
    if series.nights[-1].directory != newest.directory:
        return ()
    return series.nights[-asked.new_nights(virtual=series.virtual) :]


def _base(
    series: Series,
    before: Sequence[Night],
    new: Sequence[Night],
    baseline: Baseline,
    tagged: set[str],
) -> list[Night]:
    nights: Sequence[Night] = before
    if baseline.tag:
        others = {night.directory for night in new}
        nights = [
            night
            for night in series.nights
            if night.directory in tagged and night.directory not in others
        ]
    return [night for night in nights if night.runs]


def _is_as_long(night: Night, new: Sequence[Night]) -> bool:
    ours, theirs = _length_ns(new), _length_ns([night])
    if not ours or not theirs:
        return ours == theirs
    return max(ours, theirs) <= MAX_LENGTH_RATIO * min(ours, theirs)


def _length_ns(nights: Sequence[Night]) -> float:
    lengths = [run["observed_ns"] or 0 for night in nights for run in night.runs]
    return median(lengths) if lengths else 0


def _differs(
    question: Question,
    new: Sequence[Night],
    group: Sequence[Series],
    texts: Mapping[int, str],
) -> tuple[str, ...]:
    """Return why there is nothing to compare with; empty: there is, or never was."""
    if not question.new:
        reasons = dict.fromkeys(why for night in new for why in night.left_out)
        return tuple(f"no run counts: {why}" for why in reasons)
    if question.is_testable:
        return ()
    others = [
        one
        for one in group
        if one is not question.series and one.nights[-1].started < new[0].started
    ]
    if not others:
        return ()
    last = max(others, key=lambda one: one.nights[-1].started)
    return changes(texts[last.settings], texts[question.series.settings])


def _changed(question: Question, texts: Mapping[int, str]) -> tuple[str, ...]:
    """Return what changed since the newest night before."""
    if not question.new or not question.base:
        return ()
    before, after = question.base[-1].runs[-1], question.new[-1].runs[-1]
    if before["state"] == after["state"]:
        return ()
    return changes(texts[before["state"]], texts[after["state"]])
