"""Sweeps of one and of two cells beside their base, and how messages are read."""

ONE_CELL = """
[sweep]
name = "ticks"
[base]
target.address = "virtual:pc"
kernel.names = ["debian-6.12-rt"]
campaign.seeds = 2
run = [{ load = "idle", duration = "1s", interval = "1ms" }]
[[axis]]
name = "tick"
level = [{ name = "off", kernel.append = "nohz=off" }]
"""

EIGHT_SEEDS = ONE_CELL.replace("seeds = 2", "seeds = 8")
FILE = (
    f"{EIGHT_SEEDS}[[axis]]"
    + """
name = "CPUs"
level = [{ name = "one", run.cpus = "1" }]
"""
)


def one_line(text: str) -> str:
    """Return text as it is without the breaks of its lines."""
    return " ".join(text.split())
