"""The version of rtscope, as records and the command line have it."""

__version__ = "0.1.0"
