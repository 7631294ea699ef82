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

OF_LANGUAGES = (
    *("runtime.mallocgc", "__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"),
    *("__rust_dealloc", "_rjem_malloc", "_rjem_calloc", "_rjem_realloc"),
    *("_rjem_mallocx", "_rjem_rallocx", "_rjem_sdallocx", "mi_malloc", "mi_zalloc"),
    *("mi_malloc_aligned", "mi_zalloc_aligned", "mi_realloc_aligned", "mi_free"),
)
"""Of Go, and of Rust with another allocator than that of the C library."""


def is_allocation(event: str) -> bool:
    """Whether an event is a call that allocates or frees; `malloc.2` is of a second
    library."""
    return event in _ALLOCATING or event.partition(".")[0] in _NAMES


_NAMES = frozenset((*ALLOCATIONS, *ALLOCATIONS_OF_GO.values()))


_ALLOCATING = frozenset((*OPERATORS.values(), *OF_LANGUAGES))
