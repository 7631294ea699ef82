"""What the probes themselves do is not the program's; and where lookups are probed."""

from pathlib import Path

import pytest

from fakes import watching
from rtscope.programs.binaries.image import Image
from rtscope.programs.binaries.lookups import LOOKUP, lookups_in
from rtscope.programs.memorymap import MemoryMap, parse_maps
from rtscope.verbs.app.watch import _is_own

MAPS = """\
555555554000-555555556000 r-xp 00001000 08:01 77 /usr/bin/prog
7ffff7dd0000-7ffff7dd2000 rw-p 00000000 00:00 0 [heap]
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]
7fffffffe000-7ffffffff000 --xp 00000000 00:00 0 [uprobes]
"""
PROBED = {(77, 2)}


@pytest.mark.parametrize(
    ("address", "event", "own"),
    [
        (0x7FFFFFFFE080, "minor_fault", True),  # the page of the kernel for probes
        (0x7FFFFFFFE080, "preempted", False),
        (0x555555555010, "minor_fault", True),  # a page of code with a probe
        (0x555555554010, "minor_fault", False),
        (0x7FFFF7DD0010, "minor_fault", False),
        (0x123, "minor_fault", False),
    ],
)
def test_faults_that_probes_make_are_no_finding(
    address: int, event: str, own: bool
) -> None:
    pieces = [one for one in parse_maps(MAPS) if one.path != "[stack]"]

    sample = watching.sample(event, 17, address=address)

    assert _is_own(sample, MemoryMap(pieces), PROBED) is own


LOADER = Path("/lib64/ld-linux-x86-64.so.2")


@pytest.mark.skipif(not LOADER.exists(), reason="needs glibc on x86-64")
def test_each_lookup_of_the_linker_begins_within_its_code() -> None:
    image = Image(LOADER.read_bytes(), str(LOADER))
    text = image.elf.section(".text")
    assert text is not None

    found = list(lookups_in(image))

    assert {name for name, _ in found} == {LOOKUP}
    assert 1 <= len(found) <= 4
    places = [image.vaddr_of(offset) for _, offset in found]
    assert all(text.address <= at < text.address + text.size for at in places if at)
