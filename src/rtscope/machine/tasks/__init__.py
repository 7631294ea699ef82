"""Every thread of a machine: its policy, its CPUs and its marks."""
