"""Stand-ins for machines and measurements, exact enough to test figures with."""
