"""Words for what was seen."""

from rtscope.host.units import NS_PER_MS


def ms(ns: float) -> str:
    """Return a time in ms."""
    return f"{ns / NS_PER_MS:,.1f} ms"


def percent(share: float) -> str:
    """Return a share of a CPU."""
    return f"{100 * share:.1f} %"


def capitalized(text: str) -> str:
    """Return a text that begins a sentence."""
    return text[:1].upper() + text[1:]
