"""
Is a machine, or a kernel, set up for real time? Checks as data, answered in four ways.

    model.py        a check, its outcome, its evidence, as JSON
    checks/         the checks: one TOML file for each group
    context.py      all that checks see; kernel lockdown; answers
    *checks.py      check functions, by subject: CPUs, interrupts, kernel, ...
    sessionchecks.py  checks of sessions and user managers
    observe.py      two looks at a machine, and at network drivers; trials
    unit.py         a unit of systemd, of files or `systemctl show`: its lines
    unitfiles.py    its files: search paths, templates, drop-ins
    unitkeys.toml   names of the settings that systemd knows
    unitvalues.py   values that systemd takes for each setting
    unitmeaning.py  what the settings come to: policy, CPUs, limits, rights
    examine.py      the checks by name; a machine to answered checks
"""
