"""Kernels: which one a machine runs, and how it was configured."""
