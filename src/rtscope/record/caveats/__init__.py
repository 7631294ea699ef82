"""Caveats of a run: the closed list, and what raises them."""
