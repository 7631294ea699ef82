"""What a report says: all decisions on what is said, and in which order."""
