"""
The command line: verbs by name, and the parts that several of them share.

    start.py                     the first module: signals end the command in words
    main.py                      the verbs as one command
    verbs.toml                   the verbs: function, help, examples; short options
    completion.py, completions/  `rtscope completion`: what it prints for each shell
    foreign.py                   answers to options and files of cyclictest and rtla
    console.py                   standard streams and consoles
    progress.py                  the live display of a campaign and of a cluster
    options.py                   options that several verbs share
    results.py                   from records to a report or page; its format
    checks.py                    outcomes of checks: display, exit status
"""
