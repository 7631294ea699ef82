"""
From the events of a kernel's trace to an explanation.

    window.py        which wake-up is explained, and the events around it
    threadstates.py  what the thread went through from expiry to its own code
    spans.py         what a CPU was doing when
    irqdelay.py      why the timer's interrupt came late; times without any event
    scheduling.py    why a ready thread did not run
    intervals.py     what delayed the thread in each interval, from these
    explain.py       the explanation, and what limits it
    sections.py      the longest sections from preemptirq events
    run.py           the worst wake-ups of a run on a machine
"""
