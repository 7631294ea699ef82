"""
A running program: delays of its threads, and a unit of systemd with its rights.

    check.py                           `app check`: findings about cycles, JUnit
    start.py                           `app start`
    unit.py                            `app unit`
    source.py                          a program on a machine or a virtual board
    watch.py, watchedcycles.py         a program, watched: events, stacks, cycles
    executed.py                        the programs that it executed meanwhile
    boardwatch.py, outside*.py         the same on a virtual board, seen from outside
    descriptorflags.py                 flags of descriptors there, as calls used them
    model.py                           a watched program, and its findings
    findings.toml                      the findings: title, weight, reason, remedy
    rules.py, waits.py, unseen.py      the rules of findings, waits, what is unseen
    locks.py, locks.toml               which waits are for locks; remedies by language
    cycles.py, lateness.py             cycles: latencies, missed releases; findings
    response.py                        the verdict on response times
    running.py                         command, user, rights, limits, threads
    service.py                         the unit of a program, each line with its reason
    ownunit.py                         the unit that it runs in, kept in the new one
    deadlines.py                       cycles of SCHED_DEADLINE that a yield ends
    runtimes.py, runtimes.toml         runtimes that allocate unseen
    settable.py                        waits until a time of a clock that can be set
    spins.py                           waits by naps and yields
    lookups.py                         the findings about functions looked up
    eventstacks.py                     the stacks of events
    debuginfod.py, unnamed.py          where debug information is; names of texts
    checktext.py, cycletables.py       findings and cycles, for a terminal and as JSON
    page.py, spread.py                 findings and cycles as a page; histograms
"""
