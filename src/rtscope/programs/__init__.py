"""
The files of a user's program: its code, its stacks, its calls of the kernel.

    binaries/             ELF, DWARF and frames, read by another process with limits
    cycles/               runs of a thread, and which of them begin its cycles
    images.py             the files in the memory of a process
    memorymap.py          which file is where in it
    naming.py             functions of a stack, and whose code they are
    stackwords.py         the same as words
    ends.py               how it ended, as words
    packages.py           packages with the debug information that a file lacks
    probes.py             functions that are watched
    outside/              a program as the plugin of a virtual board saw it
    calls.py, calls.toml  system calls by their effect
"""
