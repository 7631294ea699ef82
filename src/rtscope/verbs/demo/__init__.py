"""
Demonstrations of the scheduler: their scripts, what threads did, and what must hold.

Pure. The agent's threads follow the scripts (`measure.demo`, `virtual.demo`); pictures
are drawn by `report`.
"""
