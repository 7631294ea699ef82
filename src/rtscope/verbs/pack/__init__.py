"""
`rtscope pack`: a result as one file to mail.

    pack.py    the verb
    redact.py  names, addresses, serial numbers and secrets, removed
"""
