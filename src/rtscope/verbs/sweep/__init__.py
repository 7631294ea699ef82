"""
Sweeps: campaigns that differ in a few settings, and the effect of each setting.

    sweep.py, show.py              the verb; its result for terminal, page, JSON
    directory.py, file.py          the directory of a sweep, and its file
    shipped/                       sweep files that rtscope brings
    design.py, plan.py             from a sweep to cells; the plan before anything runs
    preflight.py                   sweeps that a board cannot do, refused
    boots.py, runners.py           all cells, measured here or on a cluster
    cluster/                       boots on the workers of a Dask cluster
    checks.py, differences.py      runs computed twice, which must be equal
    checktext.py                   their result in words
    pairing.py, keys.py            pairs of equal seeds, effects of cells (pure)
    effects.py                     an effect on one figure, against the base
    maineffects.py                 main effects of levels over all cells (pure)
    costs.py                       costs of a cell besides latency
    doubts.py, othercpus.py        reasons that invalidate or limit an effect
    trajectories.py                runs that are one trajectory
    result.py                      the result: cells, effects, failures
    text.py, sweep.html            the result for a terminal, and as a page
    causes.py, explanations.py     causes of worst wake-ups, read or explained
    worstruns.py, worstruntext.py  the worst run of each cell
    survey.py, machinesurvey.py    surveys of stressors, on boards and machines
    stressors.py, releases.py      stressors of a board; releases of Linux
    ranking.py                     loads by their worst wake-up
    surveytext.py, survey.html     the result of a survey
    remedies.py, remedies.toml     remedies of a cause (pure)
    remedydesign.py, remedysweep.py  the sweep that tries remedies
    remedytext.py                  its result
"""
