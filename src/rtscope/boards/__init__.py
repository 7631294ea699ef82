"""
Virtual boards: a kernel, user space and load in instruction-counted time.

Callers need the catalogue, `parts/prepare.py` and `runs/`.

    catalogue.py  the boards and the packaged kernels, read and checked
    boards/       the boards: one TOML file each
    kernels.toml  kernels of a distribution, used as they are
    events.py     what events need on a board: devices, modules, lines of the shell
    events.toml   the table of it
    arches.toml   differences between the architectures of boards
    kernels/      kernels that rtscope builds, from recipes
    parts/        parts of a board, each built once into a cache
    runs/         runs of a campaign: each is one boot
    recording/    recorded runs, replayed
"""
