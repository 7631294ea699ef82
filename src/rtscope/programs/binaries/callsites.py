"""What the call before a place in x86 code calls. Pure."""

from collections.abc import Container, Iterator

from rtscope.programs.binaries.image import Image, Symbol

_DISTANCE = 4
_CALL, _JUMP, _SHORT_JUMP = b"\xe8", b"\xe9", b"\xeb"
"""Instructions that a distance follows, from their end on."""
_LANDING = b"\xf3\x0f\x1e\xfa"
"""May be the first instruction of a function: endbr64."""
_MOST_JUMPS = 3
_MOST_LOOKED_AT = 16
"""Functions that one search reads."""
_MOST_CODE = 4096
"""Of a function that is read."""
_BRANCH = b"\x0f"
"""Of a jump on a condition, whose second byte says on which."""
_SHORT_BRANCHES = range(0x70, 0x80)
_CALL_POINTER, _JUMP_POINTER, _BOUNDED = b"\xff\x15", b"\xff\x25", b"\xf2"
"""Through a pointer at a distance; a jump of a linkage table may have a prefix."""
_JUMP_OPERAND, _TABLE_OPERAND = 4, 0x24
"""Of 0xff: a jump, and one through a table at a fixed place."""
_UNTRACKED, _EXTENDED = b"\x3e", 0x41
"""Before it: to no landing, as by a table of a switch; by one of newer registers."""
_ADDS = (0x01, 0x03)
"""The instruction before a jump by such a table adds what that says to its place."""
_BEFORE = 6


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


def calls_by_pointer(image: Image, vaddr: int, wanted: tuple[Image, Symbol]) -> bool:
    """Whether the call before a place is of a function of another file."""
    of, called = wanted
    pointer = pointer_called_before(image, vaddr)
    name = "" if pointer is None else image.slots.get(pointer, "")
    return bool(name) and any(
        one.vaddr == called.vaddr for one in of.functions_named(name)
    )


def jumps_on(image: Image, vaddr: int, wanted: tuple[Image, Symbol]) -> bool:
    """Whether what is called before a place jumps to a function at its own end."""
    first = next(called_before(image, vaddr), None)
    start = None if first is None else image.symbol_at(first)
    return start is not None and any(ways_from(image, start, wanted))


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
    return _pointer_of_stub(image, vaddr + _distance(code[-_DISTANCE:]))


def _pointer_of_stub(image: Image, vaddr: int) -> int | None:
    size = len(_JUMP_POINTER) + _DISTANCE
    stub = _landed(image, vaddr)
    stub += image.code_at(stub, len(_BOUNDED)) == _BOUNDED
    code = image.code_at(stub, size)
    if len(code) < size or not code.startswith(_JUMP_POINTER):
        return None
    return stub + size + _distance(code[-_DISTANCE:])


def jumps_of(image: Image, function: Symbol) -> Iterator[tuple[int, int]]:
    """
    Yield each jump of a function out of itself: its place, and where it leads.

    Every byte may begin one, so what leads to no function may be none.
    """
    code = image.code_at(function.vaddr, min(function.size, _MOST_CODE))
    for at in range(len(code)):
        size, width = _size_of_jump(code, at)
        end = at + size
        if not size or end > len(code):
            continue
        target = function.vaddr + end + _distance(code[end - width : end])
        if not 0 <= target - function.vaddr < function.size:
            yield function.vaddr + at, target


def _size_of_jump(code: bytes, at: int) -> tuple[int, int]:
    """Return the bytes of a jump and of its distance, which are its last."""
    if code[at : at + 1] == _JUMP:
        return 1 + _DISTANCE, _DISTANCE
    if code[at : at + 1] == _SHORT_JUMP or code[at] in _SHORT_BRANCHES:
        return 2, 1
    is_branch = code[at : at + 1] == _BRANCH and code[at + 1 : at + 2] >= b"\x80"
    if code[at : at + 2] == _JUMP_POINTER or (is_branch and code[at + 1] < 0x90):
        return 2 + _DISTANCE, _DISTANCE
    return 0, 0


def function_behind(image: Image, place: int) -> str:
    """Return the function that is called by a pointer or stub there; empty if none."""
    pointer = place if place in image.slots else _pointer_of_stub(image, place)
    return "" if pointer is None else image.slots.get(pointer, "")


def sole_way(
    image: Image, start: Symbol, wanted: tuple[Image, Symbol]
) -> tuple[int, ...]:
    """
    Return the jumps from a function that lead to the wanted one, outermost first.

    None if there are several ways, or a jump by a pointer, which may lead there too.
    """
    seen: set[int] = set()
    ways = list(_ways(image, start, wanted, seen, _MOST_JUMPS))
    read = filter(None, map(image.symbol_at, seen))
    if len(ways) != 1 or any(_jumps_by_pointer(image, one) for one in read):
        return ()
    return ways[0]


def _jumps_by_pointer(image: Image, function: Symbol) -> bool:
    """
    Whether a function jumps to where a register or a variable says.

    A table of its own, as of a switch, leads to no other function.
    """
    code = image.code_at(function.vaddr, min(function.size, _MOST_CODE))
    at = code.find(b"\xff")
    while 0 <= at < len(code) - 1:
        end = function.vaddr + at + 2 + _DISTANCE
        far = code[at : at + 2] == _JUMP_POINTER
        if far and len(code) >= at + 2 + _DISTANCE:
            pointer = end + _distance(code[at + 2 : at + 2 + _DISTANCE])
            if pointer not in image.slots:
                return True
        elif _is_pointer_jump(code, at):
            return True
        at = code.find(b"\xff", at + 1)
    return False


def _is_pointer_jump(code: bytes, at: int) -> bool:
    """Whether the byte 0xff begins such a jump, and is not the end of a distance."""
    operand = code[at + 1]
    if operand >> 3 & 7 != _JUMP_OPERAND or operand == _TABLE_OPERAND:
        return False
    before = code[max(0, at - _BEFORE) : at].rjust(_BEFORE, b"\x90")
    if before[-4:-3] in (_CALL, _JUMP) or before[-1:] == _UNTRACKED:
        return False
    if before[-5:-4] == _BRANCH and 0x80 <= before[-4] < 0x90:
        return False
    if before[-1] == _EXTENDED:
        before = b"\x90" + before[:-1]
    adds = before[-3] & 0xF8 == 0x48 and before[-2] in _ADDS
    return not (operand >= 0xC0 and (adds or before[-1:] == _UNTRACKED))


def ways_from(
    image: Image, start: Symbol, wanted: tuple[Image, Symbol]
) -> Iterator[tuple[int, ...]]:
    """Yield the jumps from a function that lead to the wanted one, outermost first."""
    yield from _ways(image, start, wanted, set(), _MOST_JUMPS)


def _ways(
    image: Image,
    start: Symbol,
    wanted: tuple[Image, Symbol],
    seen: set[int],
    left: int,
) -> Iterator[tuple[int, ...]]:
    if start.vaddr in seen or len(seen) >= _MOST_LOOKED_AT:
        return
    seen.add(start.vaddr)
    of, runs = wanted
    for at, target in jumps_of(image, start):
        if target == runs.vaddr and of is image:
            yield (at,)
            continue
        name = function_behind(image, target)
        if name:
            if any(one.vaddr == runs.vaddr for one in of.functions_named(name)):
                yield (at,)
            continue
        after = image.symbol_at(target) if left > 1 else None
        if after is not None and after.vaddr == target:
            for rest in _ways(image, after, wanted, seen, left - 1):
                yield (at, *rest)


def is_entered_from(
    image: Image, caller: Symbol, places: Container[int], names: Container[str]
) -> bool:
    """
    Whether a function calls or jumps to one of these places, or to one of these names.

    True of other processors than x86-64, whose code is not read here.
    """
    code = image.code_at(caller.vaddr, min(caller.size, _MOST_CODE))
    if image.elf.machine != "EM_X86_64":
        return True
    for at in range(len(code) - _DISTANCE):
        end = caller.vaddr + at + 1 + _DISTANCE
        distance = _distance(code[at + 1 : at + 1 + _DISTANCE])
        if code[at : at + 1] in (_CALL, _JUMP):
            if end + distance in places:
                return True
            pointer = _pointer_of_stub(image, end + distance)
        elif code[max(at - 1, 0) : at + 1] in (_CALL_POINTER, _JUMP_POINTER):
            pointer = end + distance
        else:
            continue
        if pointer is not None and image.slots.get(pointer) in names:
            return True
    return False


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
