"""Searches for the worst case, over programs with one that is rare."""
