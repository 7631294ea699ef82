"""
Who made a wake-up late, for how long, with evidence: a sum that closes.

    directory.py                    from a result directory or a trace to explained runs
    runs.py                         explained wake-ups of runs, for every report
    model.py                        an explanation: segments and causes (pure)
    instructions/                   from the instructions that a virtual board executed
    events/                         from the events of a kernel's trace
    invariants.py, invariants.toml  conditions of a valid explanation
    tail.py                         latest wake-ups of a run, by cause (pure)
    chains.py, chains.toml          a chain of calls in a few names (pure)
    words.py, clauses.toml          an explanation in words (pure)
    bound.py                        the bound from observed critical sections (pure)
    activity.py                     open activities of every CPU around a wake-up (pure)
    timeline.py                     the same as slices that can be drawn (pure)
    perfetto.py                     explained wake-ups as a trace for Perfetto (pure)
"""
