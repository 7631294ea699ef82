"""What the call before a place in x86 code calls. Pure."""

from collections.abc import Iterator

from rtscope.programs.binaries.image import Image

_DISTANCE = 4
_CALL, _JUMP, _SHORT_JUMP = b"\xe8", b"\xe9", b"\xeb"
"""Instructions that a distance follows, from their end on."""
_LANDING = b"\xf3\x0f\x1e\xfa"
"""May be the first instruction of a function: endbr64."""
_MOST_JUMPS = 3
_CALL_POINTER, _JUMP_POINTER, _BOUNDED = b"\xff\x15", b"\xff\x25", b"\xf2"
"""Through a pointer at a distance; a jump of a linkage table may have a prefix."""


def called_before(image: Image, vaddr: int) -> Iterator[int]:
    """
    Yield the function that the call just before a place calls; none if there is none.

    Functions that only jump to another, as names of one function do, have that as well.
    """
    size = len(_CALL) + _DISTANCE
    code = image.code_at(vaddr - size, size)
    if len(code) < size or not code.startswith(_CALL):
        return
    target: int | None = vaddr + _distance(code[1:])
    for _ in range(_MOST_JUMPS):
        if target is None:
            return
        yield target
        target = _jump_at(image, target)


def pointer_called_before(image: Image, vaddr: int) -> int | None:
    """
    Return where the pointer is that the call just before a place goes through.

    By itself (`-fno-plt`), or by a stub of the linkage table. None: it is no such call.
    """
    size = len(_CALL_POINTER) + _DISTANCE
    code = image.code_at(vaddr - size, size)
    if len(code) == size and code.startswith(_CALL_POINTER):
        return vaddr + _distance(code[-_DISTANCE:])
    if len(code) < size or not code[1:].startswith(_CALL):
        return None
    stub = _landed(image, vaddr + _distance(code[-_DISTANCE:]))
    stub += image.code_at(stub, len(_BOUNDED)) == _BOUNDED
    code = image.code_at(stub, size)
    if len(code) < size or not code.startswith(_JUMP_POINTER):
        return None
    return stub + size + _distance(code[-_DISTANCE:])


def _landed(image: Image, vaddr: int) -> int:
    landing = image.code_at(vaddr, len(_LANDING)) == _LANDING
    return vaddr + len(_LANDING) * landing


def _jump_at(image: Image, vaddr: int) -> int | None:
    vaddr = _landed(image, vaddr)
    code = image.code_at(vaddr, 1 + _DISTANCE)
    if code.startswith(_SHORT_JUMP) and len(code) > 1:
        return vaddr + 2 + _distance(code[1:2])
    if code.startswith(_JUMP) and len(code) == 1 + _DISTANCE:
        return vaddr + len(code) + _distance(code[1:])
    return None


def _distance(code: bytes) -> int:
    return int.from_bytes(code, "little", signed=True)
