"""`rtscope kernel`: recipes, builds, packages, checks and verification of kernels."""
