"""
Settings of a machine that remedy failed checks: changed and restored.

    remedies.py  from failed checks to settings
    change.py    the agent changes and restores them, through its journal
    shield.py    CPUs that only chosen programs run on
"""
