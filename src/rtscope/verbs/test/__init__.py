"""
`rtscope test`: a program as an exact real-time test, on virtual boards.

    command.py       the verb: its options, its answer, its exit status
    options.py       the options that stand for keys of a test file
    file.py          a test: what is run where, and its budgets, from a file or options
    kinds.py         the kinds of values in a test file
    plan.py          a test as boots: the program built, its files, its loads
    packages.py      its packages of Debian, unpacked, as a part of the cache
    running.py       the boots, as many at once as fit
    runs.py          what each boot gave: its threads; output, end, identity
    judge.py         its budgets, kept or broken
    places.py        which functions did it: the stacks of places, named
    baseline.py      results that are kept, and what differs from them
    profile.py       what each cycle of a thread executed, by functions and lines (pure)
    keptcode.py      what a baseline keeps of it (pure)
    grown.py         which functions executed more than before (pure)
    answer.py        the answer, for people
    forms.py         the answer, for programs
    functions.py     the functions of the worst cycle, by their instructions
    codefile.py      which code each thread executed, as a board's plugin wrote it
    codeseen.py      what the boots executed of the program, and what they never reached
    executed.py      what each thread executed, by function, over all its cycles (pure)
    reached.py       functions of the program that its judged threads never entered
    codetables.py    what was executed, in tables and for JSON (pure)
    latencyparts.py  the parts of all wake-up latencies: table and JSON
    recorded.py      the worst cycle booted again with every instruction, explained
    page.py          the page: the worst cycle over all CPUs, the responses
    responsecharts.py  responses and parts of latencies, drawn
    search/          the worst that can be found: the next starts to try
"""
