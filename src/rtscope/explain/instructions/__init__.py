"""
From the instructions that a virtual board executed to an explanation. Pure.

    path.py                     all inputs of one explanation
    stretches.py                executed blocks, by function
    calls.py, primitives.toml   from those to calls, and their names
    reading.py                  where the program read its clock
    roles.py, roles.toml        roles of the kernel's functions
    contexts.py                 interrupt, softirq or callback of each run
    absences.py, waits.toml     times off the CPU, and the reason of each wait
    elsewhere.py                a timer that expired on another CPU
    flags.py                    interrupts off, preemption counts
    milestones.py               expiry, interrupt, callback, scheduler, switch
    scheduling.py               competing tasks
    holders.py                  the holder of a lock, and tasks that ran in its place
    quotas.py                   a group without CPU time
    wakers.py                   the wake-up of a thread after an obstacle
    othercpus.py                activity of other CPUs meanwhile
    loops.py                    loops in which a CPU waits for another one
    causes.py                   part and cause of each piece of the path
    preemption.py               whether preemption was off, where nothing is preempted
    pieces.py                   neighbouring runs of one kind
    titles.py                   the name of a segment
    explain.py                  the explanation
    sections.py                 the longest critical sections, by name
    proofs.py                   the invariants, checked
"""
