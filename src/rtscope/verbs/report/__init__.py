"""
`rtscope report`: records on the terminal, as a page, as data.

    report.py  the verb
"""
