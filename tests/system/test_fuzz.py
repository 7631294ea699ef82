"""Damaged and hostile input is read or refused: never a traceback, never slow."""

import pytest

from fuzz.readers import READERS, FuzzedReader
from fuzz.run import fuzz

pytestmark = pytest.mark.system

CASES = 20_000
"""Of all readers together; `make fuzz` takes a million."""


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_what_others_wrote_is_read_or_refused(reader: FuzzedReader) -> None:
    cases = round(CASES * reader.share / sum(one.share for one in READERS))
    found, broke = fuzz(reader, cases, seed=1)

    assert found.total() == cases
    assert found["read"] > 0
    defects = {name: n for name, n in found.items() if name.startswith("DEFECT")}
    assert not defects, broke[:4000]
