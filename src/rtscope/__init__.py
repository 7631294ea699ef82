"""
How late a Linux machine wakes real-time threads, and what may be promised.

A folder imports only folders above it; `tests/test_layers.py` holds that.

    host/        errors, units, files and processes of the computer that rtscope runs on
    contract/    the lines that the agent writes
    machine/     a machine: how it is reached, its facts, threads, settings and audit
    record/      a run on disk: record, caveats, traces, formats of other tools
    stats/       numbers that a record supports, verdicts, exact tests
    programs/    files, stacks, calls and cycles of a user's program
    measure/     a campaign, its loads and its plan; runs on a machine
    boards/      virtual boards and kernels: built, booted, recorded
    explain/     causes of a late wake-up, from instructions or events
    present/     reports and comparisons in every format, charts
    cli/         the command line: verbs by name, console, progress, shared options
    verbs/       one folder for each verb or family of verbs
    __main__.py  `python -m rtscope`
    py.typed     marks the package as typed
"""

from rtscope.host.version import __version__ as __version__
