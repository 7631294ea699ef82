"""Each row of a table of a page has a cell for each heading."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import rtscope
from fakes import cycling, events
from fakes.boards import campaign
from fakes.htmltables import tables_of, uneven_rows
from fakes.measurements import on_board, record, thread
from fakes.printed import printed
from golden import test_explain_text
from rtscope.contract import CycleRuns, KernelThread
from rtscope.explain.activity import ExplainedWindow
from rtscope.explain.bound import compose
from rtscope.explain.events.threadstates import TracedWakeup
from rtscope.host.units import format_us
from rtscope.present.documents.pages import render_explanations, render_html
from rtscope.present.model.build import build_model
from rtscope.present.model.comparison import build_comparison
from rtscope.present.render.page import page_of
from rtscope.record.model import RunRecord
from rtscope.stats.figures import columns, named
from rtscope.verbs.app.cycletables import cycle_lines
from rtscope.verbs.app.page import examined_document
from rtscope.verbs.demo.page import render_demo
from rtscope.verbs.sweep.file import Diagnosis
from rtscope.verbs.sweep.result import result_of
from rtscope.verbs.sweep.surveytext import survey_page
from rtscope.verbs.sweep.text import sweep_page
from unit import (
    test_app_output,
    test_demo_preempt,
    test_explain_bound,
    test_present_sidebyside,
    test_present_workers,
    test_stats_seeds,
    test_sweep_maineffects,
    test_sweep_ranking,
    test_sweep_result,
    test_sweep_worstruns,
)

ROWS = ("  µs", "  wake-up", "  execution", "  response")
TEMPLATES = Path(rtscope.__file__).parent
LABEL = r'<div class="scroll"[^>]*aria-label="([^"]*)"'
CALLED = r'table\("([^"]*)"'


def report_page() -> str:
    (run,) = campaign(loads=("memory",), cpus=2, seconds=20)
    assert run.result.machine is not None
    kernel = (KernelThread(40, "kworker/0", "kernel", 0, 2_000_000_000),)
    machine = replace(run.result.machine, kernel_threads=kernel)
    busy = replace(run, result=replace(run.result, machine=machine))
    worked = test_present_workers.measured(
        test_present_workers.worker(7),
        test_present_workers.worker(8, test_present_workers.STOPPED),
    )
    return render_html(build_model([busy, worked], deadline_ns=200_000))


def seeds_page() -> str:
    runs = [test_stats_seeds.run(seed, 5_000, 8_000 + seed) for seed in range(3)]
    return render_html(build_model(runs))


def pair_page() -> str:
    return render_html(build_model(test_present_sidebyside.matrix()))


def comparison_page() -> str:
    a, b = (campaign(loads=("idle",), cpus=1, seconds=2, seed=seed) for seed in (0, 1))
    nothing: list[RunRecord] = [record([thread([])], "idle")]
    return render_html(build_comparison({"a": a, "b": b, "none": nothing}))


def published_page() -> str:
    return render_html(test_present_sidebyside.beside(test_present_sidebyside.matrix()))


def explanations_page() -> str:
    bound = compose(0, test_explain_bound.all_kinds(PSD=100), arrivals={})
    one, other = test_explain_text.runs()
    return render_explanations([replace(one, bounds=(bound,)), other], worst=1)


def trace_page() -> str:
    """Runs of a machine have a column less in the list of segments."""
    one, _ = test_explain_text.runs()
    return render_explanations([replace(one, virtual=False)], worst=1)


def examined_page() -> str:
    on_time = cycling.periodic(400)
    some_missed = replace(on_time, runs=on_time.runs[:99] + on_time.runs[120:])
    examined, shown = test_app_output.recorded(some_missed)
    wakeups = [*events.asleep(), *events.woken(1_000), events.ran(7_000)]
    wakeup = TracedWakeup(
        pid=events.THREAD,
        comm="rtscope/0",
        cpu=0,
        expiry_ns=events.DUE,
        wake_ns=events.DUE + 8_000,
        sequence=1,
    )
    longest = ExplainedWindow(
        "longest",
        events.window(wakeups),
        wakeup,
        events.explained(wakeups, late_ns=8_000),
    )
    longest_of = {test_app_output.TID: longest}
    return page_of(examined_document(examined, shown, longest_of))


def demo_page() -> str:
    return render_demo(test_demo_preempt.judge(test_demo_preempt.lines_of()))


def survey_of_loads() -> str:
    part = test_sweep_ranking.died("stress-ng:daemon", 9, operations=5, watched=True)
    found = test_sweep_ranking.ranking(
        [test_sweep_ranking.run("idle", 9_000), part],
        failures={("stress-ng:fork", test_sweep_ranking.RT): "the board ended"},
    )
    return survey_page(found, name="x", target="pc", missing=0)


def effects_page() -> str:
    base, twice = test_sweep_worstruns.BASE, test_sweep_worstruns.TWICE
    found = test_sweep_worstruns.result(
        test_sweep_worstruns.runs(base), test_sweep_worstruns.runs(twice)
    )
    shown = test_sweep_worstruns.with_all_explained(found)
    return sweep_page(shown, [Diagnosis("idle", "k", 9_000, "a lock", ("x",))])


def costs_page() -> str:
    sized = [
        on_board(one, kernel_bytes=5 << 20) for one in test_sweep_result.runs(0, 1)
    ]
    return sweep_page(
        test_sweep_result.result(
            test_sweep_result.ISOLATED, measured=[0, 1], base=sized
        )
    )


def main_effects_page() -> str:
    cells = test_sweep_maineffects.FOUR
    changes = {"b=1": test_sweep_maineffects.ORDINARY}
    return sweep_page(
        result_of(
            "x",
            cells,
            records=test_sweep_maineffects.records_of(cells, changes),
            planned={cell.number: 1 for cell in cells},
            failures={},
        )
    )


PAGES: Mapping[str, Callable[[], str]] = {
    made.__name__: made
    for made in (
        *(report_page, seeds_page, pair_page, comparison_page, published_page),
        *(explanations_page, trace_page, examined_page, demo_page, survey_of_loads),
        *(effects_page, main_effects_page, costs_page),
    )
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_each_row_of_a_table_has_a_cell_for_each_heading(name: str) -> None:
    page = PAGES[name]()

    assert tables_of(page)
    assert list(uneven_rows(page)) == []


@pytest.mark.slow
def test_every_table_of_every_page_is_among_them() -> None:
    labels = [label for made in PAGES.values() for label in re.findall(LABEL, made())]
    known = {
        (label[0].partition("{{")[0] or label[1]).strip()
        for template in TEMPLATES.rglob("*.html")
        for label in re.findall(f"{LABEL}|{CALLED}", template.read_text())
    }

    assert len(known) > 20
    missing = [one for one in known if not any(x.startswith(one) for x in labels)]
    assert missing == []


def test_what_was_found_is_below_its_name_on_a_narrow_screen() -> None:
    page = examined_page()
    table = page[page.index('aria-label="Findings"') :].partition("</table>")[0]
    columns = table.count('<th scope="col"')
    narrow = page.partition("@media screen and (max-width: 30rem) {")[2]

    assert table.count('class="text wrap"') == table.count("<tr>")
    assert f"table:has(td.wrap:nth-child({columns}):last-child) " in narrow
    # the first and the last have a line for themselves
    assert f"grid-template-columns: repeat({columns - 2}, auto);" in narrow


def test_a_cell_over_two_columns_or_two_rows_counts_there() -> None:
    head = '<tr><td rowspan="2">a</td><th colspan="2">b</th></tr><tr><th>c</th><th>d'
    page = (
        f"<table><thead>{head}</th></tr></thead>"
        "<tr><td>1</td><td>2</td><td>3</td></tr>"
        '<tr><td>1</td><td colspan="2">2</td></tr><tr><td>1</td><td>2</td></tr></table>'
    )

    assert list(uneven_rows(page)) == ["table 1, row 5: 2 cells below 3 headings"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cycles", "period_ns"),
    [(5, 700 * 10**9), (320, 11 * 10**9), (3_200, 11 * 10**8), (31_000, 11 * 10**7)],
)
def test_the_times_of_a_program_fit_into_80_columns(
    cycles: int, period_ns: int
) -> None:
    """In an hour, the longest time that is watched: more samples, shorter periods."""
    dues = range(period_ns, (cycles + 1) * period_ns, period_ns)
    rows_of_runs = tuple(
        (
            *(test_app_output.TID, 0, due, due, due),
            *(due + period_ns // 2, due + period_ns, period_ns, 0, 0),
        )
        for due in dues
    )
    _, shown = test_app_output.recorded(CycleRuns(rows_of_runs))

    lines = printed(cycle_lines(shown, width=80)).splitlines()
    head, *rows = [line for line in lines if line.startswith(ROWS)]
    assert head.split()[1:] == list(named("cycles"))
    half, whole = (format_us(period_ns / n) for n in (2, 1))
    assert [row.split()[-1] for row in rows] == [half, whole, whole]
    assert [len(row.split()[2:]) for row in rows] == [len(columns("cycles"))] * 3
    assert max(map(len, (head, *rows))) <= 80
