"""A campaign's way on a machine: plan, execute, observe, assemble."""
