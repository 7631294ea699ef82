"""
Do two sides differ? One engine for whole runs, paired seeds and exact boards.

    design.py  the designs, and the outcomes that each has if nothing differs
    family.py  p-values, of one figure and corrected for a family
    effect.py  the answer for one figure: ratio, interval, p-values, power
    power.py   effects that a comparison would have seen; runs it needs
"""
