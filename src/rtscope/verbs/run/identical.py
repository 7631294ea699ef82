"""Whether equal inputs gave equal results: --identical-to, and what requires it."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rtscope.cli.console import put
from rtscope.host.errors import UsageError
from rtscope.host.escape import printable
from rtscope.record.directory.records import open_records
from rtscope.record.model import RunRecord
from rtscope.stats.determinism import Compared, against, among

DIGITS = 12
"""Digits of a digest: enough to distinguish two by eye."""


def stored_records(path: Path) -> list[RunRecord]:
    """Return a stored record; refuse one of a real machine, before anything runs."""
    stored = open_records(path)
    if any(record.virtual is None for record in stored):
        raise UsageError(
            f"--identical-to {path}: no two runs of a real machine have identical "
            "results; to compare them: rtscope compare"
        )
    return stored


def compare_results(
    records: Sequence[RunRecord],
    *,
    stored: Sequence[RunRecord] | None,
    on_stdout: bool,
) -> int:
    """Print which results are identical; return 0 if all are."""
    comparisons = among(records) if stored is None else against(records, stored)
    text = "\n".join(_lines(comparisons, stored is not None)) + "\n"
    if on_stdout:
        put(text)
    else:
        sys.stderr.write(text)
    return int(not comparisons or not all(one.identical for one in comparisons))


def _lines(comparisons: Sequence[Compared], is_stored: bool) -> Iterator[str]:
    good = sum(one.identical for one in comparisons)
    verdict = "IDENTICAL" if good == len(comparisons) else "NOT IDENTICAL"
    held = "to the stored record" if is_stored else "in all of their repetitions"
    yield ""
    yield f"{verdict}: {good} of {len(comparisons)} runs are identical {held}."
    width = max((len(one.name) for one in comparisons), default=0)
    for one in comparisons:
        yield f"  {printable(one.name):<{width}}  {_outcome(one)}"
        if not one.same_result:
            yield from (
                f"    {printable(run):<{width}}  {digest[:DIGITS]}"
                for run, digest in zip(one.runs, one.results, strict=True)
            )


def _outcome(one: Compared) -> str:
    if len(one.results) < 2:
        return "no such run in the stored record"
    result = (
        f"result {one.results[0][:DIGITS]}" if one.same_result else "RESULTS DIFFER"
    )
    if not one.known:
        return f"{result}, inputs unknown (record of an older rtscope)"
    if one.differing:
        return f"{result}, INPUTS DIFFER: {', '.join(one.differing)}"
    boots = f"{len(one.results)} times, " if one.same_result else ""
    return f"{result}, {boots}inputs equal"
