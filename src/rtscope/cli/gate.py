"""The gate of virtual boards: whether runs with equal inputs had equal results."""

import sys
from collections.abc import Iterator, Sequence

from rtscope.cli.console import put
from rtscope.errors import UsageError
from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.stats.determinism import Compared, against, among

FAILED = 1

DIGITS = 12
"""Of a digest: enough to tell two apart by eye."""


def check_stored(stored: Sequence[RunRecord], *, where: str) -> None:
    """Refuse a record that nothing can be identical with, before anything is run."""
    if any(record.virtual is None for record in stored):
        raise UsageError(
            f"--identical-to {where}: measured on a real machine, of which no two "
            "runs are alike; compare them with rtscope compare"
        )


def gate(
    records: Sequence[RunRecord],
    *,
    stored: Sequence[RunRecord] | None,
    on_stdout: bool,
) -> int:
    """Print what was identical; return 0 only if all of it was."""
    found = among(records) if stored is None else against(records, stored)
    text = "\n".join(_lines(found, stored is not None)) + "\n"
    if on_stdout:
        put(text)
    else:
        sys.stderr.write(text)
    return 0 if found and all(one.identical for one in found) else FAILED


def _lines(found: Sequence[Compared], is_stored: bool) -> Iterator[str]:
    good = sum(one.identical for one in found)
    verdict = "IDENTICAL" if good == len(found) else "NOT IDENTICAL"
    held = "to the stored record" if is_stored else "in all of their repetitions"
    yield ""
    yield f"{verdict}: {good} of {len(found)} runs are identical {held}."
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        yield f"  {printable(one.name):<{width}}  {_outcome(one)}"
        if not one.same_result:
            yield from (
                f"    {printable(run):<{width}}  {digest[:DIGITS]}"
                for run, digest in zip(one.runs, one.results, strict=True)
            )


def _outcome(one: Compared) -> str:
    if len(one.results) < 2:
        return "nothing to compare: the stored record has no such run"
    result = (
        f"result {one.results[0][:DIGITS]}" if one.same_result else "RESULTS DIFFER"
    )
    if not one.known:
        return f"{result}, inputs unknown: a record of an older rtscope"
    if one.differing:
        return f"{result}, INPUTS DIFFER: {', '.join(one.differing)}"
    boots = f"{len(one.results)} times, " if one.same_result else ""
    return f"{result}, {boots}inputs equal"
