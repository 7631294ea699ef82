"""
Is a machine, or a kernel, set up for real time? Checks as data, answered in four ways.

    model.py      the words: a check, its answer, the evidence
    catalogue.py  checks/*.toml, read and checked
    scene.py      everything that was read, for the judges
    judges.py     how a check is answered; most need no more than data
    examine.py    from a machine's files to answers
"""
