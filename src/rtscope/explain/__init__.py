"""
Who made a wake-up late, for how long, with evidence: a sum that closes.

    model.py   an explanation: stretches from expiry to thread, each with its cause
    calls.py   from executed blocks to calls, with the callers of each
    names.py   what the functions of a kernel tell, per architecture
    path.py    from the recorded path of a virtual board to an explanation
"""
