"""Functions of programs that are watched by probes."""

ALLOCATIONS = (
    *("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc"),
    *("memalign", "reallocarray"),
)
"""Functions of the C library; those of C++ and Rust call them."""

_NEW = (*("", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t"),)
_DELETE = (
    *("", "m", "RKSt9nothrow_t", "St11align_val_t", "mSt11align_val_t"),
    "St11align_val_tRKSt9nothrow_t",
)

PROBE = "lock_slow"
"""The event of the functions that follow."""

LOCKS_OF_GO = (
    "internal/sync.runtime_SemacquireMutex",
    "sync.runtime_SemacquireMutex",
    "sync.runtime_SemacquireRWMutex",
    "sync.runtime_SemacquireRWMutexR",
)
"""Their callers wait for a lock in the wait that follows."""

ALLOCATIONS_OF_GO = {"runtime.mallocgc": "mallocgc"}
"""Their names as events: without a dot, which begins the number of a library."""

OPERATORS = {
    **{f"_Znwm{rest}": "operator new" for rest in _NEW},
    **{f"_Znam{rest}": "operator new[]" for rest in _NEW},
    **{f"_ZdlPv{rest}": "operator delete" for rest in _DELETE},
    **{f"_ZdaPv{rest}": "operator delete[]" for rest in _DELETE},
}
"""Those of C++ by their symbols: not every one of them calls the C library."""

OPERATORS_PROBED = (
    *("_Znwm", "_ZdlPv", "_ZdlPvm", "_Znam", "_ZdaPv", "_ZdaPvm"),
    *("_ZnwmSt11align_val_t", "_ZnwmRKSt9nothrow_t"),
)
"""Those in use most: on a machine there is not room for all."""

_RJEM = (
    *("_rjem_malloc", "_rjem_calloc", "_rjem_realloc", "_rjem_mallocx"),
    *("_rjem_rallocx", "_rjem_sdallocx"),
)
_MIMALLOC = (
    *("mi_malloc", "mi_zalloc", "mi_malloc_aligned", "mi_zalloc_aligned"),
    *("mi_realloc_aligned", "mi_free"),
)
_D = ("gc_malloc", "gc_calloc", "gc_realloc", "gc_qalloc", "gc_free")
_PASCAL = {
    "SYSTEM_$$_SYSGETMEM$QWORD$$POINTER": "getmem",
    "SYSTEM_$$_SYSREALLOCMEM$POINTER$QWORD$$POINTER": "reallocmem",
    "SYSTEM_$$_SYSFREEMEM$POINTER$$QWORD": "freemem",
}
"""Of Free Pascal, by their symbols."""
_NIM = ("newObjRC1", "newObj", "newObjNoInit", "newSeq")
OWN_ALLOCATORS = (_RJEM, _MIMALLOC, _D, tuple(_PASCAL), _NIM)
"""Those of languages in place of the C library's; a file has them if it has the first
one of a row."""

NAMES_OF_SYMBOLS = {**OPERATORS, **_PASCAL}
"""Events by the symbols of their functions, where the two differ."""

OF_LANGUAGES = (
    *("runtime.mallocgc", "__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"),
    *("__rust_dealloc", *_RJEM, *_MIMALLOC),
)
"""Of Go, and of Rust with another allocator than that of the C library."""


def is_allocation(event: str) -> bool:
    """Whether an event is a call that allocates or frees; `malloc.2` is of a second
    library."""
    return event in OF_LANGUAGES or plain_name(event) in _NAMES


def plain_name(event: str) -> str:
    """Return the name of a probed function without the number of its library."""
    return event if event in OF_LANGUAGES else event.partition(".")[0]


LEAST = 4


def by_use(event: str) -> int:
    """Return the place of a function among those probed, where not all have room."""
    return _RARE.get(event, 0)


_NAMES = frozenset(
    (
        *(*ALLOCATIONS, *ALLOCATIONS_OF_GO.values(), *OPERATORS.values()),
        *(NAMES_OF_SYMBOLS.get(one, one) for row in OWN_ALLOCATORS for one in row),
    )
)
_RARE = {
    **dict.fromkeys(OPERATORS.values(), 1),
    **{"posix_memalign": 2, "aligned_alloc": 2, "memalign": 3, "reallocarray": 3},
}
