"""
From the instructions that a virtual board executed to an explanation.

    calls.py       from executed blocks to calls: callers, role and name of each
    roles.toml     the functions that have a role
    contexts.py    the interrupt or scheduling that calls belong to; the end of a path
    absences.py    when the thread was off its CPU, and what it waited for
    elsewhere.py   its timer, where that expired on another CPU
    wakers.py      when such a thread came into the queue of its CPU
    milestones.py  interrupt, callback, scheduler, switch, and the tick
    scheduling.py  what kept the CPU: competing tasks, other CPUs
    path.py        all that a wake-up is explained from
    causes.py      part and cause of all that its CPU executed
    explain.py     the explanation: its segments, their names and evidence
    sections.py    the longest sections of a board, by name
"""
