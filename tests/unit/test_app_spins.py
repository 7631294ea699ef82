"""Waits of a library by naps and yields are waits, not calls of its user."""

from dataclasses import replace

import pytest

from fakes import watching
from rtscope.contract import WatchedThread
from rtscope.verbs.app.model import EventStack, Finding
from rtscope.verbs.app.rules import examine
from unit.test_app_rules import seen

SPIN = (
    "bool std::__detail::__atomic_spin<std::__atomic_semaphore::_M_try_acquire_until"
    "<std::chrono::_V2::steady_clock>(int)::{lambda()#1}>(int)"
)
BACKOFF = "std::__detail::__timed_backoff_spin_policy::operator()() const"


def nap(*callers: str) -> EventStack:
    return watching.stack("clock_nanosleep", *callers, "take", "main")


def yield_(*callers: str) -> EventStack:
    return replace(watching.stack("sched_yield", *callers, "take"), call="sched_yield")


def thread(naps: int, yields: int) -> WatchedThread:
    slept = watching.thread(101, relative_sleep=naps)
    calls = (watching.call("sched_yield", yields),) if yields else ()
    return replace(slept if naps else watching.thread(101), calls=calls)


def found(watched: WatchedThread, *stacks: EventStack) -> list[Finding]:
    kept: dict[tuple[int, str], tuple[EventStack, ...]] = {
        (101, "relative_sleep"): tuple(one for one in stacks if not one.call),
        (101, "blocking_call"): tuple(one for one in stacks if one.call),
    }
    return list(examine(seen(watched=[watched], stacks=kept)).findings)


def test_a_timed_wait_that_naps_is_one_for_another_thread() -> None:
    (one,) = found(thread(42, 90), nap(BACKOFF, SPIN), yield_(SPIN), yield_(BACKOFF))

    assert (one.id, one.variant, one.count) == ("RA10", "naps", 132)
    assert one.detail == "naps 42, yields 90"
    assert len(one.stacks) == 3
    assert "try_acquire_for" in one.remedy


def test_yields_before_a_wait_are_of_low_weight() -> None:
    (one,) = found(thread(0, 16), yield_(SPIN))

    assert (one.id, one.variant, one.count) == ("RA09", "yields", 16)
    assert one.weight.value == "low"


@pytest.mark.parametrize(
    "function",
    [
        "void std::__1::__libcpp_thread_poll_with_backoff<int>(int)",
        "crossbeam_utils::backoff::Backoff::snooze",
        "tbb::detail::d0::atomic_backoff::pause",
        "absl::lts_20220623::synchronization_internal::MutexDelay(int, int)",
    ],
)
def test_other_libraries_spin_too(function: str) -> None:
    assert [one.variant for one in found(thread(0, 3), yield_(function))] == ["yields"]


def test_naps_and_yields_of_the_program_itself_stay_what_they_are() -> None:
    of_both = found(thread(5, 6), nap("usleep"), nap(SPIN), yield_("loop"))

    assert {(one.id, one.variant, one.count) for one in of_both} == {
        *(("RA09", "", 5), ("RA09", "", 6))
    }
