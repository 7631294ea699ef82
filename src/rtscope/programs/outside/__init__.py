"""
What the plugin of a virtual board saw of a program, and what is made of it. Pure.

    file.py     the plugin's record of a program, parsed
    wakeups.py  from records to what each thread did between two sleeps
    locks.py    waits for locks among those in one call
    model.py    threads and their cycles
    clocks.py   the kernel's clock beside the board's time
    deeds.py    what a thread did between two times, and where
    stretches.py  parts of a wake-up, each of which may begin a cycle
    cycles.py   from these to the cycles of each thread
    parts.py    what took the time of a cycle, in words
    placed.py   on which CPUs a cycle was
"""
