"""A sweep's cells: the base, and what changes it."""

from pathlib import Path
from typing import Any

import pytest

from rtscope.host.errors import UsageError
from rtscope.measure.campaign.model import Campaign
from rtscope.stats.comparison.design import needed_pairs
from rtscope.verbs.sweep.design import Cell, cells_of, chosen_cells
from rtscope.verbs.sweep.effects import FIGURES
from rtscope.verbs.sweep.file import (
    Survey,
    document_of,
    load_shipped,
    load_sweep,
    on_board,
    placed,
    shipped_sweeps,
    sweep_of,
    with_stressors,
)

EXAMPLES = Path(__file__).parents[2] / "examples" / "sweeps"

BASE: dict[str, Any] = {
    "target": {"address": "virtual:pc"},
    "kernel": {"names": ["debian-6.12-rt"], "append": "quiet"},
    "campaign": {"seeds": 3},
    "run": [{"load": ["idle"], "duration": "2s"}, {"load": ["cpu"], "cpus": "1"}],
}
TICK = {"name": "tick", "level": [{"name": "off", "kernel": {"append": "nohz=off"}}]}
RR = {"name": "rr", "run": {"policy": "rr"}}
POLICY = {
    "name": "policy",
    "level": [
        RR,
        {"name": "other", "run": {"policy": "other"}},
    ],
}


def cells(*axes: dict[str, Any], design: str = "one", **base: Any) -> tuple[Cell, ...]:
    document = {
        "sweep": {"design": design},
        "base": BASE | base,
        "axis": list(axes),
    }
    return cells_of(sweep_of(document, source="my.toml"))


def names(*axes: dict[str, Any], design: str) -> list[str]:
    return [cell.name for cell in cells(*axes, design=design)]


def test_each_design_has_its_combinations_the_base_first() -> None:
    single = ["base", "tick: off", "policy: rr", "policy: other"]
    both = ["tick: off + policy: rr", "tick: off + policy: other"]

    assert names(TICK, POLICY, design="one") == single
    assert names(TICK, POLICY, design="pairs") == single + both
    assert sorted(names(TICK, POLICY, design="full")) == sorted(single + both)
    assert names(TICK, POLICY, design="full")[0] == "base"


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        (["tick"], ["base", "tick: off"]),
        (["policy: r*"], ["base", "policy: rr"]),
        (["o*"], ["base", "tick: off", "policy: other", "tick: off + policy: other"]),
    ],
)
def test_a_cell_is_chosen_if_all_its_changes_are(
    patterns: list[str], chosen: list[str]
) -> None:
    whole = cells(TICK, POLICY, design="pairs")

    assert [one.name for one in chosen_cells(whole, patterns, source="x")] == chosen


def test_a_level_changes_its_keys_and_adds_to_the_kernels_parameters() -> None:
    base, tick, rr, _ = (cell.campaign for cell in cells(TICK, POLICY))

    assert base.append == ("quiet",)
    assert tick.append == ("quiet", "nohz=off")
    assert tick.runs == base.runs
    assert [run.policy_names for run in rr.runs] == [("rr",), ("rr",)]
    assert [run.loads for run in rr.runs] == [("idle",), ("cpu",)]
    assert rr.runs[1].cpus == (1,)


def test_a_level_that_names_loads_keeps_of_each_table_those_that_it_has() -> None:
    level = {"name": "few", "kernel": {"append": "nohz=off"}}
    tables = [
        {"load": ["idle", "os"], "duration": "2s", "interval": "10ms"},
        {"load": ["os", "cpu"], "duration": "1s", "interval": "1ms"},
        {"load": ["memory"], "duration": "3s", "interval": "1ms"},
    ]
    axis = {"name": "a", "level": [{**level, "run": {"load": ["cpu", "os"]}}]}

    _, few = (cell.campaign for cell in cells(axis, run=tables))

    assert [(run.loads, run.intervals_ns) for run in few.runs] == [
        (("os",), (10_000_000,)),
        (("cpu", "os"), (1_000_000,)),
    ]


def test_what_a_cell_changes_is_told_for_each_load_by_itself() -> None:
    tables = [
        {"load": ["idle"], "interval": "10ms"},
        {"load": ["os"], "interval": "1ms", "policy": ["rr", "other"]},
    ]
    slow = {"name": "slow", "run": {"interval": "20ms"}}
    fifo = {"name": "fifo", "run": {"policy": "fifo"}}
    idle = {"name": "idle", "run": {"policy": "rr", "load": "idle"}}

    assert len(cells({"name": "a", "level": [slow, idle]}, run=tables)) == 3
    with pytest.raises(UsageError, match="under os: changes the policies to fifo"):
        cells({"name": "a", "level": [fifo]}, run=tables)


def test_settings_and_symbols_are_added_to_those_of_the_base() -> None:
    moved = {
        "name": "moved",
        "target": {"tuned": ["irq_affinity", "workqueues"]},
        "run": {"cpus": "1"},
    }
    slow = {"name": "100 Hz", "kernel": {"config": "CONFIG_HZ_100=y"}}
    axis = {"name": "all", "level": [moved, slow]}
    base, tuned, built = (
        cell.campaign
        for cell in cells(
            axis,
            target={"address": "virtual:pc", "tuned": "workqueues"},
            kernel={"names": ["pc-6.12-rt"], "config": ["CONFIG_NUMA=n"]},
        )
    )

    assert base.tuned == built.tuned == ("workqueues",)
    assert tuned.tuned == ("workqueues", "irq_affinity")
    assert tuned.runs[0].cpus == (1,)
    assert base.config == tuned.config == ("CONFIG_NUMA=n",)
    assert built.config == ("CONFIG_NUMA=n", "CONFIG_HZ_100=y")


@pytest.mark.parametrize("symbol", ["HZ_100=y", "CONFIG_HZ_100", "CONFIG_X=$(id)"])
def test_what_is_no_symbol_is_refused_with_an_example(symbol: str) -> None:
    level = {"name": "x", "kernel": {"config": [symbol]}}

    with pytest.raises(UsageError, match="such as CONFIG_HZ_1000=y"):
        cells({"name": "a", "level": [level]})


def test_a_cell_has_a_directory_that_any_file_system_takes() -> None:
    odd = {
        "name": "a/b",
        "level": [{"name": "x = 1,2 " + "y" * 60, "kernel": {"append": "a=b"}}],
    }

    assert cells(odd)[1].directory.startswith("001-a-b-x-1-2-yyy")
    assert len(cells(odd)[1].directory) <= 64
    assert cells(odd)[0].directory == "000-base"


@pytest.mark.parametrize(
    ("axis", "base", "message"),
    [
        ({"name": "t", "level": []}, {}, "axis.0.level: "),
        ({"name": "t", "level": [{"name": "x", "runs": {}}]}, {}, "axis.0.level.0"),
        ({"name": "t", "level": [{"name": "x"}]}, {}, "t: x is the same as base"),
        (
            {"name": "t", "level": [{"name": "x", "run": {"lod": "a"}}]},
            {},
            "my.toml: t: x: .*no such key: 'lod'",
        ),
        (
            {"name": "t", "level": [{"name": "x", "campaign": {"seeds": 4}}]},
            {},
            "t: x: has other seeds than the base",
        ),
        (
            {"name": "t", "level": [{"name": "x", "target": {"address": "local"}}]},
            {"kernel": {}, "campaign": {}},
            "t: x: is of another board than the base",
        ),
        (POLICY, {"target": {}, "kernel": {}, "campaign": {}}, "write a virtual board"),
        (POLICY, {"campaign": {"seeds": 21}}, "write at most 20"),
        (
            {"name": "t", "level": [RR, RR]},
            {},
            "'rr' occurs twice",
        ),
    ],
)
def test_what_is_no_sweep_is_refused_with_its_place(
    axis: dict[str, Any], base: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        cells(axis, **base)


def test_the_base_without_changes_is_the_campaign_itself() -> None:
    assert cells(POLICY)[0].campaign == Campaign(
        target="virtual:pc",
        kernels=("debian-6.12-rt",),
        append=("quiet",),
        seeds=(1, 2, 3),
        runs=cells(POLICY)[0].campaign.runs,
    )


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda p: p.stem)
def test_each_example_is_a_sweep_whose_effects_can_be_found(path: Path) -> None:
    made = cells_of(load_sweep(path))

    tests = (len(made) - 1) * len(made[0].campaign.loads) * len(FIGURES)
    assert len(made[0].campaign.run_seeds) >= needed_pairs(tests)
    assert f"rtscope sweep examples/sweeps/{path.name}" in path.read_text()


@pytest.mark.parametrize("name", ["price", "preemption", "preemption-jh7110"])
def test_a_shipped_sweep_has_seeds_enough_for_a_single_effect(name: str) -> None:
    made = cells_of(load_shipped(name))

    tests = (len(made) - 1) * len(made[0].campaign.loads) * len(FIGURES)
    assert len(made[0].campaign.run_seeds) >= needed_pairs(tests)


SURVEY: dict[str, Any] = {"base": BASE, "survey": {}}


def test_a_survey_measures_its_stressors_as_loads_of_the_base() -> None:
    survey = sweep_of(SURVEY, source="my.toml")

    (cell,) = cells_of(with_stressors(survey, ["set", "fork"]))

    usual, cpu, stressed = cell.campaign.runs
    assert (usual.loads, cpu.loads) == (("idle",), ("cpu",))
    assert stressed.loads == ("stress-ng:fork", "stress-ng:set")
    assert stressed.durations_ns == usual.durations_ns


def test_a_survey_takes_what_is_named_and_leaves_out_what_is_not_wanted() -> None:
    named = {"stressors": ["fork", "set"], "leave_out": ["set"]}
    survey = sweep_of({"base": BASE, "survey": named}, source="my.toml")

    found = with_stressors(survey, ["cpu", "vm"])

    assert found.survey == Survey(("fork",))
    assert sweep_of(document_of(found), source="my.toml") == found
    with pytest.raises(UsageError, match="leaves no stressor"):
        with_stressors(sweep_of(SURVEY, source="my.toml"), [])


@pytest.mark.parametrize(
    "document", [{"base": BASE}, {"base": BASE, "survey": {}, "axis": [TICK]}]
)
def test_a_sweep_has_either_axes_or_a_survey(document: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"write \[\[axis\]\] .* or \[survey\]"):
        sweep_of(document, source="my.toml")


def test_what_is_shipped_is_a_valid_sweep() -> None:
    assert "survey" in shipped_sweeps()
    for name in shipped_sweeps():
        sweep = load_shipped(name)
        cells_of(with_stressors(sweep, ["fork"]) if sweep.survey else sweep)


def test_another_board_and_kernels_take_the_place_of_the_bases() -> None:
    sweep = on_board(
        load_shipped("survey"), target="virtual:jh7110", kernels=["a", "b"]
    )

    assert sweep.base["target"]["address"] == "virtual:jh7110"
    assert sweep.base["kernel"]["names"] == ["a", "b"]


def test_paths_of_base_and_levels_are_taken_from_the_files_directory() -> None:
    level = {"name": "mine", "kernel": {"names": ["./out/Image", "debian-6.12"]}}
    document = {
        "base": BASE | {"campaign": {"seeds": 3, "guest_files": ["tool"]}},
        "axis": [{"name": "kernel", "level": [level]}],
    }

    found = placed(sweep_of(document, source="x"), Path("/there"))

    assert found.base["campaign"]["guest_files"] == ["/there/tool"]
    assert found.base["kernel"] == BASE["kernel"]
    assert found.axes[0].level[0].kernel["names"] == ["/there/out/Image", "debian-6.12"]


def test_a_sweep_that_requires_identical_results_is_refused() -> None:
    gate = {"seeds": 3, "require_identical": True}
    run = [{"load": ["idle"], "duration": "2s", "repetitions": 2}]

    with pytest.raises(UsageError, match="require_identical: leave it out"):
        cells(TICK, campaign=gate, run=run)


@pytest.mark.parametrize("run", [3, ["idle"], {"load": "idle"}])
def test_a_survey_of_what_is_no_campaign_is_refused(run: object) -> None:
    document = {"base": BASE | {"run": run}, "survey": {"stressors": ["fork"]}}

    with pytest.raises(UsageError, match=r"my\.toml"):
        with_stressors(sweep_of(document, source="my.toml"), [])


@pytest.mark.parametrize(
    ("level", "base", "message"),
    [
        ({"run": {"load": "memory"}}, {}, "changes the loads to memory"),
        (
            {"kernel": {"names": ["debian-6.1"]}},
            {"kernel": {"names": ["debian-6.12-rt", "debian-6.12"]}},
            "changes the kernels to debian-6.1, and the base has no run to compare",
        ),
        (
            {"run": {"policy": ["rr", "other"]}},
            {},
            "changes the policies to other, rr",
        ),
        (
            {"run": {"interval": ["250us", "500us"]}},
            {},
            "changes the intervals to 250 us, 500 us",
        ),
    ],
)
def test_a_cell_that_nothing_can_be_compared_with_is_refused(
    level: dict[str, Any], base: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        cells({"name": "a", "level": [{"name": "b", **level}]}, **base)


@pytest.mark.parametrize(
    "level",
    [
        {"kernel": {"names": ["debian-6.12"]}},
        {"run": {"policy": "rr", "interval": "500us"}},
        {"run": {"load": "idle"}, "kernel": {"append": "nohz=off"}},
    ],
)
def test_a_cell_may_change_a_part_or_leave_one_out(level: dict[str, Any]) -> None:
    assert len(cells({"name": "a", "level": [{"name": "b", **level}]})) == 2


@pytest.mark.parametrize(
    ("level", "base"),
    [
        ({"run": {"load": "idle"}}, {"run": [{"load": ["idle", "os"]}]}),
        ({"run": {"policy": "rr"}}, {"run": [{"policy": ["fifo", "rr"]}]}),
    ],
)
def test_a_cell_whose_runs_are_runs_of_the_base_is_refused(
    level: dict[str, Any], base: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match="changes nothing: all its runs are runs of"):
        cells({"name": "a", "level": [{"name": "b", **level}]}, **base)


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ({"kernel": {"append": {"nohz": "off"}}}, "append"),
        ({"kernel": {"append": 5}}, "append"),
        ({"target": {"tuned": 5}}, "tuned"),
    ],
)
def test_what_is_no_list_of_words_is_refused_and_not_left_out(
    level: dict[str, Any], message: str
) -> None:
    mixed = {"name": "b", "run": {"policy": "rr"}, **level}
    with pytest.raises(UsageError, match=message):
        cells({"name": "a", "level": [mixed]})
