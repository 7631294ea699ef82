"""
Campaigns on virtual boards: each run is one boot, whose result is exact.

    prepare.py                    a campaign checked, and its parts made
    sameparts.py                  parts of earlier results, which later ones must share
    readiness.py                  abilities of this computer for virtual boards
    runner.py                     the runner: as many boots at once as fit
    script.py                     the script of a run for the board's shell (pure)
    boot.py                       one boot
    watchdog.py                   when a boot is given up
    capacity.py                   how many boots fit on this machine at once
    outcome.py                    the results of a boot as bytes
    store.py                      results of earlier boots, and their host time
    program.py                    a program of the user's: one boot, some starts
    programscript.py              its script for the board's shell (pure)
    identity.py                   all that decides the result of a program's boot
    assemble.py                   observations from the files of a board
    diagnosis.py, diagnosis.toml  boots without results; kernels that complain
    inspect.py                    a board seen from inside; settings of `--tuned`
"""
