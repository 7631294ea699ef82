"""
What a run of the tests costs and leaves, and runs that take hours.

    times.py      the dearest tests and fixtures: `make test-times`
    leftovers.py  what a test leaves on the machine
    steps.py      commands one after the other, each noted, so that a run can go on
    flakes.py     the system tests again and again: `make flakes`
    nightly.py    what takes hours: `make nightly`
"""
