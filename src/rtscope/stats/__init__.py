"""
Numbers that a record supports: pure functions from records to numbers.

    figures.py, figures.toml  the figures of every command: order, direction, unit
    summary.py       numbers of one run's threads, or of other samples
    percentiles.py   percentiles of samples in buckets
    distribution.py  the distribution of latencies, as measured and corrected
    evidence.py      evidence of runs about a deadline
    verdict.py       the verdict on a deadline
    verdictwords.py  the sentence of a verdict, and the next command
    exposure.py      rates of misses that a time supports: Poisson limits
    episodes.py      episodes of late wake-ups
    latetimes.py     times of the latest wake-ups
    steady.py        do events come at a steady distance?
    dispersion.py    do episodes follow a Poisson process?
    counting.py      does a run count?
    conditions.py    conditions of a run; equal ones are pooled
    runsets.py       the runs to compare under one load, each as its figures
    compare.py       a comparison of groups of runs
    comparison/      the engine: designs, tests, families, power
    seeds.py         a maximum over the seeds of a virtual board
    determinism.py   virtual runs that must be identical
    costs.py         costs besides latency: image, memory, idle wake-ups, work
    tracing.py       cost of tracing, caveats of a trace
    runcaveats.py    all caveats of a record
    integrity.py     do the numbers of a record agree?
    foreign.py       do the numbers of another tool agree?
    imported.py      caveats of an imported result
"""
