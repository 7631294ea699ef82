"""The buckets of the agent's histogram, as `agent/hist.h` cuts them."""

HIST_SUB_BITS = 10
"""Each power of two is cut into 2^10 buckets: a bucket spans ≤ 0.1 % of its values."""

HIST_MAX_BITS = 34
"""Latencies of 2^34 ns (17 s) and more are counted in `beyond`."""


def bucket_width_ns(low_ns: int) -> int:
    """Return how many ns the bucket that starts at low_ns spans."""
    return (
        1
        if low_ns < 1 << HIST_SUB_BITS
        else 1 << (low_ns.bit_length() - 1 - HIST_SUB_BITS)
    )


def is_bucket_low(low_ns: int) -> bool:
    """Whether some bucket starts at low_ns."""
    return 0 <= low_ns < 1 << HIST_MAX_BITS and low_ns % bucket_width_ns(low_ns) == 0
