"""Words of a systemd unit, quoted so that systemd takes each as it is written here."""

import re
from collections.abc import Sequence

NO_FILE_OF_SYSTEMD = re.compile(r"[\x00-\x1f\x7f\"'\\]")
"""systemd 252: "Executable name contains special characters"."""

_SAFE = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@+=:,./-"
)


def unit_argument(word: str) -> str:
    """Write an argument of a command: `%` and `$` stand for themselves."""
    return unit_word(word.replace("%", "%%").replace("$", "$$"))


def unit_path(path: str) -> str:
    """Write the file of a command: of it systemd expands `%` alone."""
    return unit_word(path.replace("%", "%%"))


def unit_word(word: str) -> str:
    """Write a word by systemd.syntax(7), in quotes if it needs them."""
    if word and set(word) <= _SAFE | {"%", "$"}:
        return word
    return f'"{"".join(map(unit_character, word))}"'


def unit_character(character: str) -> str:
    """Write a character between quotes."""
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    raw = character.encode("utf-8", "surrogateescape")
    return "".join(f"\\x{byte:02x}" for byte in raw)


def unit_command(words: Sequence[str]) -> str:
    """Write a command; a shell starts a file that systemd takes no name of."""
    file, *others = words
    if NO_FILE_OF_SYSTEMD.search(file):
        first = ["/bin/sh", "-c", unit_argument('exec "$0" "$@"'), unit_argument(file)]
    else:
        first = [unit_path(file)]
    return " ".join([*first, *map(unit_argument, others)])


def unit_directory(path: str) -> str | None:
    """Write the path of a directory, alone on its line; None: no unit can name it."""
    # A backslash at the end would continue the line, and swallow the next one.
    if not path.isprintable() or path != path.strip() or path.endswith("\\"):
        return None
    return path.replace("%", "%%")
