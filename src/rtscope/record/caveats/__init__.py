"""
Caveats of a run: the closed list, and what raises them.

    catalogue.py, caveats.toml    the caveats: effect on a verdict, message, remedy
    fromfacts.py                  caveats from facts of the machine
    kernellog.py, kernellog.toml  caveats from kernel messages during the run
"""
