"""
From the instructions that a virtual board executed to an explanation.

    calls.py       from executed blocks to calls, with the callers of each
    functions.py   what the functions of a kernel tell, per architecture
    milestones.py  the marks on the way: interrupt, callback, scheduler, switch
    naming.py      what a stretch is called
    irqsoff.py     when interrupts were off, and who switched them
    tasks.py       which tasks the CPU ran
    scheduling.py  why another task ran
    idle.py        when the whole board slept
    othercpus.py   what the other CPUs did meanwhile
    explain.py     the explanation
    sections.py    the longest sections of a board, by name
    perfetto.py    parts and calls for Perfetto
"""
