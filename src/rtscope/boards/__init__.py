"""
Virtual boards: a kernel, user space and load in instruction-counted time.

The catalogue lists boards and kernels; `prepare` builds the parts of a board, once,
into the cache; `qemu.command_line` returns the command that boots it.
Callers need nothing else from here.
"""
