"""
Do two sides differ? One engine for whole runs, paired seeds and exact boards.

    design.py  three designs, and the power of each
    effect.py  the answer for one figure, corrected for its family
"""
