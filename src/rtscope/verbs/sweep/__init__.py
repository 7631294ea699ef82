"""
Sweeps: campaigns that differ in a few settings, and the effect of each setting.

    sweep.py                       the verb, and surveys of machines
    show.py                        the result for terminal, page, JSON
    directory.py, file.py          the directory of a sweep, and its file
    shipped/                       sweep files that rtscope brings
    design.py                      from a sweep to cells; what pairs have in common
    plan.py                        the plan before anything runs
    preflight.py                   sweeps that a board cannot do, refused
    boots.py                       all cells, measured here or on a cluster
    cluster/                       boots on the workers of a Dask cluster
    effects.py                     pairs of equal seeds; effects of cells, of levels
    doubts.py                      reasons against an effect; runs computed twice
    result.py                      the result: cells, effects, costs, worst runs
    text.py, sweep.html            the result for a terminal, and as a page
    causes.py                      causes of worst wake-ups, read or explained
    survey.py                      surveys of stressors on boards
    ranking.py                     loads by their worst wake-up
    surveytext.py, survey.html     the result of a survey
    remedies.py, remedies.toml     remedies of a cause (pure)
    remedydesign.py                the sweep that tries remedies
    remedytext.py                  what a sweep of remedies adds; its result
"""
