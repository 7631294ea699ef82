"""
Who made a wake-up late, for how long, with evidence: a sum that closes.

    model.py         an explanation: segments from expiry to thread, and their causes
    instructions/    from the instructions that a virtual board executed
    events/          from the events of a kernel's trace
    words.py         an explanation as text, and its caveats
    runs.py          the explained wake-ups of runs, their causes, those of two kernels
    tail.py          the causes of the latest wake-ups of a run, and how many are known
    bound.py         what the longest sections could combine to
    perfetto.py      explained wake-ups as a trace for Perfetto
"""
