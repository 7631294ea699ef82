"""
`rtscope board`: virtual boards, their bundles, and the code that they executed.

    board.py    `list`, `show`, `build`, `export`, `import`
    image.py    `image`: a disk image that boots a board, and its boot as proof
    diskimage.py, images.toml   how an image is written and booted
    write.py    `write`: an image on a card, read back as proof
    disks.py    what a device is, before an image replaces what it holds
    trace.py    `trace`: functions and steps of the paths to the worst wake-ups
"""
