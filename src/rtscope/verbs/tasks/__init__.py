"""
`rtscope tasks`: every thread of a machine.

    tasks.py      the verb
    shielding.py  CPUs that are kept for a program while it runs
    changes.py    changes between two lists
    changing.py   a line for each change
    details.py    control group and capabilities below a thread
    text.py       the list of threads, for a terminal and as JSON
"""
