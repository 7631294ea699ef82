"""
Who made a wake-up late, for how long, with evidence: a sum that closes.

    directory.py                    from a result directory or a trace to explained runs
    runs.py                         explained wake-ups of runs, for every report
    outsidecycle.py                 from a cycle of a program on a board, booted again
    outsidetimeline.py              one cycle over all CPUs, by what was seen (pure)
    model.py, invariants.toml       explanations, segments, causes, invariants
    carrying.py                     the time of who carries an event (pure)
    joining.py                      neighbouring segments of one cause as one (pure)
    instructions/                   from the instructions that a virtual board executed
    events/                         from the events of a kernel's trace
    words.py, clauses.toml          an explanation in words (pure)
    bound.py                        latency bound from sections; the tail by cause
    activity.py                     activity of all CPUs in a wake-up; for Perfetto
    timeline.py                     the same as slices that can be drawn (pure)
"""
