"""The content of a report: its sentences and numbers, and their order."""
