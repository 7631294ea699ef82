"""
The change that makes a kernel worse: search commits, patches or settings.

    bisect.py                   the verb
    directory.py                the directory of a search, new or continued
    subjects.py                 subjects of a search: commits, patches, settings
    search.py                   one search, from its ends to the change
    history.py                  commits between good and bad, by git's bisection
    patches.py                  a series of patches as commits
    settingsearch.py, ddmin.py  settings, by delta debugging
    symbols.py                  settings that differ between two configurations (pure)
    gitrun.py                   git, in our repositories and the user's
    kernels.py                  kernels of a search, built in a directory of the cache
    boards.py                   boots of each kernel, one for each seed
    trials.py                   trials: each kernel built and measured once
    criterion.py                is a kernel bad? its runs against the good ones (pure)
    figures.py                  figures to search by (pure)
    outcome.py                  the result of a search (pure)
    text.py                     the result for a terminal
    step.py, measured.py        `--measured`: one step on a machine
    machineruns.py              its runs: two ends and a new kernel (pure)
    runtest.py                  its test: the end that a kernel is like (pure)
    steptext.py                 its result for a terminal
"""
