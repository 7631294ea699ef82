"""
From the events of a kernel's trace to an explanation; pure but for `run.py`.

    run.py           the worst wake-ups of a run on a machine
    window.py        the events around a wake-up, and the state before them
    explain.py       the explanation, its limits, its invariants
    eventlists.py    events of a trace by CPU, thread and kind, in order of time
    histories.py     priority and name of each thread over time
    threadstates.py  states of a thread, and times in which it waited
    intervals.py     causes in each interval of the wake-up
    threadnames.py   names of threads, each from when on
    spans.py         activity of a CPU over time
    irqdelay.py      causes of a late timer interrupt; times without events
    scheduling.py    waits for a CPU; who lent a priority
    limits.py        throttling, servers and quotas
    tracers.py       latencies without recorded switches
    carriers.py      who carried an event to the thread
    eventway.py      the explanation of an answer to an event, or of a gap
    sections.py      the longest critical sections and interrupts
"""
