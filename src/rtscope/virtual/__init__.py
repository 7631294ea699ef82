"""
Campaigns on virtual boards: each run is one boot, whose result is exact.

    prepare.py       what the runs need, checked and fetched before the first
    capacity.py      how many boots fit into this machine at once
    runner.py        all runs of a plan, for `measure.execute`
    script.py        what the board does, as a script (pure)
    boot.py          one boot: QEMU from start to end, and how long it may take
    diagnosis.py     why a boot failed
    assemble.py      from the files that the board sends to what was measured, with
                     all that the result depends on, by digest
    kernellayout.py  where a kernel keeps its current task
    symbols.py       names for addresses
    replay.py        the same run again, recording more
    inspect.py       what an audit sees inside a board
    smoketest.py     whether a kernel runs as it was built
"""
