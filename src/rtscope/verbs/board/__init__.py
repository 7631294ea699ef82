"""`rtscope board`: virtual boards, their bundles, and the code that they executed."""
