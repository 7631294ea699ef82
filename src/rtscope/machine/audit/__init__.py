"""
Is a machine, or a kernel, set up for real time? Checks as data, answered in four ways.

    model.py        a check, its outcome, its evidence, as JSON
    catalogue.py    checks/*.toml, read; every check function by its name
    checks/         the checks: one TOML file for each group
    answers.py      return values of check functions
    context.py      arguments of check functions: the machine, and for whom
    *checks.py      check functions, by subject: CPUs, interrupts, kernel, ...
    lockdown.py     mode of kernel lockdown
    usermanager.py   a check of the units of a user's manager
    observe.py      two looks at a machine, and at network drivers; trials
    unit.py         a unit of systemd, of files or `systemctl show`: its lines
    unitkeys.toml   names of the settings that systemd knows
    unitvalues.py   values that systemd takes for each setting
    unitmeaning.py  what the settings come to: policy, CPUs, limits, rights
    examine.py      from a machine, tree, configuration or image to outcomes
"""
