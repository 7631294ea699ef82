"""
`rtscope doctor`: what this machine can do with rtscope.

    doctor.py  the verb
"""
