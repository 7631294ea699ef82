"""The findings about a program: each rule on what it is about, and on its absence."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fakes import threads, watching
from fakes.printed import printed
from rtscope.contract import (
    BY_CPU,
    EventTimes,
    Inversion,
    Party,
    Waker,
    WatchCost,
    WatchedEvent,
    WatchedThread,
)
from rtscope.contract.commands import TaskLine
from rtscope.host.errors import UsageError
from rtscope.present.document import Block
from rtscope.programs.memorymap import pieces_in
from rtscope.programs.naming import NamedFrame, NamedStack
from rtscope.programs.probes import is_allocation
from rtscope.verbs.app.check import FailOn, status_of
from rtscope.verbs.app.checktext import (
    MAX_LINES,
    examined_blocks,
    examined_row,
    kernel_waits,
)
from rtscope.verbs.app.model import (
    EventStack,
    Examined,
    Files,
    Observation,
    Watch,
    finding_kinds,
)
from rtscope.verbs.app.rules import examine

LOCKED = """\
1000-3000 r-xp 00000000 08:01 5    /bin/prog
Size:                  8 kB
Rss:                   8 kB
VmFlags: rd ex mr mw me lo
4000-5000 r-xp 00000000 00:00 0    [vdso]
Size:                  4 kB
Rss:                   4 kB
VmFlags: rd ex mr mw me
"""
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max locked memory         8388608              8388608              bytes
Max realtime timeout      unlimited            unlimited            us
"""
STATUS = "Name:\tapp\nVmLck:\t     100 kB\nTracerPid:\t0\nSeccomp:\t0\nCapEff:\t0\n"
CLEAN = Files(STATUS, LIMITS, LOCKED, "HOME=/\0", denied={})
STACK = EventStack(
    NamedStack(
        (NamedFrame("touch", "/src/app.c", 12, "app", 0x1010, inlined=False),), None
    ),
    times=3,
    address=0x1000,
)


def thread(tid: int = 101, **given: Any) -> TaskLine:
    """Return a thread as it should be: FIFO, on one CPU."""
    made = {"priority": 60, "pid": 100, "name": "cycle", "cpus": "2", **given}
    return threads.task(tid, made.pop("policy", "fifo"), **made)


LEADER = threads.task(100, name="app", pid=100)


def seen(
    *tasks: TaskLine,
    watched: Sequence[WatchedThread] = (),
    events: Sequence[WatchedEvent] = (),
    files: Files = CLEAN,
    **given: Any,
) -> Observation:
    watch = Watch(
        watching.begin(*events),
        tuple(watched),
        given.pop("end", watching.end()),
        given.pop("stacks", {}),
        given.pop("own_faults", {}),
    )
    made = Observation(
        pid=100,
        name="app",
        listing=threads.listing(LEADER, *(tasks or (thread(),))),
        files=files,
        watch=watch,
        lazy_images=(),
        unread_images={},
        no_probe="",
    )
    return replace(made, **given)


def found(examined: Examined) -> dict[str, str]:
    return {one.id: one.detail for one in examined.findings}


def test_a_program_as_it_should_be_has_no_findings() -> None:
    examined = examine(seen(watched=[watching.thread(101, minor_fault=0)]))

    assert examined.findings == ()
    assert examined.unseen == ()
    assert [t.name for t in examined.judged] == ["cycle"]
    assert status_of(examined, FailOn.LOW) == 0


def test_a_program_without_real_time_threads_is_judged_whole() -> None:
    examined = examine(seen(thread(policy="other", priority=0)))

    assert found(examined)["RA01"] == "none of its 2 threads is: all are judged"
    assert len(examined.judged) == 2
    assert "RA18" in found(examined)


@pytest.mark.parametrize(
    ("path", "variant"),
    [
        ("/lib/ld-musl-x86_64.so.1", "musl"),
        ("/usr/lib/x86_64-linux-musl/libc.so", "musl"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", ""),
    ],
)
def test_a_program_of_musl_is_told_what_sets_a_policy_there(
    path: str, variant: str
) -> None:
    smaps = f"7f00-8f00 r-xp 00000000 08:01 7 {path}\nVmFlags: rd ex lo\n"
    observation = seen(thread(policy="other", priority=0), files=Files(smaps=smaps))

    (one,) = (x for x in examine(observation).findings if x.id == "RA01")

    assert one.variant == variant


def test_a_policy_that_was_set_on_the_first_thread_alone_is_named() -> None:
    first = threads.task(100, "fifo", pid=100, priority=60, cpus="2", name="app")
    observation = replace(
        seen(), listing=threads.listing(first, thread(policy="other", priority=0))
    )

    assert "only the first thread" in found(examine(observation))["RA01"]


FIRST = threads.task(100, "fifo", pid=100, priority=60, cpus="2", name="app")
LOGGER = thread(policy="other", priority=0, name="logger")
TIMES = EventTimes(5, 900, 400, 10**15 + 7, "other")
RCU = Party(15, "rcu_preempt", 120)


def blocks_of(examined: Examined) -> list[Block]:
    return list(examined_blocks(examined, width=80, everything=False))


def beside(*watched: WatchedThread, others: Sequence[TaskLine] = ()) -> Examined:
    """Return findings about a real-time first thread with a logger."""
    made = seen(watched=watched)
    listing = threads.listing(FIRST, LOGGER, *others)
    return examine(replace(made, listing=listing))


def ra01(examined: Examined) -> list[tuple[int | None, str]]:
    return [(x.tid, x.weight.value) for x in examined.findings if x.id == "RA01"]


def test_ordinary_threads_that_nothing_waits_for_are_of_low_weight() -> None:
    examined = beside(watching.thread(100))

    assert ra01(examined) == [(None, "low")]
    (one,) = (x for x in examined.findings if x.id == "RA01")
    assert one.kind.title != finding_kinds()["RA01"].title
    assert examined_row(examined)["findings"][-1]["title"] == one.kind.title
    assert one.kind.title in printed(blocks_of(examined))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"wakers": (Waker(Party(101, "logger", 120), False, 3, "0"),)},
            [(101, "high")],
        ),
        # a softirq that came in its time is not it
        (
            {"wakers": (Waker(Party(101, "logger", 120), True, 3, "0"),)},
            [(None, "low")],
        ),
        ({"wakers": (Waker(RCU, False, 3, "0"),)}, [(None, "low")]),
        (
            {
                "inversions": (
                    Inversion(Party(101, "logger", 120), RCU, TIMES, "7f00"),
                ),
                "words": (watching.word(2),),
            },
            [(101, "high")],
        ),
        # a condition, or a barrier, that it made true is no lock of it
        (
            {
                "inversions": (
                    Inversion(Party(101, "logger", 120), RCU, TIMES, "7f00"),
                ),
                "words": (watching.word(7),),
            },
            [(None, "low")],
        ),
        (
            {"inversions": (Inversion(Party(55, "other", 120), RCU, TIMES, "0"),)},
            [(None, "low")],
        ),
    ],
)
def test_an_ordinary_thread_is_found_where_a_real_time_one_depends_on_it(
    given: dict[str, Any], expected: list[tuple[int | None, str]]
) -> None:
    assert ra01(beside(replace(watching.thread(100), **given))) == expected


def test_who_wakes_a_thread_for_several_words_of_memory_is_counted_once() -> None:
    logger = Party(101, "logger", 120)
    wakers = tuple(Waker(logger, False, n, word) for n, word in ((3, "0"), (4, "7f")))

    examined = beside(replace(watching.thread(100), wakers=wakers))

    (one,) = (x for x in examined.findings if x.id == "RA01")
    assert one.detail.count("it woke") == 1
    assert one.detail.endswith(" 7 times")


def test_an_allocation_of_go_is_one_by_the_name_of_its_event() -> None:
    assert all(map(is_allocation, ("mallocgc", "mallocgc.2", "malloc", "free.3")))
    assert not any(map(is_allocation, ("lock_slow", "lookup", "mallocgcx")))


def test_priorities_and_cpus_are_one_finding_of_a_process() -> None:
    some = [
        thread(tid, name=f"t{tid}", cpus="0-2", priority=99) for tid in range(101, 120)
    ]

    examined = examine(seen(*some))

    ids = [one.id for one in examined.findings]
    assert ids.count("RA02") == ids.count("RA03") == 1
    (cpus,) = (one for one in examined.findings if one.id == "RA03")
    names = ", ".join(f"{tid} t{tid}" for tid in range(101, 120))
    assert cpus.detail == f"19 threads: {names}: may run on CPU 0-2"


def test_each_thread_of_an_equal_priority_is_named_once() -> None:
    some = [
        thread(tid, name=f"t{tid}", cpus=str(cpu), priority=50 + cpu)
        for cpu in range(4)
        for tid in range(100 * cpu + 101, 100 * cpu + 120)
    ]

    detail = found(examine(seen(*some)))["RA02"]

    assert [t.name for t in some if detail.count(f"{t.tid} {t.name}") != 1] == []
    assert detail.startswith("76 threads: 19 of priority 50: 101 t101, 102 t102,")


def test_the_kernels_own_threads_are_no_peers() -> None:
    kernel = [
        threads.kernel(30, "watchdogd", 99, cpus="2"),
        threads.kernel(31, "irq/24-ACPI:Ged", 90, cpus="2", kind="irq"),
    ]

    assert found(beside(watching.thread(100), others=kernel)).keys() == {"RA01"}
    mine = thread(priority=99)
    listing = threads.listing(LEADER, mine, *kernel)
    assert found(examine(replace(seen(), listing=listing))) == {"RA02": "fifo 99"}


def test_programs_of_one_priority_on_a_cpu_are_peers() -> None:
    other = threads.task(300, "fifo", pid=300, priority=60, cpus="2", name="b")
    listing = threads.listing(LEADER, thread(), other)

    examined = examine(replace(seen(), listing=listing))

    assert found(examined) == {"RA02": "2 of priority 60: 101 cycle, 300 b"}


def test_a_named_thread_is_judged_whatever_its_policy() -> None:
    examined = examine(seen(thread(policy="other", priority=0)), threads=["cycle"])
    assert [t.line.tid for t in examined.judged] == [101]

    with pytest.raises(UsageError, match=r"--thread none: .* has 100 app, 101 cycle"):
        examine(seen(), threads=["none"])


@pytest.mark.parametrize(
    ("task", "id_", "detail"),
    [
        (thread(priority=99), "RA02", "fifo 99"),
        (thread(cpus="0-2"), "RA03", "may run on CPU 0-2"),
    ],
)
def test_the_setup_of_a_thread_is_judged(task: TaskLine, id_: str, detail: str) -> None:
    assert found(examine(seen(task))) == {id_: detail}


@pytest.mark.parametrize(
    ("kind", "id_"),
    [
        ("minor_fault", "RA05"),
        ("major_fault", "RA06"),
        ("relative_sleep", "RA09"),
        ("preempted", "RA13"),
        ("set_aside", "RA14"),
        ("migration", "RA15"),
        ("signal", "RA21"),
        ("alignment_fault", "RA22"),
        ("emulation_fault", "RA22"),
    ],
)
def test_events_are_found_with_their_rate_and_stacks(kind: str, id_: str) -> None:
    examined = examine(
        seen(
            watched=[
                watching.thread(100, minor_fault=7),
                watching.thread(101, name="worker", **{kind: 50}),
            ],
            stacks={(101, kind): (STACK,)},
        )
    )

    (one,) = examined.findings
    assert (one.id, one.tid, one.count, one.rate_per_s) == (id_, 101, 50, 5.0)
    assert one.stacks == (STACK,)
    assert ("in code" in one.detail) == (kind in ("minor_fault", "major_fault"))


YIELD = replace(STACK, stack=watching.stack("__sched_yield", "main").stack)


@pytest.mark.parametrize(
    ("aside", "found_"), [(10, {}), (8, {}), (11, {}), (13, {"RA14": 2})]
)
def test_the_yield_that_ends_a_cycle_of_a_deadline_is_no_finding(
    aside: int, found_: dict[str, int]
) -> None:
    ended = replace(
        watching.thread(101, set_aside=aside),
        calls=(watching.call("sched_yield", 10, worst_ns=5_000_000),),
    )
    stacks = {(101, "set_aside"): (YIELD, STACK)}

    examined = examine(
        seen(thread(policy="deadline", priority=0), watched=[ended], stacks=stacks)
    )

    assert {one.id: one.count for one in examined.findings} == found_
    for one in examined.findings:
        assert (one.variant, one.stacks, one.worst) == ("runtime", (STACK,), None)


def test_faults_of_a_program_that_forks_are_told_apart() -> None:
    faults = [watching.thread(101, minor_fault=3)]
    call = watching.stack("__clone", "__GI__Fork", "__libc_fork", "worker")
    begun = watching.stack("__clone", "pthread_create", "forked")
    variants = [
        examine(seen(watched=faults, stacks={(101, "blocking_call"): (one,)}))
        .findings[0]
        .variant
        for one in (call, begun)
    ]

    assert variants == ["fork", ""]


def test_workers_that_the_kernel_made_for_io_uring_are_not_judged() -> None:
    worker = thread(102, name="iou-wrk-100")
    named = thread(103, name="iou-wrk-mine")

    examined = examine(seen(thread(), worker, named))

    assert [one.line.tid for one in examined.judged] == [101, 103]
    assert not any("iou-wrk-100" in one.detail for one in examined.findings)


def test_a_thread_of_a_deadline_is_not_told_to_pin_itself() -> None:
    moved = [watching.thread(101, migration=9)]

    (one,) = examine(
        seen(thread(policy="deadline", priority=0), watched=moved)
    ).findings

    assert (one.id, one.variant) == ("RA15", "deadline")


def test_a_yield_of_another_policy_may_give_its_cpu_away() -> None:
    spun = replace(
        watching.thread(101, set_aside=1), calls=(watching.call("sched_yield", 10),)
    )

    assert found(examine(seen(watched=[spun]))).keys() == {"RA09", "RA14"}


def test_what_the_probes_did_is_not_found() -> None:
    watched = [watching.thread(101, minor_fault=2)]

    assert found(examine(seen(watched=watched, own_faults={101: 2}))) == {}
    assert "RA05" in found(examine(seen(watched=watched, own_faults={101: 1})))


def test_calls_of_all_allocators_are_one_finding() -> None:
    counts = watching.thread(101, malloc=5, free=2)
    other = {**counts.events, "malloc.2": watching.thread(1, m=3).events["m"]}

    (one,) = examine(seen(watched=[replace(counts, events=other)])).findings

    assert (one.id, one.count) == ("RA07", 10)
    assert one.detail == "malloc 8, free 2"


def test_memory_that_can_be_taken_is_found_and_code_that_is_not_there() -> None:
    smaps = LOCKED.replace(" lo\n4000", "\n4000").replace(
        "Rss:                   8", "Rss:                   4"
    )

    examined = examine(seen(files=replace(CLEAN, smaps=smaps)))

    assert found(examined) == {
        "RA04": "4 of 8 KiB in memory, most in /bin/prog",
        "RA23": "4 KiB, most in /bin/prog",
    }
    assert [p.locked for p in pieces_in(LOCKED)] == [True, False]


@pytest.mark.parametrize("flags", ["io", "pf", "de mm", "lo"])
def test_memory_that_a_device_or_the_kernel_keeps_needs_no_lock(flags: str) -> None:
    """As the rings of io_uring: mlock leaves them out, and nobody takes them away."""
    smaps = LOCKED + (
        f"6000-7000 rw-s 00000000 00:10 9    anon_inode:[io_uring]\n"
        f"Size:                  4 kB\nRss:                   4 kB\n"
        f"VmFlags: rd wr sh mr mw ms {flags}\n"
    )

    assert found(examine(seen(files=replace(CLEAN, smaps=smaps)))) == {}


@pytest.mark.parametrize(
    ("files", "id_", "word"),
    [
        ({"limits": LIMITS.replace("unlimited", "500000", 1)}, "RA19", "RTTIME"),
        ({"status": STATUS.replace("100 kB", "8000 kB")}, "RA19", "MEMLOCK"),
        ({"status": STATUS.replace("TracerPid:\t0", "TracerPid:\t7")}, "RA20", "7"),
        ({"status": STATUS.replace("Seccomp:\t0", "Seccomp:\t2")}, "RA20", "seccomp"),
    ],
)
def test_limits_and_surroundings_are_judged(
    files: dict[str, Any], id_: str, word: str
) -> None:
    examined = examine(seen(files=replace(CLEAN, **files)))

    assert list(found(examined)) == [id_]
    assert word in found(examined)[id_]


PROBED = [watching.event("lookup")]


@pytest.mark.parametrize("name", ["lookup", "lookup.2"])
def test_functions_that_a_judged_thread_looked_up_are_found(name: str) -> None:
    counts: Any = {name: 3}
    looked = watching.thread(101, **counts)
    stacks = {(101, name): (STACK,)}
    lazy = seen(
        watched=[looked],
        events=PROBED,
        lazy_images=("app", "b", "c", "d"),
        stacks=stacks,
    )

    (one,) = examine(lazy).findings
    assert (one.id, one.tid, one.count, one.stacks) == ("RA20", 101, 3, (STACK,))
    assert one.detail.endswith("first called, in app, b, c and d")
    assert "LD_BIND_NOW" in one.kind.remedy
    assert "tracer" not in one.kind.remedy


def test_everything_leaves_nothing_of_a_long_finding_out() -> None:
    counts: Any = {"lookup": 3}
    files = [f"library_of_a_long_name_{number}.so" for number in range(60)]
    looked = seen(
        watched=[watching.thread(101, **counts)],
        events=PROBED,
        lazy_images=tuple(files),
        stacks={(101, "lookup"): (STACK,)},
    )

    brief = said_of(examine(looked))
    whole = " ".join(said_of(examine(looked), everything=True).split())

    assert "and more: see -v" in brief
    assert len(brief.splitlines()) <= MAX_LINES
    assert [one for one in files if one not in whole] == []
    assert "see -v" not in whole
    assert "\u2026" not in whole


def test_files_that_may_be_looked_up_in_are_no_finding_by_themselves() -> None:
    quiet = watching.thread(101, lookup=0)
    other = watching.thread(100, lookup=3)  # not judged

    lazy = seen(watched=[quiet, other], events=PROBED, lazy_images=("app",))

    assert examine(lazy).findings == ()
    assert examine(lazy).unseen == ()


def test_lookups_that_nobody_could_see_are_not_seen_unless_switched_off() -> None:
    lazy = seen(lazy_images=("app",))
    now = replace(lazy, files=replace(CLEAN, environ="A=b\0LD_BIND_NOW=1\0"))
    light = replace(lazy, no_probe="--light leaves it out")
    refused = seen(lazy_images=("a",), events=[watching.event("lookup", cause="x")])

    assert [one.ids for one in examine(lazy).unseen] == [("RA20",)]
    assert [one.ids for one in examine(now).unseen] == []
    assert {one.cause for one in examine(light).unseen} == {"--light leaves it out"}
    assert [one.ids for one in examine(refused).unseen] == [("RA20",)]


def test_what_could_not_be_seen_is_never_clean() -> None:
    refused = watching.event("minor_fault", cause="paranoid")
    for observation in (
        seen(events=[refused]),
        seen(events=[watching.event("minor_fault", user_only=True)]),
        seen(no_probe="Permission denied"),
        seen(files=replace(CLEAN, smaps=None, denied={"smaps": "Permission denied"})),
        seen(end=watching.end(not_watched=3)),
        seen(events=[watching.event("timeline", cause="unbuilt")]),
        seen(end=replace(watching.end(), records_lost=3)),
        seen(watched=[replace(watching.thread(101), records_lost=3)]),
    ):
        examined = examine(observation)
        assert examined.findings == ()
        assert examined.unseen
        assert status_of(examined, FailOn.LOW) == 3
        assert status_of(examined, FailOn.NEVER) == 3
        assert "nothing found, but not everything could be checked" in said_of(examined)


def test_sudo_is_no_remedy_where_a_namespace_refuses() -> None:
    refused = replace(watching.event("migration", cause="namespace"), remedy="go out")
    partly = watching.event("minor_fault", user_only=True)
    files = replace(CLEAN, smaps=None, denied={"smaps": "Permission denied"})

    for events, remedy in (
        ([partly], "run as root or with sudo"),
        ([partly, refused], "go out"),
    ):
        unseen = examine(seen(events=events, files=files)).unseen
        assert {one.remedy for one in unseen} == {remedy}


def test_the_exit_status_is_that_of_the_weight_that_was_asked_for() -> None:
    examined = examine(seen(thread(cpus="0-2")))

    assert status_of(examined, FailOn.LOW) == 1
    assert status_of(examined, FailOn.MEDIUM) == 1
    assert status_of(examined, FailOn.HIGH) == 0
    assert status_of(examined, FailOn.NEVER) == 0


def said_of(examined: Examined, *, everything: bool = False) -> str:
    blocks = examined_blocks(examined, width=80, everything=everything)
    return printed(blocks)


def test_the_worst_comes_first_and_all_fits_a_screen() -> None:
    tasks = [thread(tid, cpus="0-2", name=f"t{tid}") for tid in range(101, 120)]
    watched = [
        watching.thread(t.tid, minor_fault=5, major_fault=1, migration=3, malloc=9)
        for t in tasks
    ]
    stacks = {
        (t.tid, k): (STACK, STACK) for t in tasks for k in ("malloc", "migration")
    }
    smaps = LOCKED.replace(" lo", "").replace("Rss:                   8", "Rss: 4")
    examined = examine(
        seen(*tasks, watched=watched, stacks=stacks, files=replace(CLEAN, smaps=smaps))
    )

    text = said_of(examined)
    assert len(text.splitlines()) <= MAX_LINES
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.splitlines()[1].startswith("RA06 high")
    assert {one.id for one in examined.findings} == {
        word for word in finding_kinds() if f"{word} " in text
    }
    whole = said_of(examined, everything=True)
    # two that read the same
    assert "6x touch app.c:12" in whole
    assert "\u2026" not in whole
    assert finding_kinds()["RA06"].remedy in whole


def test_data_has_each_finding_with_its_frames() -> None:
    row = examined_row(
        examine(
            seen(
                watched=[watching.thread(101, minor_fault=5)],
                stacks={(101, "minor_fault"): (STACK,)},
            )
        )
    )

    (one,) = row["findings"]
    assert (one["id"], one["tid"], one["count"]) == ("RA05", 101, 5)
    frame = one["stacks"][0]["frames"][0]
    assert (frame["function"], frame["line"]) == ("touch", 12)
    assert row["not_seen"] == []
    assert "denormals" in row["not_looked_for"]


def test_what_a_scheduler_does_to_ordinary_threads_is_no_finding() -> None:
    examined = examine(
        seen(
            thread(policy="other", priority=0),
            watched=[watching.thread(101, preempted=5, set_aside=9)],
        )
    )

    assert not found(examined).keys() & {"RA13", "RA14"}


def test_threads_that_are_delayed_by_events_of_their_own_are_said() -> None:
    delayed = replace(watching.end(), own_events=2, samples_lost=3)
    refused = watching.event(BY_CPU, cause="namespace")

    few = said_of(examine(seen(end=delayed)))
    none = said_of(examine(seen(events=[refused], end=delayed)))
    quick = said_of(examine(seen()))

    assert "2 real-time threads wake some µs later: their events are their own" in few
    assert "why: there is room for 8 of them" in few
    assert "why: Operation not permitted" in none
    assert "some µs later" not in quick
    disturbance = examined_row(examine(seen(end=delayed)))["disturbance"]
    assert disturbance["threads_with_own_events"] == 2
    assert disturbance["stacks_lost"] == 3
    assert "3 more had no room" in few
    assert "had no room" not in quick


def test_waits_for_the_kernel_outside_of_calls_are_said_and_are_no_finding() -> None:
    times = EventTimes(2, 21_000, 12_300, 10**15, "rtscope-agent")
    examined = examine(
        seen(watched=[replace(watching.thread(101, "cycle"), kernel_waits=times)])
    )

    assert examined.findings == ()
    words = " ".join(said_of(examined).split())
    assert "cycle waited for a lock of the kernel or a device: 2 times, at" in words
    ((_, words),) = kernel_waits(examined)
    assert words == "2 times, at most 12.3 µs, ended by rtscope-agent"
    assert examined_row(examined)["kernel_waits"]["101"]["total_ns"] == 21_000


def test_what_the_watching_costs_is_said() -> None:
    costs = {"fault": WatchCost(500, 600, 3_400), "probe": WatchCost(1, 0, 0)}
    examined = examine(seen(end=replace(watching.end(), costs=costs)))

    assert "the watching used 0.10 % of a CPU" in said_of(examined)
    assert "in µs (with stack): fault 0.1 (2.9)\n" in said_of(examined)
    disturbance = examined_row(examined)["disturbance"]
    assert disturbance["costs"]["fault"]["copied_ns"] == 3_400


def test_a_cost_that_other_work_hid_is_not_known_and_is_not_none() -> None:
    costs = {"wakeup": WatchCost(16_000, 14_500, 0), "fault": WatchCost(500, 600, 0)}
    said = said_of(examine(seen(end=replace(watching.end(), costs=costs))))

    assert "it adds in µs: a wake-up unknown\n" in said
    assert "in µs (with stack): fault 0.1\n" in said
    assert "unknown: other work hid it; watch again on a quiet machine" in said
