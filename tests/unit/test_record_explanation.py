"""What lies beside a record: read back, checked, and what it makes of a verdict."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.measurements import on_board, record, thread
from fakes.printed import render_text
from rtscope.explain.bound import Section, arrivals_of, compose
from rtscope.explain.model import Cause, Explanation, Part, Segment
from rtscope.explain.runs import explained_run
from rtscope.host.errors import RecordError
from rtscope.host.units import format_us
from rtscope.present.documents.pages import render_html
from rtscope.present.documents.results import render_markdown
from rtscope.present.formats.data import render_json
from rtscope.present.model.build import Model, build_model
from rtscope.record.explanation import (
    EXPLAINED,
    CpuBound,
    Explained,
    LongestSection,
    bounds_by_digest,
    explained_as_dict,
    find_explained,
    missing,
    read_explained,
    worst_cause,
    write_explained,
)
from rtscope.record.model import RunRecord

US = 1_000
WORST_NS = 90 * US
LATE_NS = 2_000 * US
FORMAT = Path(__file__).parents[2] / "format"
Change = Callable[[dict[str, Any]], None]


def run() -> RunRecord:
    return record([thread([5 * US] * 3000 + [WORST_NS, 20 * US])], "memory")


def explanation(latency_ns: int = WORST_NS) -> Explanation:
    half = latency_ns // 2
    segments = (
        Segment(Part.A, 0, half, Cause.INTERRUPTS_OFF, "a_<b>&\x1b[1m"),
        Segment(Part.B, half, latency_ns, Cause.TIMER_INTERRUPT, "hrtimer_interrupt"),
    )
    return Explanation(0, 3000, latency_ns, segments)


def bound(ns: int, *, lost: Sequence[str] = ()) -> CpuBound:
    longest = [
        LongestSection(Section.POID, ns - 10 * US, name="do_it"),
        LongestSection(Section.PSD, 8 * US),
    ]
    ticks = arrivals_of([(0, 2 * US)])
    return compose(0, longest, arrivals={"the tick": ticks}, not_recorded=lost)


def explained(*bounds: CpuBound) -> Explained:
    return explained_run(on_board(run()), [explanation()], bounds=bounds).document


def document(*bounds: CpuBound) -> dict[str, Any]:
    return explained_as_dict(explained(*bounds))


def beside(place: Path, content: Mapping[str, Any]) -> Explained:
    file = place / EXPLAINED
    file.write_text(json.dumps(content))
    return read_explained(file)


def judged(place: Path, content: Mapping[str, Any], deadline_ns: int) -> Model:
    one = beside(place, content)
    return build_model(
        [run()], deadline_ns=deadline_ns, explained={one.result_digest: one}
    )


def word(model: Model) -> str:
    assert model.verdict is not None
    return model.verdict.word


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    file, written = tmp_path / EXPLAINED, explained(bound(150 * US, lost=["a lock"]))
    write_explained(file, written)

    assert read_explained(file) == written


def test_an_explanation_that_is_complete_has_a_bound(tmp_path: Path) -> None:
    one = beside(tmp_path, document(bound(150 * US)))

    assert one.worst is not None
    assert one.worst.dominant is not None
    assert (one.worst.latency_ns, one.worst.dominant.cause) == (
        WORST_NS,
        "interrupts off",
    )
    assert one.worst_bound is not None
    assert one.worst_bound.bound_ns == 150 * US
    assert list(missing(one, run())) == []
    assert bounds_by_digest({one.result_digest: one}, [run()]) == {
        run().result_digest: 150 * US
    }


@pytest.mark.parametrize(
    ("deadline_ns", "expected"),
    [
        (150 * US, "HELD AND EXPLAINED"),
        (149 * US, "HELD IN TEST"),
        (WORST_NS, "HELD IN TEST"),
        (WORST_NS - 1, "NO"),
    ],
)
def test_a_bound_beyond_the_deadline_explains_nothing(
    tmp_path: Path, deadline_ns: int, expected: str
) -> None:
    assert word(judged(tmp_path, document(bound(150 * US)), deadline_ns)) == expected


def without_trace(found: dict[str, Any]) -> None:
    found["wakeups"][0].update(segments=[], dominant_segment=None, attributed_share=0.0)


def with_a_caveat(found: dict[str, Any]) -> None:
    found["wakeups"][0]["notes"] = ["the recorded path begins later than it should"]


def half_explained(found: dict[str, Any]) -> None:
    found["wakeups"][0]["attributed_share"] = 0.94


def of_another_wakeup(found: dict[str, Any]) -> None:
    found["wakeups"][0]["latency_ns"] = WORST_NS - 1


def unexplained(found: dict[str, Any]) -> None:
    found["wakeups"] = []


def without_bound(found: dict[str, Any]) -> None:
    found["bounds"] = []


def of_another_cpu(found: dict[str, Any]) -> None:
    found["bounds"][0]["cpu"] = 1


def with_lost_events(found: dict[str, Any]) -> None:
    found["bounds"][0].update(complete=False, not_recorded=["20 events"])


def without_end(found: dict[str, Any]) -> None:
    found["bounds"][0]["bound_ns"] = None


def outside(found: dict[str, Any]) -> None:
    found["bounds"][0]["bound_ns"] = WORST_NS - 1


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        (without_trace, "a path was not kept"),
        (with_a_caveat, "an explanation has a caveat"),
        (half_explained, "an explanation has a caveat"),
        (of_another_wakeup, "the worst wake-up is not explained"),
        (unexplained, "the worst wake-up is not explained"),
        (without_bound, "no critical sections were recorded"),
        (of_another_cpu, "a measured CPU has no bound"),
        (with_lost_events, "were lost"),
        (without_end, "or have no bound"),
        (outside, "CPU 0 exceeded its bound"),
    ],
)
def test_an_explanation_that_lacks_something_completes_no_verdict(
    tmp_path: Path, change: Change, lacks: str
) -> None:
    found = document(bound(150 * US))
    change(found)
    model = judged(tmp_path, found, 10_000 * US)

    assert word(model) == "HELD IN TEST"
    assert any(lacks in what for what in model.explained[0].missing)


def test_without_an_explanation_there_is_none_in_the_verdict() -> None:
    model = build_model([run()], deadline_ns=10_000 * US)
    assert word(model) == "HELD IN TEST"
    assert model.explained == ()


def test_every_form_of_the_report_has_the_culprit_and_what_could_be(
    tmp_path: Path,
) -> None:
    model = judged(tmp_path, document(bound(150 * US)), 200 * US)
    cause = "dominant cause of the worst wake-up"
    could = "latency bound from observed critical sections: 150 µs (no proof)"

    for text in (
        " ".join(render_text(model, width=400).split()),
        render_markdown(model),
        render_html(model),
        render_json(model),
    ):
        assert cause in text
        assert could in text
        assert "\x1b" not in text
    assert "<b>" not in render_html(model)
    (told,) = json.loads(render_json(model))["explained"]
    assert (told["bound_ns"], told["observed_max_ns"]) == (150 * US, WORST_NS)
    assert told["tail"]["not_recorded"] == 1


def test_the_cause_of_the_worst_wake_up_is_read_alone(tmp_path: Path) -> None:
    file = FORMAT / "v2" / EXPLAINED
    one = read_explained(file)
    content = explained_as_dict(one)
    of_a_better = {**content["wakeups"][-1], "latency_ns": 1, "dominant_segment": None}

    assert one.worst is not None
    assert one.worst.dominant is not None
    assert worst_cause(file, one.result_digest) == one.worst.dominant.title
    assert worst_cause(file, "0" * 64) == ""
    other = tmp_path / EXPLAINED
    for wakeups, cause in (
        ([of_a_better, *content["wakeups"]], one.worst.dominant.title),
        ([of_a_better], ""),
        ([], ""),
    ):
        other.write_text(json.dumps({**content, "wakeups": wakeups}))
        assert worst_cause(other, one.result_digest) == cause
    other.write_text("{")
    with pytest.raises(RecordError):
        worst_cause(other, one.result_digest)


def test_the_first_explanation_that_is_kept_loads_with_its_numbers(
    tmp_path: Path,
) -> None:
    one = read_explained(FORMAT / "v2" / EXPLAINED)
    worst, bound = one.worst, one.worst_bound

    assert (one.schema, one.run, one.board) == (2, "001-memory", "pc")
    assert worst is not None
    assert worst.dominant is not None
    assert (worst.latency_ns, worst.dominant_segment, len(worst.segments)) == (
        *(636_200, 0, 5),
    )
    assert (worst.dominant.cause, worst.dominant.executed_ns) == (
        *("waiting for a lock", 110_000),
    )
    assert worst.dominant.functions == (("_raw_spin_lock_irqsave", 110_000),)
    assert [(c.wakeups, c.dominant_in) for c in one.causes] == [
        *((1, 1), (2, 1), (1, 0), (2, 0), (2, 0)),
    ]
    assert bound is not None
    assert bound.bound_ns == 772_000
    assert (bound.complete, bound.not_recorded) == (False, ("20 events of CPU 0",))
    section, interrupt = bound.sections[0], bound.interrupts[0]
    assert (section.executed_ns, section.dominant_function) == (
        *(140_000, "__rmqueue_pcplist"),
    )
    assert (interrupt.min_interarrival_ns, interrupt.max_in_window_ns) == (
        *(900_000, 5_000),
    )
    write_explained(tmp_path / EXPLAINED, one)
    assert read_explained(tmp_path / EXPLAINED) == one


def test_damaged_and_foreign_explanations_are_refused(tmp_path: Path) -> None:
    file = tmp_path / EXPLAINED
    for text in ("", "[]", '{"schema": 2}', '{"schema": 2, "result_digest": "x"}'):
        file.write_text(text)
        with pytest.raises(RecordError, match="damaged"):
            read_explained(file)
    for schema, remedy in ((1, "rtscope explain RECORD"), (3, "newer rtscope")):
        file.write_text(json.dumps({**document(), "schema": schema}))
        with pytest.raises(RecordError, match=f"schema {schema}, .*{remedy}"):
            read_explained(file)
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(RecordError, match="not a regular file"):
        read_explained(file)


def test_what_cannot_be_shown_is_said_and_the_rest_is_found(tmp_path: Path) -> None:
    good, bad, foreign = (tmp_path / "runs" / name for name in ("1", "2", "3"))
    for place in (good, bad, foreign):
        place.mkdir(parents=True)
    (good / EXPLAINED).write_text(json.dumps(document()))
    (bad / EXPLAINED).write_text("no JSON")
    other = {**document(), "result_digest": "f" * 64}
    (foreign / EXPLAINED).write_text(json.dumps(other))
    said: list[str] = []

    found = find_explained([tmp_path], [run()], log=said.append)

    assert list(found) == [run().result_digest]
    assert len(said) == 2
    assert "damaged" in said[0]
    assert "another result" in said[1]
    assert list(find_explained([good], [run()], log=said.append)) == list(found)
    record_file = good / "record.json"
    record_file.touch()
    assert list(find_explained([record_file], [run()], log=said.append)) == list(found)


def long_explanation(number: int, *, evidence: Sequence[str] = ()) -> Explained:
    """An explanation of so many segments, of which the last is the longest."""
    segments = [
        Segment(
            Part.B,
            10 * at,
            10 * at + 5,
            Cause.OTHER_INTERRUPT,
            f"irq {at % 97}",
            evidence=tuple(evidence),
        )
        for at in range(number)
    ]
    segments.append(Segment(Part.A, 10 * number, LATE_NS, Cause.INTERRUPTS_OFF, "f"))
    return explained_run(run(), [Explanation(0, 1, LATE_NS, tuple(segments))]).document


@pytest.mark.slow
def test_of_too_many_segments_the_longest_are_written_and_the_others_counted(
    tmp_path: Path,
) -> None:
    whole = long_explanation(60_900)
    write_explained(tmp_path / EXPLAINED, whole)
    (one,) = read_explained(tmp_path / EXPLAINED).wakeups

    assert one.segments_left_out == 60_901 - len(one.segments) > 30_000
    assert one.left_out_ns == 5 * one.segments_left_out
    assert one.parts == {"A": LATE_NS - 609_000, "B": 5 * 60_900} | {
        part: 0 for part in "CDE"
    }
    assert one.dominant is not None
    assert one.dominant.cause == "interrupts off"
    left = [note for note in one.notes if "did not fit" in note]
    assert left == [
        f"explain.json has the {len(one.segments):,} longest segments: "
        f"{one.segments_left_out:,} shorter ones, together "
        f"{format_us(one.left_out_ns)} µs, did not fit"
    ]
    begins = [segment.begin_ns for segment in one.segments]
    assert begins == sorted(begins)


@pytest.mark.slow
@pytest.mark.parametrize(
    "evidence",
    [
        ["a: b, c" * 20] * 5,
        [f"{number}: later" for number in range(3_000)],
        ["x" * 20_000, "µ" * 12_000],
        ["{[{[,,,,::::" * 100] * 2,
    ],
)
def test_long_and_many_lines_of_evidence_can_be_read_again(
    tmp_path: Path, evidence: Sequence[str]
) -> None:
    write_explained(tmp_path / EXPLAINED, long_explanation(1_000, evidence=evidence))
    (one,) = read_explained(tmp_path / EXPLAINED).wakeups

    assert len(one.segments) + one.segments_left_out == 1_001
    assert evidence[0].startswith(one.segments[0].evidence[0].rstrip("…"))
    if len(evidence) > 64:
        assert one.segments[0].evidence[-1] == "and 2,936 more"


@pytest.mark.parametrize("field", ["name", "task", "callers", "functions"])
def test_a_name_without_end_can_be_read_again(tmp_path: Path, field: str) -> None:
    name = "n" * 70_000
    values: dict[str, Any] = {"callers": (name,), "functions": ((name, 5),)}
    changed: dict[str, Any] = {field: values.get(field, name)}
    one = replace(explanation().segments[0], **changed)
    whole = explained_run(run(), [Explanation(0, 1, one.duration_ns, (one,))])
    write_explained(tmp_path / EXPLAINED, whole.document)

    (segment,) = read_explained(tmp_path / EXPLAINED).wakeups[0].segments
    assert "n" * 1023 + "…" in str(getattr(segment, field))
