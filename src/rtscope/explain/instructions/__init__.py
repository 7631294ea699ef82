"""
From the instructions that a virtual board executed to an explanation. Pure.

    path.py                     all inputs of one explanation
    stretches.py                executed blocks, by function
    calls.py, primitives.toml   from those to calls, and their names
    chains.toml                 names that say little in a chain of calls
    roles.py, roles.toml        roles of the kernel's functions
    contexts.py                 interrupt or callback of each run; interrupts off
    absences.py, waits.toml     times off the CPU, and the reason of each wait
    elsewhere.py                timers on other CPUs; the wake-up after an obstacle
    milestones.py               expiry, interrupt, callback, scheduler, switch
    scheduling.py               competing tasks
    holders.py                  the holder of a lock; a group without CPU time
    wakers.py                   who made the thread wait, and who ended that wait
    told.py                     the same in words
    othercpus.py                activity of other CPUs, and loops that wait for them
    causes.py                   part and cause of each piece of the path
    titles.py                   pieces of a path, and the name of each
    reports.py, reports.toml    reports of the kernel, as WARN()
    explain.py                  the explanation
    carriers.py                 who carried an event to the thread
    deferred.py                 a poll that was left to ksoftirqd
    requested.py                which request an interrupt answers
    released.py                 a thread that a known call woke, and no timer
    eventway.py                 the explanation of an answer to an event, or of a gap
    sections.py                 the longest critical sections, by name
    proofs.py                   the invariants, checked; was preemption off?
"""
