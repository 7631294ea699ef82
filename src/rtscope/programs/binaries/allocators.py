"""
Functions of an allocator beside those of C, in the file that has it. Pure.

An allocator that takes the place of the C library's often has C++'s operators, too,
which do not go through its `malloc`; an operator that does is not named, since that is
probed.
"""

from collections.abc import Iterator, Sequence

from rtscope.programs.binaries.callsites import is_entered_from
from rtscope.programs.binaries.image import Image, Symbol

OF_C = "malloc"
"""Who has it is an allocator."""


def beside_malloc(
    image: Image, names: Sequence[str], *, known: Sequence[str]
) -> Iterator[Symbol]:
    """Yield the functions of these names that enter neither each other nor `known`."""
    if not (names and image.functions_named(OF_C)):
        return
    of_c = {name: image.functions_named(name) for name in known}
    found = {name: image.functions_named(name) for name in names}
    all_names = {*known, *names}
    places = {one.vaddr for rows in (*of_c.values(), *found.values()) for one in rows}
    entered = {one.vaddr for rows in of_c.values() for one in rows}
    for rows in found.values():
        for one in rows:
            others = places - {one.vaddr}
            if one.vaddr not in entered and not is_entered_from(
                image, one, others, all_names
            ):
                yield one


def of_language(image: Image, groups: Sequence[Sequence[str]]) -> Iterator[Symbol]:
    """Yield the functions of the groups whose first one the file has."""
    for names in groups:
        if image.functions_named(names[0]):
            for name in names:
                yield from image.functions_named(name)
