"""The digest by which two measurements are known to be the same."""

import hashlib
import json
from collections.abc import Sequence

from rtscope.contract.lines import ThreadResult


def result_digest(threads: Sequence[ThreadResult]) -> str:
    """
    SHA-256 over what was measured: equal digests mean the same measurement.

    Covers, per CPU: histogram, sums, min, max, skipped, early, worst (DESIGN 3).
    """
    seen = [
        {
            "cpu": t.cpu,
            "histogram": [list(pair) for pair in t.histogram],
            "sum_ns": str(t.sum_ns),
            "sum_sq_ns2": str(t.sum_sq_ns2),
            "min_ns": t.min_ns,
            "max_ns": t.max_ns,
            "skipped": t.skipped,
            "early": t.early,
            "worst": [[w.cpu, w.seq, w.expiry_ns, w.wake_ns] for w in t.worst],
        }
        for t in threads
    ]
    canonical = json.dumps(seen, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
