"""
Execute a campaign: plan its runs, measure them on a runner, assemble their records.

    campaign/        a campaign, from a file, from options, or from a record
    events/          what wakes the measuring threads: timers, threads, packets
    loads/           loads, and their commands
    plan.py          all runs in order, and the commands of each
    preflight.py     what a machine allows; campaigns that it cannot do
    execute.py       all runs of a plan; Ctrl-C put off meanwhile
    machine.py       the runner of a machine; that of boards is boards/runs/runner.py
    observe.py       one measurement under one load: both agents and their lines
    seconds.py       what comes once a second, in bounded memory (pure)
    growth.py        a result from growth lines, if no other came (pure)
    loadproof.py     proof that each process of a load worked (pure)
    assemble.py      from observations to a record (pure)
    settings.py      the audit before a run; settings of `--tuned`
    installers.toml  commands that install a program, by distribution
"""
