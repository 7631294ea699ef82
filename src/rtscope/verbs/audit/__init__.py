"""
`rtscope audit`: check the real-time setup of a machine, and remedy it.

    audit.py      the verb
    capture.py    the files that an audit read, as an archive without secrets
"""
