"""
`rtscope explain`: the causes of the worst wake-ups.

    explain.py  the verb
    text.py     explained wake-ups for a terminal
"""
