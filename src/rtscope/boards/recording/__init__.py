"""
Recorded runs of virtual boards: replayed, with the symbols of their kernels.

    replay.py                 the same run again, with more recorded
    secondpass.py             a second pass for paths longer than the recorder's ring
    symbols.py                symbols and layout of a kernel
    programplaces.py, btf.py  where it keeps what is recorded of a program
    firsttask.py              the same of a kernel without BTF, by its first task
    programuses.py            functions of a program that are counted, by their page
    programstacks.py          stacks of places in its record, with names
    crash.py                  where it crashed, by the kernel's log
    programseen.py            what is recorded of a program, and what its record says
"""
