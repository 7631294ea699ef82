"""`rtscope audit`: check the real-time setup of a machine, and remedy it."""
