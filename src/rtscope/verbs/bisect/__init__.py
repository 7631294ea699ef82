"""
The change that makes a kernel worse: search commits, patches or settings.

    bisect.py                   the verb, and one search from its ends to the change
    directory.py                the directory of a search, new or continued
    subjects.py                 subjects of a search: commits, patches, settings
    history.py                  commits by git bisect, patches as commits
    settings.py                 settings that differ, searched by delta debugging
    kernels.py                  kernels of a search: built, and booted for each seed
    criterion.py                figures to search by; what makes a kernel bad
    outcome.py                  trials of kernels, and the result of a search
    text.py                     the result for a terminal
    program.py, programtext.py  commits of a program, by its test
    step.py                     one step on a machine, by its runs
    measured.py                 `--measured`: that step, for a terminal
    machineruns.py              its runs: two ends and a new kernel (pure)
"""
