"""The command line: one module per verb, and the view of a run in progress."""
