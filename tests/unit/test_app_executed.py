"""A process that executes another program is two, each with its own memory."""

import base64
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes import watching
from rtscope.contract import FileLine, Line
from rtscope.programs.memorymap import parse_maps
from rtscope.verbs.app.executed import Execution, execution_words, programs_of
from rtscope.verbs.app.rules import examine
from unit.test_app_rules import seen

BEGAN_NS = 10**15
OLD = "00400000-00500000 r-xp 00000000 08:01 11 /opt/old\n"
NEW = "00400000-00500000 r-xp 00000000 08:01 12 /opt/new\n"
NEWEST = "00400000-00500000 r-xp 00000000 08:01 13 /opt/newest\n"


def memory(text: str) -> FileLine:
    return _file("maps", text)


def named(name: str) -> FileLine:
    return _file("comm", f"{name}\n")


def _file(name: str, text: str) -> FileLine:
    content = base64.b64encode(text.encode()).decode()
    return FileLine(f"/proc/17/{name}", "ok", content)


def names_at(*times: int, lines: Sequence[Line], after: str) -> list[str]:
    programs = programs_of(17, parse_maps(OLD), lines, parse_maps(after))
    pieces = (programs.at(BEGAN_NS + t).at(0x400000) for t in times)
    return [piece.path if piece else "" for piece in pieces]


def test_the_memory_is_that_of_the_program_at_the_time() -> None:
    lines: list[Line] = [
        memory(OLD),
        memory(NEW),
        watching.executed(1000),
        memory(NEWEST),
        watching.executed(5000, name="newest"),
    ]

    assert names_at(999, 1000, 4999, 5000, lines=lines, after=NEWEST) == [
        *("/opt/old", "/opt/new", "/opt/new", "/opt/newest")
    ]


def test_the_program_between_two_that_nobody_looked_at_is_unknown() -> None:
    lines: list[Line] = [
        memory(OLD),
        memory(NEWEST),
        watching.executed(1000),
        memory(NEWEST),
        watching.executed(1050, name="newest"),
    ]

    assert names_at(999, 1001, 1050, lines=lines, after=NEWEST) == [
        *("/opt/old", "", "/opt/newest")
    ]


def test_another_program_that_was_seen_instead_is_not_taken_for_it() -> None:
    """A thread that nobody watched yet executed it: of that there is no line."""
    lines: list[Line] = [
        memory(OLD),
        memory(NEWEST),
        named("newest"),
        watching.executed(1000, name="new"),
    ]

    assert names_at(999, 1001, lines=lines, after=NEWEST) == ["/opt/old", ""]


def test_what_is_executed_after_the_watching_is_of_no_use() -> None:
    vdso = "7ff{}0000000-7ff{}0002000 r-xp 00000000 00:00 0 [vdso]\n"
    lib = "00600000-00700000 r-xp 00000000 08:01 20 /lib/later.so\n"
    lines: list[Line] = [
        memory(OLD),
        memory(NEW + vdso.format(1, 1)),
        watching.executed(1000),
    ]
    for place, later in ((1, "/lib/later.so"), (2, "")):
        after = parse_maps(NEW + lib + vdso.format(place, place))

        programs = programs_of(17, parse_maps(OLD), lines, after)

        piece = programs.at(BEGAN_NS + 2000).at(0x600000)
        assert (piece.path if piece else "") == later


def test_the_memory_of_one_program_is_that_of_all_looks_at_it() -> None:
    lib = "7f000000-7f100000 r-xp 00000000 08:01 20 /lib/later.so\n"
    programs = programs_of(17, parse_maps(OLD), [memory(OLD)], parse_maps(OLD + lib))

    assert [piece.path for piece in programs.pieces] == ["/opt/old", "/lib/later.so"]


def test_a_thread_that_executes_has_the_number_of_the_first_from_then_on() -> None:
    lines: list[Line] = [memory(OLD), memory(NEW), watching.executed(1000, tid=21)]
    programs = programs_of(17, parse_maps(OLD), lines, ())
    then = watching.sample("malloc", 21)

    assert programs.of_thread(replace(then, t_ns=BEGAN_NS + 999)).tid == 21
    assert programs.of_thread(replace(then, t_ns=BEGAN_NS + 1001)).tid == 17
    other = watching.sample("malloc", 22)
    assert programs.of_thread(replace(other, t_ns=BEGAN_NS + 1001)).tid == 22


@pytest.mark.parametrize(
    ("tid", "name", "said"),
    [
        (17, "new", "thread 17 control executed /opt/new after 1.5 ms"),
        (17, "go.sh", "thread 17 control executed /opt/new as go.sh after 1.5 ms"),
        (
            21,
            "new",
            "thread 21 worker executed /opt/new after 1.5 ms, and is thread 17 from "
            "then on",
        ),
    ],
)
def test_words_name_thread_file_and_time(tid: int, name: str, said: str) -> None:
    threads = [watching.thread(17, "control"), watching.thread(21, "worker")]
    lines: list[Line] = [
        memory(OLD),
        memory(NEW),
        named(name),
        watching.executed(1_500_000, tid=tid, name=name),
    ]
    programs = programs_of(17, parse_maps(OLD), lines, ())

    (words,) = execution_words(programs.executions(threads, BEGAN_NS), 17, most=3)

    assert words == said


def test_a_program_that_it_left_at_once_is_said_to_be_unknown() -> None:
    lines: list[Line] = [
        *(memory(NEWEST), watching.executed(1000, name="sh")),
        *(memory(NEWEST), watching.executed(1050, name="newest")),
    ]
    programs = programs_of(17, parse_maps(OLD), lines, ())
    threads = [watching.thread(17, "control")]

    words = list(execution_words(programs.executions(threads, BEGAN_NS), 17, most=3))

    assert "named sh" in words[0]
    assert words[1].startswith("thread 17 sh executed /opt/newest ")
    assert programs.renamed(threads[0]).name == "newest"


def test_a_program_that_may_not_be_watched_is_said_to_be_unseen() -> None:
    blind = watching.thread(101, "sudo")
    executed = (Execution(101, "cycle", "/usr/bin/sudo", "sudo", 1000),)

    for watched, expected in ((blind, True), (watching.thread(101, malloc=0), False)):
        examined = examine(seen(watched=[watched], executed=executed))

        causes = [one.cause for one in examined.unseen]
        assert any("rights of its own" in one for one in causes) == expected


def test_an_allocator_that_had_no_probe_is_said_to_be_unseen() -> None:
    examined = examine(seen(no_probe_since="/opt/static"))

    (unseen,) = examined.unseen
    assert unseen.ids == ("RA07",)
    assert "/opt/static was executed" in unseen.cause


def test_memory_that_changed_before_it_was_watched_is_no_fault_of_the_kernel() -> None:
    examined = examine(seen(events=[watching.event("malloc", cause="unmapped")]))

    (unseen,) = examined.unseen
    assert "did it execute a program?" in unseen.cause


def test_the_last_one_that_nobody_looked_at_has_ended() -> None:
    some = [Execution(17, "a", "", name, 1) for name in ("b", "c")]

    first, last = execution_words(some, 17, most=3)

    assert "named b (it executed another one before" in first
    assert "named c (it ended before" in last
