"""
`rtscope run`: measure a machine or virtual boards.

    run.py          the verb; runs of bundles; --identical-to
    cyclictest.py   the same by a command line of cyclictest
"""
