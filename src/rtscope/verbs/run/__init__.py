"""`rtscope run`: measure a machine or virtual boards."""
