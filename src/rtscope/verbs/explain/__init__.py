"""
`rtscope explain`: the causes of the worst wake-ups.

    explain.py  the verb
    text.py     explained wake-ups for a terminal
    ctf.py      explained wake-ups as a folder of the Common Trace Format
    ctftrace.py  events in that format
"""
