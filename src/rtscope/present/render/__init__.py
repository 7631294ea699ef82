"""
Documents in each form; none of these files knows a verb.

    terminal.py   blocks for a terminal or a pipe
    fitted.py     as much of a result as one look at a terminal has room for
    markdown.py   a document for a wiki or a merge request
    blocks.py     blocks for a page
    page.py       pages from templates, with the macros of parts.html
"""
