"""
Mutations: what a damaged file or a hostile answer may look like.

Half of them change bytes. The other half change a value of JSON, an assignment of a
text, or a file of an archive, so that what is read goes beyond its syntax.
"""

import io
import json
import random
import tarfile
from copy import deepcopy
from typing import Any

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


_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *(2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63), 1_000_000_007),
    *(
        "",
        "x",
        "0",
        "../../x",
        "/etc/passwd",
        "a\nb",
        "\x1b[2J",
        "\u202e",
        "%s",
        "9" * 400,
    ),
    *([], {}, [[]], {"": {}}, [0] * 3_000),
)


def mutated(seed: bytes, random: random.Random, *, most: int = 65_536) -> bytes:
    """Return the bytes after one to four mutations, at most `most` of them."""
    if random.randrange(2):
        structured = _structured(seed, random)
        if structured is not None:
            return structured[:most]
    data = bytearray(seed)
    for _ in range(random.choice((1, 1, 2, 4))):
        _mutate(data, random)
    return bytes(data[:most])


def _structured(seed: bytes, random: random.Random) -> bytes | None:
    """Change a value of JSON, an assignment or a file; None where there is none."""
    if seed[:1] < b"\x09" and len(seed) > 1:  # the number of a file, and its content
        changed = _structured(seed[1:], random)
        return None if changed is None else seed[:1] + changed
    if seed[257:262] == b"ustar":
        try:
            return _with_changed_file(seed, random)
        except (
            *(tarfile.TarError, LookupError, ValueError, OSError),
            RecursionError,  # a link to itself
        ):
            return None
    if seed.lstrip()[:1] in (b"{", b"["):
        try:
            document = json.loads(seed)
        except (ValueError, RecursionError):
            return None
        for _ in range(random.choice((1, 1, 2, 3))):
            document = _change_value(document, random)
        return json.dumps(document).encode()
    return _with_changed_line(seed, random)


def _change_value(document: Any, random: random.Random) -> Any:
    """Replace, remove, double or move one value at any depth."""
    at = document
    while isinstance(at, dict | list) and at:
        key = random.choice(list(at) if isinstance(at, dict) else range(len(at)))
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or not random.randrange(6):
            break
        at = inner
    else:
        return deepcopy(random.choice(_VALUES))
    match random.randrange(12):
        case 0:
            del at[key]
        case 1 if isinstance(at, list):
            at.insert(key, inner)
        case 1 if isinstance(at, dict):
            at[f"{key}x"] = at.pop(key)
        case 2 if isinstance(inner, int):
            at[key] = inner + random.choice((-1, 1, -1000, 10**9))
        case 3 if isinstance(inner, int | float):
            at[key] = -inner
        case 4 if isinstance(at, list):
            random.shuffle(at)
        case 5:
            at[key] = deepcopy(random.choice(_VALUES))
        case _:
            alike = [one for one in _VALUES if type(one) is type(inner)]
            at[key] = deepcopy(random.choice(alike or _VALUES))
    return document


def _with_changed_line(seed: bytes, random: random.Random) -> bytes | None:
    """Change what stands behind an equals sign, or the order of the lines."""
    lines = seed.split(b"\n")
    assigned = [n for n, line in enumerate(lines) if b"=" in line]
    if not assigned or len(seed) > 100_000:
        return None
    number = random.choice(assigned)
    key, _, value = lines[number].partition(b"=")
    match random.randrange(6):
        case 0:
            del lines[number]
        case 1:
            lines.insert(random.randrange(len(lines) + 1), lines[number])
        case 2:
            other = random.choice(assigned)
            lines[number] = key + b"=" + lines[other].partition(b"=")[2]
        case 3:
            lines[number] = (
                key + b"=" + value.strip() + random.choice((b",", b"0", b'"'))
            )
        case 4:
            lines[number] = key + b"=" + random.choice(_WORDS + _NUMBERS)
        case _:
            written = json.dumps(random.choice(_VALUES)).encode()
            lines[number] = key + b"=" + written
    return b"\n".join(lines)


def _with_changed_file(seed: bytes, random: random.Random) -> bytes:
    """Change one file of an archive, or its name, and write the archive anew."""
    with tarfile.open(fileobj=io.BytesIO(seed)) as old:
        files = [(one, old.extractfile(one)) for one in old.getmembers()]
        contents = [(one, opened.read() if opened else b"") for one, opened in files]
    chosen = random.randrange(len(contents))
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as new:
        for number, (member, content) in enumerate(contents):
            if number == chosen:
                content = mutated(content, random)
                if not random.randrange(8):
                    member.name = random.choice((*_PLACES, member.name + "x"))
                if not random.randrange(16):
                    member.type = random.choice((tarfile.SYMTYPE, tarfile.LNKTYPE))
                    member.linkname = random.choice(_PLACES)
            member.size = 0 if member.type != tarfile.REGTYPE else len(content)
            new.addfile(member, io.BytesIO(content))
    return written.getvalue()


_PLACES = ("../x", "/tmp/x", "a/../../x", "x", "", "results/runs/../x", "./results/a")


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
