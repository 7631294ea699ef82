"""Recorded runs of virtual boards: replayed, with the symbols of their kernels."""
