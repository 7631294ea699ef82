"""
The cycles of a thread, whoever saw it run: an agent, or a virtual board from outside.

    threadruns.py  runs of a thread, from a wake-up to the next sleep
    periods.py     which of them begin its cycles, and at which period
    timeouts.py    which waits with a timeout keep a period
    paces.py       a period that changes while the thread runs
"""
