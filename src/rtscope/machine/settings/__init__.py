"""Settings of a machine that remedy failed checks: changed and restored."""
