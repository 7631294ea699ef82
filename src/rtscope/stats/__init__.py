"""What the figures of a record support: pure functions from records to numbers."""
