"""
Campaigns on virtual boards: each run is one boot, whose result is exact.

    prepare.py       check a campaign, fetch all parts
    capacity.py      number of boots that this machine can run at once
    runner.py        all runs of a plan, for `measure.execute`
    script.py        script of a run for the board's shell (pure)
    boot.py          one boot: QEMU from start to end, timeouts
    diagnosis.py     reason of a failed boot (pure)
    assemble.py      observations from the files of a board, digests of its inputs
    kernellayout.py  where a kernel keeps its current task (pure)
    symbols.py       names for addresses
    replay.py        the same run again, recording more
    secondpass.py    the same within a run, for paths that were too long
    inspect.py       a board from inside, for an audit
    smoketest.py     does a kernel run as it was built? (pure)
"""
