"""
`rtscope board`: virtual boards, their bundles, and the code that they executed.

    board.py    `list`, `show`, `build`, `export`, `import`
    trace.py    `trace`: functions on the paths to the worst wake-ups
    listing.py  the steps of a recorded path (pure)
"""
