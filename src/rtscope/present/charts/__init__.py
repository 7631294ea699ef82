"""
Charts and bars as SVG and PNG.

    drawings.py  the charts, drawn by matplotlib
    overtime.py  charts over the time of a run
    wakeups.py   each wake-up over the time of a run, as markup
    value.py     the value function of a soft deadline
    axes.py      colours, axes, keys and labels that charts share
    svg.py       SVG of matplotlib for a page, the same to the byte each time
    bars.py      bars: the path of a wake-up, the tail of a run
    flame.py     the timeline of a wake-up, as markup
    cyclepath.py  a cycle of a program over all CPUs, its segments, the evidence
"""
