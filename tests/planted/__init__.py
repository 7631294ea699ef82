"""Critical sections of known length, planted in a kernel that has no modules."""
