"""`rtscope pack`: a result as one file to mail."""
