"""
Execute a campaign: plan its runs, measure them on a runner, assemble their records.

    plan.py      from a campaign to its runs (pure)
    execute.py   each run of a plan, saved as it is done; what a runner is
    machine.py   the runner for a machine; that for virtual boards is `virtual.runner`
    audit.py     the audit beside each run
    commands.py  what a run starts (pure)
    observe.py   one measurement under one load
    assemble.py  from observations to a record (pure)
"""
