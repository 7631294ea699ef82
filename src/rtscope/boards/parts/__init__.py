"""The parts of virtual boards: packages, user space, QEMU, initrd, in a cache."""
