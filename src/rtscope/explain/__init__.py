"""
Who made a wake-up late, for how long, with evidence: a sum that closes.

    model.py     an explanation: stretches from expiry to thread, each with its cause
    calls.py     from executed blocks to calls, with the callers of each
    names.py     what the functions of a kernel tell, per architecture
    naming.py    what a stretch is called
    masking.py   when interrupts were off, and who switched them
    tasks.py     which tasks the CPU ran
    rivals.py    why another task ran
    way.py       the marks on the way: interrupt, callback, scheduler, switch
    path.py      from the recorded path of a virtual board to an explanation
    words.py     an explanation as a sentence, and its doubts
    bound.py     what the longest sections could combine to
    sections.py  the longest sections of a virtual board, by name
    eventsections.py  the same from preemptirq events
    causes.py    causes over the worst wake-ups of a run, and of two kernels
    perfetto.py  a trace of parts and calls for Perfetto
"""
