"""
From the events of a kernel's trace to an explanation.

    select.py        which wake-up is explained when no record tells
    window.py        the events around a wake-up
    threadstates.py  what the thread went through from expiry to its own code
    spans.py         what a CPU was doing when
    context.py       events, thread and limits together
    irqdelay.py      why the timer's interrupt came late
    scheduling.py    why a ready thread did not run
    preemption.py    why a less urgent task was not preempted
    gaps.py          times without any event
    explain.py       the explanation
    run.py           the worst wake-ups of a run on a machine
    sections.py      the longest sections from preemptirq events
    perfetto.py      what every CPU did, for Perfetto
"""
