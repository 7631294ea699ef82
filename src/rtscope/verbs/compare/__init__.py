"""`rtscope compare`: compare records, run by run."""
