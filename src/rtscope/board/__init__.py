"""
Virtual boards: a kernel, user space and load in instruction-counted time.

The catalogue says what boards and kernels there are; `prepare` builds what a board
needs, once, into the cache; `qemu.command_line` says how it is booted and `results`
reads what came out. Whoever boots a board needs nothing else from here.
"""
