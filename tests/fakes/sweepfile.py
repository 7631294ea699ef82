"""A sweep of two cells beside its base, and how its messages are read."""

FILE = """
[sweep]
name = "ticks"
[base]
target.address = "virtual:pc"
kernel.names = ["debian-6.12-rt"]
campaign.seeds = 8
run = [{ load = "idle", duration = "1s", interval = "1ms" }]
[[axis]]
name = "tick"
level = [{ name = "off", kernel.append = "nohz=off" }]
[[axis]]
name = "CPUs"
level = [{ name = "one", run.cpus = "1" }]
"""


def one_line(text: str) -> str:
    """Return text as it is without the breaks of its lines."""
    return " ".join(text.split())
