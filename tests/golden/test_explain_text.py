"""Explained wake-ups as printed, to the character, on 80 and on 100 columns."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fakes.measurements import on_board, record, thread
from fakes.paths import Step, section, symbols
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Explanation
from rtscope.explain.runs import ExplainedRun, explained_run
from rtscope.host.units import format_us
from rtscope.present.documents.pages import render_explanations
from rtscope.present.render.fitted import COLUMNS, LINES
from rtscope.verbs.explain.text import (
    print_brief_explanations,
    print_explanations,
)

KEPT = Path(__file__).parent / "explain"

TABLE = symbols(
    *("handle_exception", "do_irq", "hrtimer_interrupt", "__hrtimer_run_queues"),
    *("hrtimer_wakeup", "preempt_schedule_irq", "__schedule", "__switch_to"),
    *("__rmqueue_pcplist", "_raw_spin_lock_irqsave", "do_nanosleep", "a_<b>&\x1b[1m"),
)
TO_THREAD: list[Step] = [
    *((100, "handle_exception"), (100, "do_irq"), (900, "hrtimer_interrupt")),
    *((700, "__hrtimer_run_queues"), (1300, "hrtimer_wakeup"), (200, "do_irq+")),
    *((100, "preempt_schedule_irq"), (1400, "__schedule"), (200, "__switch_to")),
    *((300, "__schedule+"), (800, "do_nanosleep+"), (100, "user")),
]
LOCKED: list[Step] = [
    (50_000, "_raw_spin_lock_irqsave"),
    (400_000, "__rmqueue_pcplist", 1),
    (60_000, "_raw_spin_lock_irqsave+"),
    (30_000, "__rmqueue_pcplist+"),
    (90_000, "__rmqueue_pcplist", 1),
]


def explained(way: list[Step], *, off: bool) -> Explanation:
    steps: list[Step] = [(50, "__rmqueue_pcplist"), *way, *TO_THREAD]
    late = sum(step[0] for step in steps[1:])
    found = section(steps, TABLE, late=late, flags=((0, 1), (20, 0 if off else 1)))
    return explain_path(found, TABLE, arch="riscv64")


def run(load: str, kernel: str, *found: Explanation) -> ExplainedRun:
    latencies = [1_000] * 3000 + [one.latency_ns for one in found] + [5_000]
    kept = on_board(record([thread(latencies)], load=load, kernel=kernel))
    return explained_run(kept, found)


def runs() -> list[ExplainedRun]:
    hidden: list[Step] = [(9_000, "a_<b>&\x1b[1m")]
    return [
        run("memory", "plain", explained(LOCKED, off=True), explained([], off=False)),
        run("memory", "rt", explained(hidden, off=False)),
    ]


@pytest.mark.parametrize("width", [80, 100])
def test_the_text_is_as_before(width: int, rewrite: bool) -> None:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as captured:
        print_explanations(runs(), console, worst=1)
    text = captured.get()
    expected = KEPT / f"{width}.txt"
    if rewrite:
        KEPT.mkdir(exist_ok=True)
        expected.write_text(text)

    assert text == expected.read_text()
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


def test_the_short_text_is_as_before_and_fits_into_one_look(rewrite: bool) -> None:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    with console.capture() as captured:
        print_brief_explanations(runs(), console, command="rtscope explain results")
    text = captured.get()
    expected = KEPT / "brief.txt"
    if rewrite:
        expected.write_text(text)

    assert text == expected.read_text()
    assert len(text.splitlines()) <= LINES
    assert max(map(len, text.splitlines())) <= COLUMNS


def test_one_wakeup_hardly_explained_does_not_speak_for_the_others() -> None:
    whole = explained(LOCKED, off=True)
    hardly = replace(whole, latency_ns=100 * whole.latency_ns)
    console = Console(file=io.StringIO(), width=200, highlight=False)
    found = run("memory", "rt", whole, whole, hardly)
    with console.capture() as captured:
        print_explanations([found], console, worst=1)
    said = " ".join(captured.get().split())
    assert "at least 1.0 % of each, half of them 100.0 % or more " in said


def test_the_page_is_the_same_each_time_and_escapes_names_of_functions() -> None:
    page = render_explanations(runs(), worst=1)

    assert page == render_explanations(runs(), worst=1)
    assert page.count("<svg") == 2 * 2  # the way of the worst one, and the tail
    assert "a_&lt;b&gt;&amp;\\x1b[1m" in page
    assert "<b>" not in page
    assert "\x1b" not in page


def test_the_page_opens_with_the_worst_of_each_load_and_kernel_and_its_cause() -> None:
    later = run("memory", "plain", explained([], off=False))
    page = render_explanations([later, *runs()], worst=1)

    opening = page[page.index("<main>") : page.index("<h2")]
    rows = re.findall(r'<a href="#run(\d)">([^<]*)</a>.*?wrap">([^<]*)<', opening)
    assert [(number, cause) for number, _, cause in rows] == [
        ("2", "waiting for a lock in __rmqueue_pcplist"),
        ("3", "interrupt delivery"),
    ]
    worst = runs()[0].explanations[0]
    assert rows[0][1] == format_us(worst.latency_ns)
    assert "<td>510</td>" in opening  # of all pieces of the wait, not of one
