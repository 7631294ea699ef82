"""Mutated input for everything that reads what others wrote: see run.py."""
