"""Which releases of Linux were measured: an archive has another one next month."""

from collections.abc import Iterable

from rtscope.record.model import RunRecord


def releases_of(records: Iterable[RunRecord]) -> tuple[str, ...]:
    """Return the releases that ran, in the order of their first runs."""
    return tuple(dict.fromkeys(one.release for one in records if one.release))
