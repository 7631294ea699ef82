"""
Execute a campaign: plan its runs, measure them on a runner, assemble their records.

    campaign/        a campaign, from a file, from options, or from a record
    loads/           loads, and their commands
    plan.py          from a campaign to its runs, in order (pure)
    preflight.py     campaigns that this machine cannot measure, refused
    execute.py       every run of a plan, saved as it ends; the interface `Runner`
    machine.py       the runner of a machine; that of boards is boards/runs/runner.py
    commands.py      arguments of the agents of a run (pure)
    observe.py       one measurement under one load: both agents and their lines
    interrupts.py    Ctrl-C, put off where it would lose a measurement
    growth.py        a result from growth lines, if no other came (pure)
    loadproof.py     proof that each process of a load worked (pure)
    assemble.py      from observations to a record (pure)
    audit.py         the audit before each run
    settings.py      `--tuned`: settings that one campaign holds
    abilities.py     abilities of a machine, each with its obstacle and remedy
    installers.toml  commands that install a program, by distribution
"""
