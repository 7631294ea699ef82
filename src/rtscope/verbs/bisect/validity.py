"""Which runs say something about a kernel."""

from collections.abc import Sequence

from rtscope.record.caveats.catalogue import Caveat, Effect, kind_of
from rtscope.record.model import RunRecord

WITHOUT_LOAD = frozenset(
    {
        *("load_died", "load_stalled", "worker_died", "worker_stopped", "worker_idle"),
        "stopped_early",
    }
)
"""Caveats of a run that was not measured under the whole load: it looks too good."""


def why_invalid(record: RunRecord, raised: Sequence[Caveat]) -> str:
    """Return why a run with these caveats says nothing; empty if it does."""
    if record.max_ns is None:
        return "no wake-up was measured"
    for caveat in raised:
        kind = kind_of(caveat)
        if kind.effect is Effect.INVALID or kind.id in WITHOUT_LOAD:
            return kind.message
    return ""
