"""The digest by which two measurements are known to be the same."""

import hashlib
import json
from collections.abc import Sequence

from rtscope.contract.threads import ThreadResult


def result_digest(threads: Sequence[ThreadResult]) -> str:
    """
    SHA-256 over what was measured: equal digests mean the same measurement.

    Covers, per CPU: histogram, sums, min, max, skipped, early, worst. The keys stay so
    for ever, whatever the fields are called: results of all versions are compared by
    their digests.
    """
    return sha256_of_json(
        [
            {
                **({} if t.foreign is None else {"step_ns": t.foreign.step_ns}),
                "cpu": t.cpu,
                "histogram": [list(pair) for pair in t.histogram],
                "sum_ns": str(t.sum_ns),
                "sum_sq_ns2": str(t.sum_sq_ns2),
                "min_ns": t.min_ns,
                "max_ns": t.max_ns,
                "skipped": t.missed_periods,
                "early": t.early,
                "worst": [[w.cpu, w.seq, w.expiry_ns, w.wake_ns] for w in t.worst],
            }
            for t in threads
        ]
    )


def sha256_of_json(value: object) -> str:
    """Return the digest of a value's JSON, which is one however it was made."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
