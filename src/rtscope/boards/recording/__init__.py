"""
Recorded runs of virtual boards: replayed, with the symbols of their kernels.

    kernellayout.py  offsets of a kernel's current task and preemption count (pure)
    replay.py        the same run again, with more recorded
    secondpass.py    a second pass for paths longer than the recorder's ring
    symbols.py       the symbols of a board's kernel
"""
