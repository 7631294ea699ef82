"""
The loads that a machine is measured under: data in `loads.toml`, and their commands.

Nothing here starts a process or reads a machine: free memory and space come in as
values, and an argument vector goes out.
"""

from rtscope.loads.catalogue import Load, Need, get_load, load_names
from rtscope.loads.command import FreeStorage, LoadCommand, make_command
from rtscope.loads.throughput import throughput_of

__all__ = [
    "FreeStorage",
    "Load",
    "LoadCommand",
    "Need",
    "get_load",
    "load_names",
    "make_command",
    "throughput_of",
]
