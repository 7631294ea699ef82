"""
`rtscope test`: a program as an exact real-time test, on virtual boards.

    command.py       the verb: its options, its answer, its exit status
    file.py          a test: what is run where, and its budgets, from a file or options
    plan.py          a test as jobs of boards: files, packages, user, loads
"""
