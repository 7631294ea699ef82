"""
Campaigns on virtual boards: each run is one boot, whose result is exact.

    ready.py   what the runs need, checked and fetched before the first
    inputs.py  all that a result depends on, by digest
    job.py     what the board does, as a script (pure)
    boot.py    one boot: QEMU from start to end, and why it failed
    answer.py  from the files that the board sends to a record
    matrix.py  all runs of a plan, as many at once as the host has CPUs
    stream.py   the recorded paths as they lie beside a record
    symbols.py  names for addresses; places.py: where a kernel keeps its task
    recorded.py a record with its paths and symbols
    replay.py   the same run again, recording more
"""
