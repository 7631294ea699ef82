"""Sweeps: campaigns that differ in a few settings, and what each setting did."""
