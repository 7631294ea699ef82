"""
The charts' colours and type: a paper's figure, in nine and a half points.

Each colour here is replaced by a variable of the page in an SVG (`VARIABLES`).
"""

from typing import Any

INK = "#1c2127"
MUTED = "#5c6672"
GRID = "#dde1e5"
PAPER = "#fffffe"
FILL = "#c8d2dc"
LIMIT = "#a1002e"

# Okabe and Ito's palette, told apart in every form of colour blindness; its yellow,
# too pale for a line on white, comes last and darker.
PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7f7f80",
    "#b5a800",
)

VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--rule",
    PAPER: "--paper",
    FILL: "--fill",
    LIMIT: "--limit",
    **{colour: f"--c{i}" for i, colour in enumerate(PALETTE)},
}

WIDTH_PT = 390
"""As wide as a phone, so that a chart's text is readable there at its own size."""

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": PAPER,
    "axes.axisbelow": True,
    "axes.labelsize": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.unicode_minus": True,
    "figure.facecolor": PAPER,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.size": 2,
    "ytick.minor.size": 2,
    "path.simplify": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "rtscope",
}
