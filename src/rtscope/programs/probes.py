"""Functions of programs that are watched by probes."""

ALLOCATIONS = (
    *("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc"),
    *("memalign", "reallocarray"),
)
"""Functions of the C library; those of C++ and Rust call them."""

PROBE = "lock_slow"
"""The event of the functions that follow."""

LOCKS_OF_GO = (
    "internal/sync.runtime_SemacquireMutex",
    "sync.runtime_SemacquireMutex",
    "sync.runtime_SemacquireRWMutex",
    "sync.runtime_SemacquireRWMutexR",
)
"""Their callers wait for a lock in the wait that follows."""
