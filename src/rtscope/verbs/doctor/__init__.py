"""`rtscope doctor`: what this machine can do with rtscope."""
