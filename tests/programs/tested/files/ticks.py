"""A loop of 5 ms at a real-time priority, which says how late it was."""

import os
import time

PERIOD_NS = 5_000_000

os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
late = []
due = time.monotonic_ns()
for _ in range(200):
    due += PERIOD_NS
    time.sleep((due - time.monotonic_ns()) / 1e9)
    late.append(time.monotonic_ns() - due)
print(*late)
