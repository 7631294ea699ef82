"""A report shows that the load was there: who worked, how much, and who did not."""

import dataclasses

import pytest

from fakes.measurements import record, thread
from fakes.printed import render_text
from rtscope.present.documents.pages import render_html
from rtscope.present.documents.results import render_markdown
from rtscope.present.model.build import build_model
from rtscope.record.model import RunRecord, WorkerLapse, WorkerRecord

S = 1_000_000_000
STOPPED = WorkerLapse("stopped", after_ns=2 * S, by_ns=3 * S, until_ns=None)


def worker(pid: int | None, *lapses: WorkerLapse, waits: bool = False) -> WorkerRecord:
    return WorkerRecord(
        name="stress-ng-matri",
        pid=pid,
        processes=1 if pid else 40,
        waits=waits,
        cpu_ns=5 * S,
        least_share=0.0 if waits else 0.987 if pid else None,
        most_share=0.0 if waits else 1.0 if pid else None,
        voluntary_switches=3,
        involuntary_switches=1_234,
        lapses=lapses,
    )


def measured(
    *workers: WorkerRecord, rate: float | None = 1_234.0, worst_ns: int = 60_000
) -> RunRecord:
    run = record([thread([4_000, worst_ns])], "cpu")
    load = dataclasses.replace(
        run.load,
        argv=("stress-ng",),
        workers=workers,
        throughput={} if rate is None else {"matrix": rate},
    )
    return dataclasses.replace(run, load=load)


def sentence(*workers: WorkerRecord, rate: float | None = 1_234.0) -> str:
    (row,) = build_model([measured(*workers, rate=rate)]).loads
    return row.sentence


def test_workers_that_worked_are_a_line() -> None:
    parent = worker(6, waits=True)
    assert sentence(parent, worker(7), worker(8)) == (
        "2 workers ran the whole time, 99 to 100 % of a CPU each; 1,234 operations/s."
    )
    assert sentence(worker(7), rate=None) == (
        "1 worker ran the whole time, 99 to 100 % of a CPU."
    )


def test_one_that_did_not_is_named_with_its_time() -> None:
    assert sentence(worker(7), worker(8, STOPPED)) == (
        "2 workers, of which not all ran the whole time, 99 to 100 % of a CPU each; "
        "1,234 operations/s. stress-ng-matri (pid 8) stopped between 2.0 and 3.0 s."
    )
    many = sentence(*(worker(pid, STOPPED) for pid in range(10, 20)))
    assert many.count("(pid ") == 3
    assert many.endswith("; 7 more such times.")


def test_short_lived_ones_are_counted_by_name() -> None:
    assert sentence(worker(6, waits=True), worker(None), rate=None) == (
        "no worker lived long enough to be watched by itself. stress-ng-matri is "
        "short-lived: 40 of them were seen, and none was watched by itself."
    )


@pytest.mark.parametrize(
    ("lapse", "words"),
    [
        (STOPPED, "stopped between 2.0 and 3.0 s"),
        (WorkerLapse("stopped", S, 2 * S, 5 * S), "stopped between 1.0 and 2.0 s, "
         "until 5.0 s"),
        (WorkerLapse("idle", S, 2 * S, 5 * S), "idle from 1.0 s to 5.0 s"),
        (WorkerLapse("idle", -S, S, None), "idle from 0.0 s to the end"),
        (WorkerLapse("died", -2 * S, -S, None), "died before the start"),
        (WorkerLapse("stopped", -2 * S, -S, 2 * S), "stopped before the start, until "
         "2.0 s"),
    ],
)  # fmt: skip
def test_a_time_without_work_reads_as_a_person_says_it(
    lapse: WorkerLapse, words: str
) -> None:
    assert lapse.in_words == words


def test_every_form_of_the_report_has_a_section_on_the_load() -> None:
    model = build_model([measured(worker(7), worker(8, STOPPED))])
    said = "stress-ng-matri (pid 8) stopped between 2.0 and 3.0 s"

    text = " ".join(render_text(model).split())
    assert "Load • cpu: 2 workers" in text
    assert said in text
    markdown = render_markdown(model)
    assert "## Load" in markdown
    assert "| cpu | 2 | 99 to 100 % | 1,234 | not all the time |" in markdown
    assert "stopped between 2.0 and 3.0 s" in markdown
    page = render_html(model)
    assert said in page
    assert page.count('<th scope="row">stress-ng-matri</th>') == 2
    assert "there the whole time" in page


def test_a_load_that_was_not_watched_has_no_section() -> None:
    model = build_model([measured()])

    assert model.loads == ()
    assert "\nLoad\n" not in render_text(model)
    assert "## Load" not in render_markdown(model)
    assert "what each process did" not in render_html(model)


def test_a_run_that_was_not_watched_is_told_beside_one_that_was() -> None:
    both = [measured(worker(7)), measured(worst_ns=70_000)]
    other = dataclasses.replace(both[1].run, id="002-cpu", repetition=2)
    (row,) = build_model([both[0], dataclasses.replace(both[1], run=other)]).loads

    assert "not watched in 1 run" in row.sentence
