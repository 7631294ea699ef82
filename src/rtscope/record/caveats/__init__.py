"""
Caveats of a run: the closed list, and what raises them.

    catalogue.py, caveats.toml, kernellog.toml  caveats by id; those of kernel messages
"""
