"""Each thing that the source documents name, by its command: make sources."""
