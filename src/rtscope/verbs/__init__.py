"""
One room for each verb, or family of verbs; none imports another.

    run/       `run`: measure a machine or virtual boards
    report/    `report`: records on the terminal, as a page, as data
    compare/   `compare`: machines, kernels or settings, run by run
    explain/   `explain`: causes of the worst wake-ups
    sweep/     `sweep`: settings, loads or remedies, ranked by effect
    bisect/    `bisect`: the commit, patch or setting that makes a kernel worse
    audit/     `audit`: checks of a machine's real-time setup, and remedies
    tasks/     `tasks`: every thread of a machine
    app/       `app check`, `app unit`: a running program, its delays, its unit
    demo/      `app demo`: scheduling scenarios, and their checks
    board/     `board`: virtual boards, bundles, executed code
    kernel/    `kernel`: recipes, builds, packages, checks of kernels
    exchange/  `import`, `export`: formats of other tools
    pack/      `pack`: a result as one file to mail
    doctor/    `doctor`: abilities of a machine with rtscope
"""
