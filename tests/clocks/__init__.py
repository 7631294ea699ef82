"""Readings of clocks that are handed from CPU to CPU: a program, and its boot."""
