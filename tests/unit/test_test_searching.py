"""The starts of a search on a board: settings, rounds, the worst again alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pages.jsonkeys import keys_without_words
from rtscope.boards.parts.program import Program
from rtscope.boards.parts.qemu import Phase, ProgramView
from rtscope.boards.recording.programuses import ProgramUses
from rtscope.boards.runs.identity import BoardIdentity
from rtscope.boards.runs.programscript import ProgramJob, job_of_program
from rtscope.host.errors import UsageError
from rtscope.present.document import Chart, Document
from rtscope.present.render.markdown import render_document
from rtscope.verbs.test.file import ProgramTest, program_test_of, with_values
from rtscope.verbs.test.options import KEYS, OPTION_OF
from rtscope.verbs.test.plan import Boot
from rtscope.verbs.test.search.found import found_row, found_section, setting_words
from rtscope.verbs.test.search.levers import Lever, Space
from rtscope.verbs.test.search.searching import (
    Alone,
    Searched,
    command_of,
    corrected,
    options_of,
    with_proposals,
)
from rtscope.verbs.test.search.seen import MARGIN_NS, needed_warmup_ns
from rtscope.verbs.test.search.trials import Proposal, Trial
from unit.test_app_boardwatch import PREPARED

MS, US = 1_000_000, 1000
VIEW = ProgramView(task="gs@0", preempt="gs@8", hooks=(), fields=(), time=())
JOB = ProgramJob(Program(("/prog", "--late={LATE_US}", "x"), {}, ()), duration_ns=MS)
BOOT = Boot("pc", "debian-6.12-rt", "idle", 7, PREPARED, JOB, VIEW, ProgramUses((), {}))
SPACE = Space.of(
    [
        Lever("LATE_US", 0, 500, 2, ns_per_unit=US),
        Lever("phase 2", 0, 999, 2, ns_per_unit=US, period=1000),
    ]
)
FIRST = Proposal((0, 412), "first")


def test_each_start_has_its_phase_and_its_value() -> None:
    boot = with_proposals(BOOT, SPACE, [FIRST, Proposal((120, 30), "meet")])

    assert boot.view.phases == (Phase(2, 2, MS, 30 * US),)
    assert [dict(one) for one in boot.job.values] == [{}, {"LATE_US": "120"}]
    assert len(boot.job.phases_ns) == 2


def test_the_phase_of_a_test_stays_where_the_search_has_none() -> None:
    given = replace(BOOT, view=replace(VIEW, phases=(Phase(1, 1, 4 * MS, 5),)))

    boot = with_proposals(given, SPACE, [Proposal((0, 8), "spread")] * 2)

    assert boot.view.phases == (
        Phase(1, 1, 4 * MS, 5),
        Phase(1, 2, MS, 8 * US),
        Phase(2, 1, 4 * MS, 5),
        Phase(2, 2, MS, 8 * US),
    )


def test_the_script_of_each_start_has_its_value() -> None:
    job = with_proposals(BOOT, SPACE, [Proposal((n, 0), "spread") for n in (4, 6)]).job

    files = job_of_program(job, facts=[]).files

    assert b"/prog --late=4 x" in files["begin-1"]
    assert b"/prog --late=6 x" in files["begin-2"]


def test_the_load_of_a_boot_lasts_as_long_as_all_of_its_starts() -> None:
    loaded = replace(BOOT, load="cpu")

    one, ten = (
        with_proposals(loaded, SPACE, [FIRST] * n).job.load_command for n in (1, 9000)
    )

    assert one.argv
    assert one != ten


def test_the_options_of_the_command_are_read_as_the_same_start() -> None:
    found = searched()
    words = options_of(found, found.trials[1])
    given = {
        KEYS[name.removeprefix("--")]: value
        for name, value in zip(words[::2], words[1::2], strict=True)
    }

    test = with_values(ProgramTest(), given, OPTION_OF)

    assert test.phases == {"2": (30 * US, MS)}
    assert test.value_of == {"LATE_US": "120"}
    assert (test.boards, test.kernels) == (("pc",), ("debian-6.12-rt",))
    assert (test.loads, test.seeds, test.starts) == (("idle",), (7,), 1)


def test_the_first_half_of_a_warm_up_has_room_for_all_that_stands_still() -> None:
    tick = Lever("phase 1", 0, 3999, 2, ns_per_unit=US, period=4000)
    space = Space.of([*SPACE.levers, tick])

    needed_ns = needed_warmup_ns(space, [70 * MS, 81 * MS, 72 * MS])

    assert needed_ns == 2 * (11 * MS + 1 * MS + 4 * MS + MARGIN_NS)


def searched(trials: Sequence[Trial] = ()) -> Searched:
    made = [Trial(FIRST, 900), Trial(Proposal((120, 30), "meet"), 1300), *trials]
    return Searched(BOOT, "fast", SPACE, tuple(made), ())


def test_the_command_of_a_trial_has_all_that_it_needs() -> None:
    found = searched()
    argv = ["test", "a b.toml", "--search", "200", "--seed=1,2", "--json"]

    command = command_of(argv, options_of(found, found.trials[1]))

    assert command == (
        "rtscope test 'a b.toml' --json --board pc --kernel debian-6.12-rt --load idle "
        "--seed 7 --starts 1 --phase 2=30us/1ms --value LATE_US=120"
    )


def test_the_options_of_the_command_stand_before_the_program() -> None:
    argv = ["test", "--search=9", "--save", "a", "--", "./prog", "--seed", "3"]

    command = command_of(argv, ("--seed", "7"))

    assert command == "rtscope test --seed 7 -- ./prog --seed 3"


def test_a_board_says_at_which_phases_its_threads_began() -> None:
    identity = BoardIdentity(
        *("pc", 2, 500.0, 2500, 2, 7, "debian-6.12-rt", ""),
        *("k", "i", "q", "p", "b"),
        phases="1:2:1000000:944000 2:2:1000000:944000 1:3:8000000:6818500",
    )

    assert (
        "seed 7, with thread 2 at 944 of 1000 µs, 3 at 6818.5 of 8000 µs; its times"
        in identity.words
    )


def test_the_first_trial_has_no_settings_of_the_search() -> None:
    found = searched()

    assert "--phase" not in options_of(found, found.trials[0])
    assert setting_words(found, found.trials[0]) == ""
    assert setting_words(found, found.trials[1]) == "LATE_US 120, thread 2 at 30 µs"


def test_phases_are_corrected_until_threads_are_due_as_in_the_trial() -> None:
    wanted = Trial(Proposal((120, 30), "meet"), 1300, phases_ns=(None, 41_400))
    again = Trial(Proposal((120, 30), "meet"), 900, phases_ns=(None, 55_300))
    early = Trial(Proposal((120, 30), "meet"), 900, phases_ns=(None, 999_000))

    assert corrected(SPACE, wanted, again).settings == (120, 16)
    assert corrected(SPACE, wanted, early).settings == (120, 72)


def test_the_document_has_every_trial_and_how_the_worst_grew() -> None:
    found = searched()
    alone = Alone(2, 1300, Trial(FIRST, 1250), None, None)  # type: ignore[arg-type]

    row: Any = found_row(replace(found, repeated=(alone,)), ["test", "a.toml"])

    assert keys_without_words(row, "TestSearch") == []
    assert [one["worst_ns"] for one in row["trials"]] == [900, 1300]
    assert row["growth"] == [
        {"trial": 1, "worst_ns": 900},
        {"trial": 2, "worst_ns": 1300},
    ]


def test_a_test_file_has_phases_values_and_what_is_varied() -> None:
    test = program_test_of(
        {
            "program": {
                "command": ["./p", "{LATE_US}"],
                "phase": {"2": "120us/1ms", "3": "0/8ms"},
            },
            "search": {"vary": {"LATE_US": "0..500"}},
        },
        source="t.toml",
    )

    assert test.phases == {"2": (120 * US, MS), "3": (0, 8 * MS)}
    assert test.vary == {"LATE_US": (0, 500)}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"program": {"phase": {"2": "2ms/1ms"}}}, "write a time and a longer period"),
        ({"program": {"phase": {"2": "2ms"}}}, "write a time and a longer period"),
        ({"program": {"phase": {"0": "1us/1ms"}}}, "phase"),
        ({"search": {"vary": {"A": "5..1"}}}, "LOW..HIGH"),
        ({"search": {"vary": {"A": "fast"}}}, "LOW..HIGH"),
        ({"search": {"wary": {}}}, "vary"),
    ],
)
def test_a_wrong_value_is_refused_in_words(table: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        program_test_of(table, source="t.toml")


def test_a_page_draws_the_worst_of_each_start_beside_what_is_allowed() -> None:
    alone = Alone(2, 1300, Trial(FIRST, 1250), None, None)  # type: ignore[arg-type]
    found = replace(searched(), repeated=(alone,), limit_ns=1200)

    section = found_section(found, ["test"])
    [chart] = [one for one in section.blocks if isinstance(one, Chart)]

    assert "start 2" in chart.markup
    assert "allowed 1.20" in chart.markup
    assert chart.markup.count("h0") == 2
    assert "<svg" not in render_document(Document("", (section,)))
