"""
Caveats of a run: the closed list, and what raises them.

    catalogue.py, caveats.toml    the caveats: effect, message, remedy; those of facts
    kernellog.py, kernellog.toml  caveats from kernel messages during the run
"""
