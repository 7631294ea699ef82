"""Facts that are gathered from trees of files."""

from fakes.trees import Files, reader_of
from rtscope.machine.facts import FactValue
from rtscope.machine.gather import gather


def values(files: Files, *names: str) -> list[object]:
    """Return what some facts are."""
    facts = gather(reader_of(files))
    return [facts[name].value for name in names]


def fact(files: Files, name: str) -> FactValue:
    """Return one of them, with its source or why it is unknown."""
    return gather(reader_of(files))[name]
