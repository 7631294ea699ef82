"""
Campaigns on virtual boards: each run is one boot, whose result is exact.

    ready.py   what the runs need, checked and fetched before the first
    inputs.py  all that a result depends on, by digest
    job.py     what the board does, as a script (pure)
    boot.py    one boot: QEMU from start to end, and why it failed
    answer.py  from the files that the board sends to a record
    matrix.py  all runs of a plan, as many at once as the host has CPUs
"""
