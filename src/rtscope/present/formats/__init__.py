"""
Renderers of reports: no decisions, no arithmetic.

    data.py            JSON, and the main table as CSV
    cyclictest.py      the table, histogram and JSON of cyclictest
    audit.py           outcomes of an audit, changed settings
    taskstatistics.py  task statistics of programs, as text and JSON
    shield.py          CPUs that are kept for a program, as text and JSON
"""
