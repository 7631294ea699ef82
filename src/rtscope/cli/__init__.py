"""
The command line: verbs by name, and the parts that several of them share.

    start.py                     the first module: signals end the command in words
    main.py                      the `rtscope` command: from arguments to an exit status
    app.py                       verbs as one app: loaded by name, with options and help
    verbs.toml                   the verbs: function, help, examples; short options
    completion.py, completions/  `rtscope completion`: what it prints for each shell
    foreign.py                   answers to files of other tools
    otherlines.py, *.toml        command lines of cyclictest, rtla and oslat, translated
    console.py                   standard output and error: results, messages
    streams.py                   standard streams of this process; control characters
    progress.py                  the live display of a campaign and of a cluster
    options.py                   options that several verbs share
    results.py                   from records to a report or page; its format
    checks.py                    outcomes of checks: display, exit status
    shielding.py                 CPUs that are kept for a program
"""
