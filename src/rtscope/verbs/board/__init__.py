"""
`rtscope board`: virtual boards, their bundles, and the code that they executed.

    board.py    `list`, `show`, `build`, `export`, `import`
    image.py    `image`: a disk image that boots a board, and its boot as proof
    diskimage.py, images.toml   how an image is written and booted
    trace.py    `trace`: functions and steps of the paths to the worst wake-ups
"""
