"""
Numbers that a record supports: pure functions from records to numbers.

    figures.py, figures.toml  the figures of every command, also costs
    summary.py                numbers of threads and samples; percentiles
    wakeparts.py     the parts of all wake-ups, where they add up
    meters.py        power, heat, clock and memory of a run
    distribution.py  the distribution of latencies, as measured and corrected
    evidence.py               evidence about a deadline, in numbers and in words
    verdict.py       the verdict on a deadline
    utility.py                what wake-ups are worth to a soft deadline
    exposure.py               rates that a time supports; are episodes Poisson?
    episodes.py      episodes of late wake-ups
    latetimes.py              times of the latest wake-ups; a steady distance?
    conditions.py    conditions of a run; equal ones are pooled
    runsets.py       the runs to compare under one load, each as its figures
    compare.py       a comparison of groups of runs
    comparison/      the engine: designs, tests, families, power
    determinism.py            virtual runs that are identical; a maximum over seeds
    runcaveats.py             all caveats of a record; does a run count?
    eventcaveats.py           those that follow from the event of a run
    integrity.py              do the numbers of a record agree, also an imported one?
"""
