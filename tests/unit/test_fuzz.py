"""The fuzzers: they change something, repeat themselves, and notice a defect."""

import random

import pytest

from fuzz.mutate import mutated
from fuzz.readers import READERS, FuzzedReader
from fuzz.run import fuzz
from rtscope.host.errors import UsageError

SEED = b'{"number": 12, "text": "abc"}'


def only_digits(data: bytes) -> int:
    if not data.isdigit():
        raise UsageError("no number")
    return 100 // (int(data) % 7)  # a defect: some numbers divide by zero


def test_a_defect_is_counted_and_its_input_kept() -> None:
    reader = FuzzedReader("digits", lambda: [b"12", b"35"], only_digits)
    found, broke = fuzz(reader, 500, seed=1)
    [defect] = [name for name in found if name.startswith("DEFECT")]
    assert defect.startswith("DEFECT ZeroDivisionError")
    assert int(broke) % 7 == 0
    assert found["refused"] > 0 < found["read"]
    assert found.total() == 500
    assert fuzz(reader, 500, seed=1) == (found, broke)


def test_mutations_change_the_input_and_differ() -> None:
    draw = random.Random(1)
    made = {mutated(SEED, draw) for _ in range(500)}
    assert len(made) > 300
    assert all(len(one) <= 100 for one in {mutated(SEED, draw, most=100)})


@pytest.mark.slow
def test_every_reader_reads_some_of_its_seeds_and_their_mutations() -> None:
    for reader in READERS:
        read = 0
        for seed in reader.seeds()[:40]:
            try:
                reader.read(seed)
                read += 1
            except reader.errors:
                continue
        assert read > 0, reader.name
        found, _ = fuzz(reader, 20, seed=1)
        assert set(found) <= {"read", "refused"}, reader.name
