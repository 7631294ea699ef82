"""
`rtscope run`: measure a machine, virtual boards, or several of both.

    run.py            the verb; runs of bundles
    identical.py      --identical-to, and whether equal inputs gave equal results
    cyclictest.py     the same by a command line of cyclictest
    labfile.py        the boards of --lab and --target, and their campaigns
    boards.py         a campaign over several boards
    boardprocess.py   the process that measures one of them, as its parent sees it
    oneboard.py       that process
    boardsview.py     the progress of all boards
    boardsreport.py   the report of all boards
"""
