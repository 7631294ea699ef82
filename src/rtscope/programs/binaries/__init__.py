"""
Files of a checked program, which may be hostile: another process reads them.

    reading.py                         starts that process, and again without a file
    serving.py                         that process: its limits, requests and answers
    elf.py                             headers, sections and notes of ELF files
    bytestream.py                      numbers and texts from a piece of memory
    image.py                           segments and symbols of a file in memory
    lookups.py                         where a dynamic linker looks functions up
    allocators.py                      functions of allocators beside those of C
    frametable.py, expression.py       tables of frames
    unwind.py, callsites.py            callers of a place, from a copy of the stack
    tailcalls.py                       functions that ended with a jump to the next one
    gotable.py, golibrary.py           functions and lines of programs of Go
    namer.py, namecache.py             functions and lines of places, and their cache
    debuginfo.py, linetable.py         functions and lines, from DWARF
    dwarfentries.py                    kinds, forms and values of entries of DWARF
    demangling.py, rustnames.py        names as in the source of C++ and Rust
    dnames.py                          names as in the source of D
    jitcode.py                         names of code that a program makes
"""
