"""`rtscope test` on programs of others, and on some that count themselves."""
