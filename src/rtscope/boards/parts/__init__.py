"""
The parts of virtual boards: packages, user space, QEMU, initrd, in a cache.

    prepare.py            all parts of a board, built if they are not in the cache
    prepared.py           a board that can boot; the initrd of a run
    build.py              one part, built
    buildcontext.py       directories and versions that parts are built from
    cache.py              the cache: parts by the digest of their inputs
    names.py              names of parts and their files
    packages.py           packages of a distribution, by SHA-256
    aptroot.py, apt.conf  Debian's archive, without root
    elf.py                libraries that a program needs
    userland.py           user space: busybox, stress-ng, mke2fs
    files.py              files of the user that a campaign brings
    initrd.py, init       the initrd, and its first script
    qemu.py               QEMU, and the command line that boots a board
    bundle.py             all parts of a board in one file
"""
