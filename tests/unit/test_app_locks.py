"""Which words that a thread waits for are locks, in all languages."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.watching import stack, times, word
from rtscope.verbs.app.locks import Lock, lock_of
from rtscope.verbs.app.model import EventStack

BITSET = 9
TIDS = (4711, 4712)


def kind_of(*stacks: EventStack, value: int = 0, **given: Any) -> str | None:
    lock = lock_of(word(value, **given), stacks, TIDS)
    return None if lock is None else lock.kind


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"value": 2}, "a mutex"),  # glibc, Go's runtime
        ({"value": 2, "command": BITSET}, "a mutex"),  # Rust
        ({"value": 0x80000010}, "a mutex"),  # musl
        ({"value": 0x80000000 | 4711, "values_differ": True}, "a mutex"),  # robust
        ({"value": 0x80000002, "values_differ": True}, "a lock"),  # musl, to write
        ({"value": 3, "command": BITSET}, "a rwlock"),  # glibc
        ({"value": 0x7FFFFFFF, "command": BITSET}, "a rwlock"),  # Rust, to read
        ({"value": 1, "times": times(5), "wakes": 5}, "a lock"),  # of one's own
        ({"value": 0, "looks": 8, "free": 7}, "a semaphore"),  # taken and given back
        ({"value": 0x80000000, "looks": 8, "free": 7}, "a semaphore"),  # musl
    ],
)
def test_a_lock_is_one_by_its_word(given: dict[str, Any], kind: str) -> None:
    assert kind_of(**given) == kind


@pytest.mark.parametrize(
    "given",
    [
        {"value": 2, "values_differ": True, "command": BITSET},  # a condition's counter
        {"value": 0xFFFFFFFF, "command": BITSET},  # a parked thread of Rust
        {"value": 0},  # a note of Go, a semaphore that is a queue
        {"value": 0, "looks": 20, "free": 1},  # the same, with work once
        {"value": 4711},  # pthread_join
        {"value": 0x80000000 | 99999},  # of no thread of this process
        {"value": 5, "times": times(9)},  # a barrier's round
        {"value": 7, "times": times(9), "wakes": 3, "values_differ": True},  # the same
        {"value": 2, "command": 11},  # FUTEX_WAIT_REQUEUE_PI
    ],
)
def test_a_wait_for_work_is_none(given: dict[str, Any]) -> None:
    if given.get("command") == 11:
        given = {**given, "values_differ": True}
    assert kind_of(**given) is None


def test_a_word_on_the_stack_of_who_waits_is_no_lock() -> None:
    """A condition of musl waits there for 2, a parked thread of parking_lot for 1."""
    own = replace(stack("0x1"), own_memory=True)

    assert kind_of(own, value=2) is None
    assert kind_of(own, value=1, times=times(3), wakes=3) is None


@pytest.mark.parametrize(
    ("functions", "kind", "language"),
    [
        (["pthread_cond_timedwait", "take_gil", "time_sleep"], "the GIL", "python"),
        (
            ["__pthread_cond_wait", "ObjectMonitor::enter(JavaThread*)"],
            "a monitor",
            "java",
        ),
        (
            ["syscall", "std::sys::sync::mutex::futex::Mutex::lock_contended"],
            "a mutex",
            "rust",
        ),
        (
            [
                "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
                "std::sys::sync::mutex::futex::Mutex::lock",
            ],
            "a mutex",
            "rust",
        ),
        (
            ["<std::sys::sync::rwlock::futex::RwLock as a::B<T>>::read_contended"],
            "a rwlock",
            "rust",
        ),
        (["parking_lot::raw_mutex::RawMutex::lock_slow"], "a mutex", "rust"),
        (["parking_lot::raw_rwlock::RawRwLock::lock_shared_slow"], "a rwlock", "rust"),
        (
            ["std::sys::sync::rwlock::futex::RwLock::write_contended"],
            "a rwlock",
            "rust",
        ),
        (
            ["runtime.futex", "runtime.futexsleep", "runtime.lock2"],
            "a lock of the runtime",
            "go",
        ),
        (["___pthread_rwlock_wrlock", "step"], "a rwlock", "c"),
        (
            ["__pthread_rwlock_rdlock_full64", "std::shared_mutex::lock_shared()"],
            "a rwlock",
            "c++",
        ),
        (["__GI___lll_lock_wait", "pthread_cond_wait"], "a mutex", "c"),
    ],
)
def test_functions_tell_locks_that_wait_for_conditions(
    functions: list[str], kind: str, language: str
) -> None:
    lock = lock_of(word(0, values_differ=True), [stack(*functions)], TIDS)

    assert lock is not None
    assert (lock.kind, lock.language) == (kind, language)
    assert lock.remedy


@pytest.mark.parametrize(
    ("image", "kind", "language"),
    [
        ("libjvm.so", "a lock inside of the virtual machine", "java"),
        ("prog", "a mutex", "c++"),
    ],
)
def test_a_class_of_the_virtual_machine_is_one_in_its_file_alone(
    image: str, kind: str, language: str
) -> None:
    waits = stack("futex", "own::Mutex::lock()", "std::f", image=image)

    lock = lock_of(word(2), [waits], TIDS)

    assert lock is not None
    assert (lock.kind, lock.language) == (kind, language)


@pytest.mark.parametrize(
    "functions",
    [
        ["futex_wait", "pthread_cond_wait", "cycle"],
        ["pthread_barrier_wait"],
        ["std::thread::park", "std::sync::mpmc::recv"],
        ["runtime.futexsleep", "runtime.notesleep", "runtime.mPark"],
        ["pthread_cond_timedwait", "ObjectMonitor::wait(long, bool, JavaThread*)"],
    ],
)
def test_a_function_that_waits_for_work_decides_too(functions: list[str]) -> None:
    assert kind_of(stack(*functions), value=2) is None


@pytest.mark.parametrize(
    ("functions", "kind", "remedy"),
    [
        (["_IO_fwrite", "say"], "the lock of a stdio stream", "another thread"),
        (["__GI__IO_puts", "say"], "the lock of a stdio stream", "stream for this"),
        (["_int_free", "__GI___libc_free", "say"], "the lock of malloc", "allocate"),
        (["__vsyslog_internal", "say"], "a lock of the C library", "before the cycle"),
        (
            ["_int_malloc", "operator new(unsigned long)", "std::f"],
            "the lock of malloc",
            "allocate",
        ),
    ],
)
def test_a_lock_of_the_c_library_is_told_by_what_takes_it(
    functions: list[str], kind: str, remedy: str
) -> None:
    """Nobody can give such a lock another protocol, in whatever language."""
    lock = lock_of(word(2), [stack("__GI___lll_lock_wait_private", *functions)], TIDS)

    assert lock is not None
    assert (lock.kind, lock.language) == (kind, "c")
    assert remedy in lock.remedy
    assert "PTHREAD_PRIO" not in lock.remedy


def test_a_mutex_that_is_taken_within_a_function_of_the_library_is_one() -> None:
    waits = stack("__lll_lock_wait", "pthread_mutex_lock", "hook", "malloc", "step")

    assert kind_of(waits, value=2) == "a mutex"


def test_a_remedy_is_one_of_the_language() -> None:
    assert "PTHREAD_PRIO_INHERIT" in Lock("a mutex", "c").remedy
    assert "std::unique_lock" in Lock("a mutex", "c++").remedy
    for language in ("rust", "go", "java", "python"):
        assert "pthread" not in Lock("a mutex", language).remedy
