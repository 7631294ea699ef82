"""
Campaigns on virtual boards: each run is one boot, whose result is exact.

    prepare.py                    a campaign, checked; all its parts, fetched
    sameparts.py                  parts of earlier results, which later ones must share
    readiness.py                  abilities of this computer for virtual boards
    capacity.py                   number of boards at once: CPUs, free memory
    hosttime.py                   host time of boots, estimated from earlier ones (pure)
    settings.py                   settings of `--tuned` for a board
    runner.py                     the runner: as many boots at once as fit
    script.py                     the script of a run for the board's shell (pure)
    boot.py                       one boot: QEMU from start to end, timeouts
    outcome.py                    the results of a boot as bytes
    store.py                      results of earlier boots, by digest of their inputs
    assemble.py                   observations from the files of a board
    guestfiles.py                 files of the guest, as files of a machine
    diagnosis.py, diagnosis.toml  the reason of a failed boot (pure)
    inspect.py                    a board from inside, for an audit
    smoketest.py                  does a kernel run as it was built? (pure)
"""
