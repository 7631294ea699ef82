"""`rtscope import` and `export`: results of other tools, and formats that they read."""
