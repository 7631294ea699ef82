"""
From the events of a kernel's trace to an explanation; pure but for `run.py`.

    run.py           the worst wake-ups of a run on a machine
    window.py        the wake-up to explain, and the events around it
    before.py        what was the case when the events around it begin
    explain.py       the explanation
    histories.py     priority and name of each thread over time
    threadstates.py  states of the thread from expiry to its own code
    intervals.py     causes in each interval of the wake-up
    spans.py         activity of a CPU over time
    irqdelay.py      causes of a late timer interrupt; times without events
    scheduling.py    causes that kept a ready thread from its CPU
    waiting.py       the time in which it was ready, and its segments
    limits.py        throttling, servers and quotas
    lending.py       priority inheritance
    noise.py         a wake-up of timerlat, from events of osnoise
    tracers.py       what a tracer or rtla reports itself
    traits.py        traits of a machine that events do not show
    sections.py      the longest critical sections and interrupts
    proofs.py        the invariants, checked
"""
