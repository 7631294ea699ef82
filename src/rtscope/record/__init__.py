"""
A run on disk: its record, and the files beside it.

    model.py        a record, of a machine or a virtual board
    directory/      a directory of records
    wakeparts.py    how long the parts of all wake-ups took
    samples.py      each wake-up with its time, compressed
    explanation.py  `explain.json`, beside a record
    pack.py         a result directory as one archive to mail
    caveats/        known weaknesses of a run
    events/         traces of ftrace, as trace.dat or text
    instructions/   paths that a virtual board executed
    foreign/        results of other tools, read
    published/      published tables to compare with
"""
