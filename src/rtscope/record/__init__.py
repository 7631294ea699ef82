"""What is kept of a run, and the directory it is kept in."""
