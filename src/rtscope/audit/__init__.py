"""
Is a machine, or a kernel, set up for real time? Checks as data, answered in four ways.

    model.py      the words: a check, its answer, the evidence
    catalogue.py  checks/*.toml, read and checked
    scene.py      everything that was read, for the judges
    judges.py     how a check is answered; most need no more than data
    judgetable.py every judge by its name; they lie in files by what they look at
    watch.py      look twice, and try on this machine what no file tells
    examine.py    from a machine's files to answers
    capture.py    what was read as an archive, and back; redact.py takes secrets out
"""
