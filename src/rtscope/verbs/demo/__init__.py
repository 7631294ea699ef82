"""
Scheduling scenarios: their scripts, their threads' spans, and their checks.

    demo.py                       `app demo`
    scenarios.toml                the scenarios: cases, and scripts of their threads
    model.py                      a scenario, and its result
    machine.py                    one run on a machine
    board.py                      one run on a virtual board, in one boot
    caseresult.py                 from the agent's lines to spans of each thread
    judge.py                      the checks, by name, and their outcomes
    urgency.py                    checks of threads of different priority
    timing.py                     checks of periodic threads
    memory.py                     checks of threads that write to memory
    limits.py                     limits of the kernel for real-time threads
    words.py                      spans and times in words
    text.py                       the result for a terminal
    lanes.py                      the timeline of a result, as markup
    page.py, demo.html, demo.css  the page of a result
"""
