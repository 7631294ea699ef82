"""
`rtscope run`: measure a machine or virtual boards.

    run.py          the verb
    bundle.py       a campaign and its parts from a bundle
    determinism.py  `--identical-to`: equal inputs must give equal results
"""
