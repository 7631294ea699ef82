"""
The parts of virtual boards: packages, user space, QEMU, initrd, in a cache.

    prepare.py            all parts of a board, each built if it is not in the cache
    prepared.py           a board that can boot; the files of a boot
    guestkernel.py        a kernel without what its boot would only undo
    buildcontext.py       directories and versions that parts are built from; names
    cache.py              the cache: parts by the digest of their inputs
    aptroot.py, apt.conf  packages of Debian by SHA-256, fetched without root
    initrd.py, init       initrds, files brought, libraries that programs need
    program.py            a program of the user's with its loader and its libraries
    programtree.py        its files, from directories, files and packages
    elfheaders.py         headers of programs and libraries
    qemu.py               QEMU, and the command line that boots a board
    bundle.py             all parts of a board in one file
"""
