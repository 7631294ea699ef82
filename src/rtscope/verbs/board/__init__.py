"""
`rtscope board`: virtual boards, their bundles, and the code that they executed.

    board.py    `list`, `show`, `build`, `export`, `import`
    trace.py    `trace`: functions and steps of the paths to the worst wake-ups
"""
