import csv
import dataclasses
import json

import pytest

from fakes.measurements import machine, on_board, record, thread, ticks_of
from fakes.printed import render_text
from rtscope.contract import KernelThread, LoadEnd, LoadTick
from rtscope.host.errors import UsageError
from rtscope.present.documents.pages import render_html
from rtscope.present.documents.results import render_markdown
from rtscope.present.formats.data import render_csv, render_json
from rtscope.present.model.build import build_model
from rtscope.present.model.sections import alive_sentence
from rtscope.record.caveats.catalogue import Caveat, Effect
from rtscope.record.model import LoadRecord, RunRecord
from rtscope.stats.verdict import Claim


def with_load(run: RunRecord, **changes: object) -> RunRecord:
    return dataclasses.replace(run, load=dataclasses.replace(run.load, **changes))  # type: ignore[arg-type]


def two_loads() -> list[RunRecord]:
    idle = thread([4_000, 4_000, 6_000, 6_000], cpu=0)
    busy = thread([4_000, 60_000], cpu=2)
    return [
        with_load(record([busy], "memory"), argv=("x",), throughput={"vm": 1234.0}),
        record([idle], "idle"),
    ]


def test_rows_are_in_the_order_of_table_5_1_whatever_the_order_of_the_runs() -> None:
    loads = ["network", "storage", "idle", "memory", "custom", "cpu", "os"]
    rows = build_model([record([thread([4_000])], load) for load in loads]).rows

    assert [row.load for row in rows] == [
        *("idle", "cpu", "os", "memory", "storage"),
        *("network", "custom"),
    ]


def test_csv_has_microseconds_and_the_population_stdev_of_4_4_6_6_is_1() -> None:
    rows = list(csv.DictReader(render_csv(build_model(two_loads())).splitlines()))

    assert rows[0]["stdev_us"] == "1.000"
    assert (rows[1]["max_us"], rows[1]["avg_us"]) == ("60.000", "32.000")
    assert rows[1]["bogo_ops_per_s"] == "1234.00"
    assert rows[0]["p99.999_us"] == ""


def test_the_first_thing_said_is_the_maximum_and_where_it_was() -> None:
    headline = build_model(two_loads()).headline

    assert headline.maximum == "60.0 µs"
    assert "load memory, CPU 2" in headline.where
    assert (
        "At 95 % confidence, longer ones occur less than once per" in headline.support
    )


def test_the_worst_load_is_held_against_idle() -> None:
    findings = " ".join(build_model(two_loads()).findings)

    assert "The worst load is memory: its maximum is 10 times that of the idle" in (
        findings
    )
    assert "memory 1,234" in findings


def test_skipped_activations_are_a_finding_before_all_others() -> None:
    late = thread([4_000, 3_500_000], cpu=0)
    first = build_model([record([late], "os"), *two_loads()]).findings[0]

    assert first.startswith("3 missed periods")


def test_two_kernels_are_compared_by_their_maxima_and_not_called_a_test() -> None:
    runs = [
        record([thread([4_000, us * 1_000])], load, kernel=kernel)
        for load, kernel, us in [
            ("idle", "rt", 37),
            ("idle", "plain", 66),
            ("memory", "rt", 95),
            ("memory", "plain", 950),
        ]
    ]
    model = build_model(runs)

    assert [(row.load, row.variant) for row in model.rows] == [
        ("idle", "rt"),
        ("idle", "plain"),
        ("memory", "rt"),
        ("memory", "plain"),
    ]
    assert model.variant_kind == "kernel"
    assert model.findings[0] == (
        "plain has the higher maximum under idle (1.8 times) and memory (10 times) "
        "(observed maxima, no statistical test)."
    )


def test_repetitions_are_one_row_that_says_how_many() -> None:
    runs = [
        record([thread([us * 1_000] * 9)], repetition=i)
        for i, us in enumerate((5, 9), 1)
    ]
    (row,) = build_model(runs).rows

    assert row.runs == 2
    assert row.summary is not None
    assert (row.summary.samples, row.summary.max_ns) == (18, 9_000)
    assert row.observed_ns == 2 * 9_000_000


def test_an_interrupt_thread_that_eats_a_cpu_is_found() -> None:
    run = record([thread([4_000] * 1000)], "network")
    hog = KernelThread(39, "irq/39-dwc_otg", "irq", 1, 310_000_000)
    result = dataclasses.replace(
        run.result, machine=dataclasses.replace(machine(), kernel_threads=(hog,))
    )
    findings = build_model([dataclasses.replace(run, result=result)]).findings

    assert any("irq/39-dwc_otg used 31% of CPU 1 under network" in f for f in findings)


def test_caveats_are_merged_gravest_first_with_the_runs_that_have_them() -> None:
    runs = [
        record([thread([4_000])], "idle", caveats=[Caveat("governor", "powersave")]),
        record([thread([4_000])], "cpu", caveats=[Caveat("load_died", "after 3 s")]),
        record([thread([4_000])], "os", caveats=[Caveat("suspended")]),
    ]
    caveats = build_model(runs).caveats
    by_id = {caveat.id: caveat for caveat in caveats}

    effects = [caveat.effect for caveat in caveats]
    assert effects == sorted(effects, key=list(Effect).index)
    assert caveats[0].id == "suspended"
    assert by_id["governor"].runs == ("001-idle",)
    assert not by_id["governor"].everywhere
    assert by_id["short_run"].everywhere


def test_a_fact_that_is_known_to_be_empty_is_not_unknown() -> None:
    facts: dict[str, str | int | bool | None] = {
        "cpus_isolated": "",
        "smt_active": False,
        "swap": None,
    }
    (machine_told,) = build_model([record([thread([4_000])], facts=facts)]).machines
    rows = {fact.name: fact for fact in machine_told.facts}

    assert (rows["cpus_isolated"].value, rows["cpus_isolated"].raw) == ("none", "")
    assert (rows["smt_active"].value, rows["smt_active"].raw) == ("no", False)
    assert (rows["swap"].value, rows["swap"].raw) == ("", None)
    assert rows["swap"].why == "not readable"


def test_a_fact_that_changed_during_the_runs_says_so() -> None:
    runs = [
        record([thread([4_000])], load, facts={"governor": governor})
        for load, governor in (("idle", "performance"), ("cpu", "powersave"))
    ]
    (machine_told,) = build_model(runs).machines
    (fact,) = (fact for fact in machine_told.facts if fact.name == "governor")

    assert (fact.value, fact.others) == ("performance", ("powersave",))


def test_an_invalid_run_supports_nothing_and_is_the_first_finding() -> None:
    runs = [record([thread([9_000])], "os", caveats=[Caveat("suspended")])]
    model = build_model([*runs, record([thread([4_000])], "idle")])

    assert model.headline.support == (
        "No conclusion: the run is not valid, see the caveats."
    )
    assert model.findings[0] == "The numbers of os are not valid: see the caveats."


def test_a_capped_run_supports_its_exposure_at_most() -> None:
    model = build_model([record([thread([9_000])], facts={"guest": True})])

    assert model.headline.support.endswith("Caveats may weaken this.")


def test_a_deadline_gives_a_verdict_and_without_one_there_is_none() -> None:
    assert build_model(two_loads()).verdict is None
    verdict = build_model(
        two_loads(), deadline_ns=50_000, claim=Claim(1, 3_600_000_000_000)
    ).verdict

    assert verdict is not None
    assert (verdict.word, verdict.tone, verdict.exit_status) == ("NO", "bad", 1)
    assert verdict.loads[0].name == "memory"


def test_an_advice_that_two_loads_share_is_given_once_behind_both() -> None:
    runs = [
        record([thread([4_000] * 1_000 + [max_ns])], load)
        for load, max_ns in (("memory", 60_000), ("idle", 6_000))
    ]
    held = build_model(runs, deadline_ns=100_000).verdict
    missed = build_model(runs, deadline_ns=50_000).verdict

    assert held is not None
    assert missed is not None
    assert len(held.loads) == len(missed.loads) == 2
    first, second = (load.run_next for load in held.loads)
    assert first == ""
    assert "--claim" in second
    assert all(load.run_next for load in missed.loads)


def test_a_run_without_a_sample_is_no_measurement_and_not_a_zero() -> None:
    model = build_model([record([thread([], activations=5)], "idle")])

    assert model.rows[0].summary is None
    assert model.headline.maximum == "no measurement"
    assert json.loads(render_json(model))["rows"][0]["summary"] is None
    assert model.comparison is None
    assert model.sections[0].charts == ()


def test_no_record_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="no run"):
        build_model([])


def test_json_has_digest_schema_and_unresolved_percentiles_as_null() -> None:
    runs = two_loads()
    told = json.loads(render_json(build_model(runs)))

    assert told["schema"] == 2
    assert [r["result_digest"] for r in told["runs"]] == [r.result_digest for r in runs]
    assert told["rows"][0]["summary"]["stdev_ns"] == 1000.0
    assert told["rows"][0]["summary"]["percentiles"]["p99.999"] is None
    assert told["verdict"] is None


def load_of(*cpu_ns: int, asked: bool = True, each_s: int = 1) -> LoadRecord:
    return LoadRecord(
        name="cpu",
        argv=("stress-ng",),
        version=None,
        ticks=tuple(
            LoadTick((9_000 + at * each_s) * 1_000_000_000, processes=3, cpu_ns=cpu)
            for at, cpu in enumerate(cpu_ns)
        ),
        end=LoadEnd(
            status=0,
            signal=None,
            stop_requested=asked,
            killed=0,
            oom_kills=None,
            cpu_ns=5,
        ),
        throughput={},
    )


def test_the_proof_of_the_load_counts_the_checks_in_which_it_grew() -> None:
    assert "grew in 2 of 3 checks, one per second" in alive_sentence(load_of(1, 1, 2))
    assert "in 1 of 1 checks, one per second" in alive_sentence(load_of(1))
    assert "one in 4 s" in alive_sentence(load_of(1, 1, 2, each_s=4))
    assert "ended by itself" in alive_sentence(load_of(1, asked=False))
    assert alive_sentence(load_of()) == "No evidence that the load ran."


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_terminal_report_keeps_to_the_width_and_has_no_escapes(width: int) -> None:
    text = render_text(build_model(two_loads(), deadline_ns=50_000), width=width)

    assert all(len(line) <= width for line in text.splitlines())
    assert "\x1b" not in text


def test_the_terminal_table_leads_with_the_maximum() -> None:
    lines = render_text(build_model(two_loads()), width=120).splitlines()
    heading = next(line for line in lines if line.startswith("load"))

    assert heading.split() == [
        *("load", "max", "samples", "missed", "caveats", "p99.9", "p99.999"),
        *("min", "avg", "stdev", "bogo-ops/s"),
    ]
    assert next(line for line in lines if line.startswith("memory")).split()[:3] == [
        *("memory", "60.0", "2")
    ]


HOSTILE = "\x1b]0;own\x07[red]<script>alert(1)</script>|`x`=cmd\u202e"


def hostile_runs() -> list[RunRecord]:
    t = thread([4_000, 5_000_000] * 200, cpu=0)
    run = record(
        [t],
        HOSTILE,
        target="=" + HOSTILE,
        kernel=HOSTILE,
        facts={"machine_model": HOSTILE, HOSTILE: HOSTILE, "cpu_model": None},
        caveats=[Caveat("kernel_warning", HOSTILE), Caveat("<b>new", HOSTILE)],
        ticks=ticks_of([t], temp_mc={HOSTILE: 50_000}),
    )
    hog = KernelThread(1, HOSTILE, "irq", 0, 10**12)
    return [
        dataclasses.replace(
            with_load(run, argv=(HOSTILE,), version=HOSTILE, throughput={HOSTILE: 1.0}),
            run=dataclasses.replace(run.run, id="001-x"),
            command=(HOSTILE,),
            result=dataclasses.replace(
                run.result,
                machine=dataclasses.replace(machine(), kernel_threads=(hog,)),
            ),
        )
    ]


def test_a_hostile_record_reaches_no_form_of_the_report_unescaped() -> None:
    model = build_model(hostile_runs(), deadline_ns=50_000)
    forms = {
        "text": render_text(model),
        "markdown": render_markdown(model),
        "csv": render_csv(model),
        "json": render_json(model),
    }

    for form in forms.values():
        assert not {"\x1b", "\x07", "\u202e"} & set(form)
    assert not [
        line
        for line in forms["markdown"].splitlines()
        if "<script>" in line.replace("\\<", "") and not line.startswith("    ")
    ]
    assert "\n=" not in forms["csv"]
    assert ",=" not in forms["csv"]
    assert "[red]" in forms["text"]
    assert json.loads(forms["json"])["schema"] == 2


def test_a_virtual_time_never_passes_for_that_of_a_board() -> None:
    real = record([thread([5_000, 7_000])])
    virtual = on_board(real)

    assert build_model([real]).headline.maximum == "7.00 µs"
    assert build_model([virtual]).headline.maximum == "7.00 virtual µs"
    assert "Latencies in virtual µs." in render_text(build_model([virtual]))
    assert "in virtual microseconds" in render_html(build_model([virtual]))
