"""
From the events of a kernel's trace to an explanation; pure but for `run.py`.

    run.py           the worst wake-ups of a run on a machine
    window.py        the wake-up to explain, and the events around it
    context.py       all inputs of one explanation
    explain.py       the explanation
    threadstates.py  states of the thread from expiry to its own code
    spans.py         activity of a CPU over time
    irqdelay.py      causes of a late timer interrupt; times without events
    scheduling.py    causes that kept a ready thread from its CPU
    freezer.py       the task that froze the thread
    limits.py        limits of the explanation
    traits.py        traits of a machine that events do not show
    sections.py      the longest critical sections and interrupts
    proofs.py        the invariants, checked
"""
