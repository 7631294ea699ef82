"""Settings of a machine: what would remedy a failed check, changed and put back."""
