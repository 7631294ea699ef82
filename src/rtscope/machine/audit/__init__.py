"""
Is a machine, or a kernel, set up for real time? Checks as data, answered in four ways.

    model.py      the words: a check, its outcome, the evidence
    answer.py     what a check function answers
    catalogue.py  checks/*.toml, read and checked; every check function by its name
    context.py    what check functions get to see: the machine, and for whom
    *checks.py    how checks are answered, by what they look at
    observe.py    look twice, and try on a machine what no file tells
    unit.py       a unit of systemd, as its files say it
    examine.py    from a machine's files to answers
    capture.py    what was read as an archive without secrets, and back
"""
