"""Mutations of bytes: what a damaged file or a hostile answer may look like."""

import random

_NUMBERS = (
    *(b"0", b"-1", b"1", b"255", b"256", b"1e309", b"NaN", b"-0", b"0.1"),
    *(
        str(number).encode()
        for number in (
            *(2**31 - 1, 2**31, 2**32, 2**53 + 1),
            *(2**63 - 1, 2**63, 2**64, 10**30, -(2**63)),
        )
    ),
)
_WORDS = (
    *(b"", b"\0", b"\xff\xfe", b"\n", b"\r", b"\x1b[2J", b"[", b"{", b'"', b"null"),
    *(
        b"true",
        b"[[[[[[[[",
        b'{"a":',
        b"\\ud800",
        b"%s%n",
        b"../../..",
        b"\xe2\x80\xae",
    ),
)


def mutated(seed: bytes, random: random.Random, *, most: int = 65_536) -> bytes:
    """Return the bytes after one to four mutations, at most `most` of them."""
    data = bytearray(seed)
    for _ in range(random.choice((1, 1, 2, 4))):
        _mutate(data, random)
    return bytes(data[:most])


def _mutate(data: bytearray, random: random.Random) -> None:
    at = random.randrange(len(data) + 1)
    length = min(random.choice((1, 1, 2, 4, 8, 64, 1024)), len(data) - at)
    match random.randrange(8):
        case 0:
            if length:
                data[at] ^= 1 << random.randrange(8)
        case 1:
            data[at : at + length] = random.randbytes(length)
        case 2:
            del data[at : at + length]
        case 3:
            data[at:at] = data[at : at + length] * random.choice((1, 2, 16))
        case 4:
            del data[at:]
        case 5:
            data[at : at + length] = random.choice(_WORDS)
        case 6:
            _replace_number(data, random, at)
        case 7:
            other = random.randrange(len(data) + 1)
            data[at:at] = data[other : other + length]


def _replace_number(data: bytearray, random: random.Random, at: int) -> None:
    """Replace the next run of digits by a number that is hard to hold."""
    begin = next((i for i in range(at, len(data)) if 48 <= data[i] <= 57), None)
    if begin is None:
        return
    end = begin
    while end < len(data) and 48 <= data[end] <= 57:
        end += 1
    data[begin:end] = random.choice(_NUMBERS)
