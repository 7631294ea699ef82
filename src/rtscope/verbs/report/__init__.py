"""`rtscope report`: records on the terminal, as a page, as data."""
