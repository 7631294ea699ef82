"""A program that makes a large list of bytes in each of its periods."""

import os
import time


def append() -> bytes:
    """Make bytes that Python's own allocator of small objects does not keep."""
    return bytes(5_000)


def main() -> None:
    """Cycle as a thread of FIFO."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(61))
    while True:
        time.sleep(0.001)
        append()


if __name__ == "__main__":
    main()
