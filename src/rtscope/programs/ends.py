"""How a program ended, in words."""


def end_words(status: int | None, signal: int | None) -> str:
    """Return by which signal it ended, or with which status."""
    return f"by signal {signal}" if signal else f"with status {status}"


def left_words(left: int) -> str:
    """Return what its first process left behind, and what to do; empty: nothing."""
    if not left:
        return ""
    one = left == 1
    what = "1 process, which was ended" if one else f"{left:,} processes, all ended"
    return f"left {what}: have {'it' if one else 'them'} stay in the foreground"
