"""Who runs with which policy, where: every thread of a machine, and its marks."""
