"""
Scheduling scenarios: their scripts, their threads' spans, and their checks.

    demo.py                       `app demo`
    machine.py                    one run on a machine
    board.py                      one run on a virtual board, in one boot
    scenarios.toml                the scenarios: cases, and scripts of their threads
    model.py                      demonstrations, and what came of them
    judge.py                      the checks of each scenario, and their outcomes
    limits.py                     limits of the kernel for real-time threads
    states.py, states.toml        the states of a thread, made and looked at
    statemaker.py                 the program that brings a thread into a state
    statestext.py                 the states for a terminal, a page and as data
    text.py                       the result for a terminal
    page.py, demo.html, demo.css  the page of a result, and its timelines
"""
