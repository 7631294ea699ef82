"""
`rtscope compare`: compare records, run by run.

    compare.py  the verb
"""
