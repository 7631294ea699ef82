"""How a generated page is written: sentences, and cells of tables."""

import re


def sentences(text: str) -> str:
    """Put each sentence on a line of its own; repair none of them."""
    text = " ".join(text.split())
    return re.sub(r"(?<=[.!?]) (?=[A-Z`])", "\n", text)


def whole(text: str) -> str:
    """Make a sentence of a phrase."""
    return ended(text[:1].upper() + text[1:])


def ended(text: str) -> str:
    """End a sentence, unless it has an end."""
    return text if text.endswith((".", "?", "!", "`")) else text + "."


def cell(text: str) -> str:
    """Write a text into a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
