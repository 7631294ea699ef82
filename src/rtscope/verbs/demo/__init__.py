"""
Scheduling scenarios: their scripts, their threads' spans, and their checks.

    demo.py                       `app demo`
    scenarios.toml                the scenarios: cases, and scripts of their threads
    model.py                      demonstrations, and what came of them
    run.py                        a demonstration on a machine or a board
    judge.py                      the checks of each scenario, and their outcomes
    limits.py                     limits of the kernel for real-time threads
    text.py, demo.html, demo.css  a demonstration for a terminal, and as a page
"""
