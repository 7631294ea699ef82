"""
Who runs with which policy, where: every thread of a machine, and what to note of it.

Pure but for `surroundings`, which reads a few files of the machine through a Reader.
"""
