"""`rtscope tasks`: every thread of a machine."""
