"""The worst run of each cell under each load, and what is known of its cause."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from fakes.measurements import on_board, record, thread
from rtscope.present.render.fitted import LINES, print_fitted
from rtscope.record.caveats.catalogue import make
from rtscope.record.explanation import (
    SCHEMA,
    BrokenInvariant,
    Explained,
    Segment,
    Wakeup,
)
from rtscope.record.model import RunRecord
from rtscope.verbs.sweep import result as results
from rtscope.verbs.sweep.design import cells_of
from rtscope.verbs.sweep.file import sweep_of
from rtscope.verbs.sweep.result import (
    Known,
    SweepResult,
    WorstRun,
    explained_by,
    result_of,
)
from rtscope.verbs.sweep.text import (
    compose_sweep,
    sentences_on_causes,
    sweep_data,
    sweep_page,
)

SEEDS = 8


def runs(
    worst_ns: Sequence[int], *, load: str = "idle", paths: bool = True
) -> list[RunRecord]:
    """Return a run for each seed, with these maxima."""
    found = []
    for seed, top in enumerate(worst_ns, 1):
        latencies = [5_000] * 200
        latencies[(31 * seed + top) % 199] = top
        made = on_board(
            record([thread(latencies, worst_kept=1)], load),
            seed=seed,
            trace={"file": "x"} if paths else {"reason": "--no-record"},
        )
        name = f"{seed:03}-{load}-s{seed}"
        found.append(replace(made, run=replace(made.run, id=name, seed=seed)))
    return found


def result(
    *measured: Sequence[RunRecord], loads: Sequence[str] = ("idle",), **sweep: Any
) -> SweepResult:
    """Return the result of a base and of levels that measured these runs."""
    axis = {
        "name": "boot",
        "level": [
            {"name": f"x={n}", "kernel": {"append": f"x={n}"}}
            for n in range(1, len(measured))
        ],
    }
    base = {
        "target": {"address": "virtual:pc"},
        "campaign": {"seeds": SEEDS},
        "run": [{"load": [*loads], "duration": "1s", "interval": "1ms"}],
    }
    cells = cells_of(
        sweep_of({"sweep": sweep, "base": base, "axis": [axis]}, source="my.toml")
    )
    return result_of(
        "x",
        cells,
        records=dict(enumerate(measured)),
        planned={cell.number: SEEDS * len(loads) for cell in cells},
        failures={},
    )


BASE = [10_000 + n for n in range(SEEDS)]
TWICE = [20_000 + n for n in range(SEEDS)]


def explained(
    run: WorstRun, *, name: str = "zap", late_ns: int | None = None, **wakeup: Any
) -> Explained:
    """Return an explanation of a run's worst wake-up by interrupts off."""
    cause = Segment(begin_ns=0, end_ns=9_000, cause="interrupts off", name=name)
    values: dict[str, Any] = {"dominant_segment": 0, "dominant_ns": 9_000, **wakeup}
    latest = Wakeup(
        cpu=0,
        latency_ns=run.worst_ns if late_ns is None else late_ns,
        attributed_share=1.0,
        sentence="",
        segments=(cause,),
        notes=(),
        **values,
    )
    return Explained(schema=SCHEMA, result_digest=run.result_digest, wakeups=(latest,))


def with_all_explained(found: SweepResult, **how: Any) -> SweepResult:
    """Return the result with an explanation of each worst run."""

    def told(run: WorstRun) -> WorstRun:
        page = f"{run.directory}/explain.html"
        return explained_by(replace(run, explanation=page), explained(run, **how))

    return replace(
        found,
        cells=tuple(
            replace(cell, worst_runs=tuple(map(told, cell.worst_runs)))
            for cell in found.cells
        ),
    )


def test_the_worst_of_all_seeds_is_named_with_its_seed_and_record() -> None:
    worst_ns = [*BASE]
    worst_ns[2] = 70_000

    (run,) = result(runs(BASE), runs(worst_ns)).cells[1].worst_runs

    assert (run.worst_ns, run.seed, run.run) == (70_000, 3, "003-idle-s3")
    assert run.record == "cells/001-boot-x-1/runs/003-idle-s3/record.json"
    assert run.known is Known.NOT_EXPLAINED


def test_of_seeds_that_are_equally_late_the_first_is_named() -> None:
    (run,) = result(runs([9_000] * SEEDS), runs(BASE)).cells[0].worst_runs

    assert run.seed == 1


def test_each_load_has_a_worst_run() -> None:
    both = [*runs(BASE), *runs(TWICE, load="memory")]

    found = result(both, both, loads=("idle", "memory"))

    told = [(run.key[0], run.worst_ns) for run in found.cells[1].worst_runs]
    assert told == [("idle", 10_007), ("memory", 20_007)]


def test_invalid_runs_are_no_worst_runs() -> None:
    some = runs([*BASE[:-1], 90_000])
    some[-1] = replace(some[-1], caveats=(make("clocksource_changed"),))

    (run,) = result(runs(BASE), some).cells[1].worst_runs

    assert run.worst_ns == BASE[-2]


def test_a_dominant_cause_is_shown_with_its_time_and_its_explanation() -> None:
    found = with_all_explained(result(runs(BASE), runs(TWICE)))

    (run,) = found.cells[1].worst_runs
    assert (run.known, run.cause) == (Known.CAUSE, "interrupts off in zap")
    assert run.cause_ns == 9_000
    page = sweep_page(found)
    assert "interrupts off in zap</td><td>9.00</td>" in page
    assert f'<a href="{run.explanation}">explanation</a>' in page
    assert f'<a href="{run.record}">record</a>' in page


def test_ratios_and_medians_lead_to_the_worst_wake_ups() -> None:
    page = sweep_page(result(runs(BASE), runs(TWICE)))

    assert '<tr id="worst-0-0"><th scope="row" class="text">base</th>' in page
    assert '<tr id="worst-1-0"><th scope="row" class="text">boot: x=1</th>' in page
    assert '<a href="#worst-1-0">2.00</a>' in page  # the heat map
    assert '<a href="#worst-0-0">10.0</a>' in page
    assert '<a href="#worst-1-0">20.0</a>' in page


@pytest.mark.parametrize(
    ("how", "known"),
    [
        ({"dominant_segment": None}, Known.NO_CAUSE),
        ({"late_ns": 7_000}, Known.OTHER),
        (
            {
                "dominant_segment": None,
                "broken_invariants": (
                    BrokenInvariant(invariant="x", begin_ns=0, end_ns=1),
                ),
            },
            Known.WITHDRAWN,
        ),
    ],
    ids=str,
)
def test_an_explanation_that_proves_no_cause_names_none(
    how: dict[str, Any], known: Known
) -> None:
    found = with_all_explained(result(runs(BASE), runs(TWICE)), **how)

    (run,) = found.cells[1].worst_runs
    assert (run.known, run.cause, run.cause_ns) == (known, "", 0)
    page = sweep_page(found)
    assert "interrupts off" not in page
    assert run.explanation in page
    (sentence,) = sentences_on_causes(found)
    assert "interrupts off" not in sentence
    if known is Known.WITHDRAWN:
        assert "explanation withdrawn: it contradicts the recording" in page
        assert "20.0, explanation withdrawn" in sentence


def test_a_run_that_is_not_explained_has_the_command_for_it() -> None:
    page = sweep_page(result(runs(BASE), runs(TWICE)))

    command = "rtscope explain cells/001-boot-x-1 --run 008-idle-s8"
    assert f"<code>{command}</code>" in page


def test_the_sentence_names_both_causes_of_the_top_effect() -> None:
    found = with_all_explained(result(runs(BASE), runs(TWICE)))

    assert list(sentences_on_causes(found)) == [
        "Worst wake-up under idle (virtual µs): of base 10.0, 9.00 by interrupts off "
        "in zap; of boot: x=1 20.0, 9.00 by interrupts off in zap."
    ]
    assert list(sentences_on_causes(result(runs(BASE), runs(TWICE)))) == []


def test_the_sentence_on_causes_is_shown_beside_as_many_effects_as_fit() -> None:
    many = [runs([(n + 2) * ns for ns in BASE]) for n in range(30)]
    found = with_all_explained(result(runs(BASE), *many))
    console = Console(width=80, record=True, file=None)

    with console.capture() as captured:
        print_fitted(compose_sweep(found, more="All: page"), console)

    text = captured.get()
    assert len(text.splitlines()) <= LINES
    assert "Worst wake-up under idle" in text


def test_names_in_a_cause_are_escaped() -> None:
    name = "<script>alert(1)</script>\x1b[31m"
    found = with_all_explained(result(runs(BASE), runs(TWICE)), name=name)

    page = sweep_page(found)

    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    assert not any("\x1b" in one for one in sentences_on_causes(found))


def test_without_paths_the_commands_are_those_that_record_them() -> None:
    found = result(runs(BASE, paths=False), runs(TWICE, paths=False))

    page = sweep_page(found)

    run = "cells/001-boot-x-1 --run 008-idle-s8"
    assert f"rtscope board trace {run} --replay\nrtscope explain {run}</pre>" in page
    (sentence,) = sentences_on_causes(found)
    assert sentence.startswith("No cause is known: no path was recorded")


def test_the_base_and_at_most_20_changed_cells_are_to_be_explained() -> None:
    many = [runs([(n + 2) * ns for ns in BASE]) for n in range(30)]

    found = result(runs(BASE), *many)

    chosen = found.to_explain
    assert len(chosen) == 21
    assert chosen[0].directory.startswith("cells/000-base/")
    largest = [run.directory.split("/")[1] for run in chosen[1:]]
    assert largest[0] == "030-boot-x-30"
    assert "001-boot-x-1" not in largest


def test_the_data_have_the_worst_run_of_each_cell() -> None:
    data = sweep_data(with_all_explained(result(runs(BASE), runs(TWICE))))

    (told,) = data["cells"][1]["worst_runs"]
    assert told["worst_ns"] == 20_007
    assert told["seed"] == 8
    assert told["known"] == "explained"
    assert told["cause"] == "interrupts off in zap"
    assert told["explanation"].endswith("008-idle-s8/explain.html")


def test_a_page_looks_for_the_keys_of_all_effects_once_not_for_each_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 1,000 cells under three loads a page took six seconds."""
    asked: list[int] = []
    keys = vars(SweepResult)["keys"].fget

    def counted(self: SweepResult) -> object:
        asked.append(1)
        return keys(self)

    monkeypatch.setattr(SweepResult, "keys", property(counted))

    def times(cells: int) -> int:
        asked.clear()
        sweep_page(result(*(runs([10_000 + n] * SEEDS) for n in range(cells))))
        return len(asked)

    assert times(6) == times(2)


def test_the_cell_of_the_top_main_effect_is_explained_before_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The terminal names its cause, also if single cells changed more."""
    monkeypatch.setattr(results, "MOST_EXPLAINED", 1)
    found = result(*(runs([top] * SEEDS) for top in (10_000, 40_000, 20_000)))
    (less,) = (
        one for one in found.effects if (one.cell, one.figure) == ("boot: x=2", "worst")
    )
    combined = replace(found, main_effects=(replace(less, found=True),))

    directories = [run.directory.split("/")[1] for run in combined.to_explain]

    assert directories == ["000-base", "002-boot-x-2"]
    assert [run.directory.split("/")[1] for run in found.to_explain] == [
        "000-base",
        "001-boot-x-1",
    ]
