"""
`rtscope tasks`: every thread of a machine.

    tasks.py  the verb
    text.py   the list of threads, for a terminal and as JSON
"""
