"""The plan of `rtscope sweep`, and what it refuses before it measures."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from fakes.sweepfile import FILE, one_line
from pages.jsonkeys import keys_without_words
from rtscope.boards.runs.store import Kind, Took
from rtscope.record.directory.records import open_records
from rtscope.verbs.sweep import plan as sweepplan

LEVELS = """
[[axis]]
name = "kernel"
level = [{ name = "none", kernel.names = ["debian-6.21"] }]
[[axis]]
name = "symbols"
level = [{ name = "HZ", kernel.config = "CONFIG_HZ_100=y" }]
[[axis]]
name = "setting"
level = [{ name = "ticks", target.tuned = "skewed_ticks" }]
"""


def test_a_dry_run_prints_the_cells_and_makes_nothing(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    said = rtscope("sweep", "ticks.toml", "--dry-run")

    assert said.status == 0
    assert "ticks: 3 cells, 24 runs" in said.err
    assert "that takes 9 seeds (--seeds 9)" in one_line(said.err)
    assert not list(Path().glob("**/campaign.json"))


def test_the_plan_of_a_dry_run_is_there_as_json(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    said = rtscope("sweep", "ticks.toml", "--only", "tick", "--dry-run", "--json")

    assert said.status == 0, said.err
    plan = json.loads(said.out)
    assert keys_without_words(plan, "rtscope sweep --dry-run --json") == []
    assert plan["cells"] == [
        {
            "number": 0,
            "name": "base",
            "levels": {},
            "directory": "000-base",
            "runs": 8,
            "loads": ["idle"],
            "kernels": ["debian-6.12-rt"],
            "virtual_ns": 8 * 12_000_000_000,
        },
        {
            "number": 1,
            "name": "tick: off",
            "levels": {"tick": "off"},
            "directory": "001-tick-off",
            "runs": 8,
            "loads": ["idle"],
            "kernels": ["debian-6.12-rt"],
            "virtual_ns": 8 * 12_000_000_000,
        },
    ]
    assert (plan["name"], plan["target"], plan["runs"]) == ("ticks", "pc", 16)
    assert (plan["seeds"], plan["needed_seeds"]) == ([1, 2, 3, 4, 5, 6, 7, 8], 8)
    assert (plan["effects"], plan["cells_left"]) == (4, 1)
    assert plan["virtual_ns"] == 16 * 12_000_000_000
    assert plan["kernels_from_source"] == []
    assert not list(Path().glob("**/campaign.json"))


def test_effects_of_earlier_parts_count_in_the_plan_of_another_part(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    """All parts are tested together, so that each needs the seeds of all."""
    rtscope("sweep", "ticks.toml", "--only", "tick", "--out", "out")

    said = rtscope("sweep", "--resume", "out", "--only", "CPUs", "--dry-run", "--json")

    assert said.status == 0, said.err
    plan = json.loads(said.out)
    assert [cell["name"] for cell in plan["cells"]] == ["base", "CPUs: one"]
    assert (plan["effects"], plan["needed_seeds"]) == (8, 9)
    takes = "a single real effect among 8: that takes 9 seeds"
    assert f"{takes} (a new sweep with --seeds 9)" in one_line(said.err)


def test_the_plan_estimates_host_time_from_boots_of_the_same_loads(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = [Took(Kind("pc", "idle", 12_000_000_000), host_s) for host_s in (50, 70)]
    monkeypatch.setattr(sweepplan, "earlier_boots", lambda _: took)
    jobs = ("--jobs", "2", "--dry-run")

    said = rtscope("sweep", "ticks.toml", *jobs)
    told = rtscope("sweep", "ticks.toml", *jobs, "--json")
    sweep_board.results = []
    rtscope("sweep", "ticks.toml", "--out", "out", "--only", "tick")
    rest = rtscope("sweep", "--resume", "out", "--jobs", "1", "--dry-run")
    whole = rtscope("sweep", "--resume", "out", "--only", "tick", "--dry-run")

    assert (
        "about 12 min on this machine with 2 boards at once, estimated from 2 earlier "
        "boots under the same loads; less if results are stored"
    ) in one_line(said.err)
    host = json.loads(told.out)["host"]
    assert host == {"seconds": 720.0, "runs": 2, "boards_at_once": 2}
    assert "16 runs measured already about 8 min" in one_line(rest.err)
    assert "about" not in whole.err


def test_without_such_boots_the_plan_estimates_no_host_time(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = [Took(Kind("jh7110", "idle", 12_000_000_000), 50.0)]
    monkeypatch.setattr(sweepplan, "earlier_boots", lambda _: took)

    said = rtscope("sweep", "ticks.toml", "--dry-run", "--json")

    assert "this machine" not in said.err
    assert json.loads(said.out)["host"] is None


def test_the_plan_of_a_machine_has_its_own_time_and_no_seeds(
    rtscope: Rtscope,
) -> None:
    said = rtscope("sweep", "survey-machine", "--dry-run", "--json")

    plan = json.loads(said.out)
    assert plan["target"] == "local"
    assert plan["duration_ns"] > 0
    assert "virtual_ns" not in plan
    assert (plan["seeds"], plan["needed_seeds"]) == ([], None)


def test_the_plan_counts_the_kernels_that_must_be_built(
    rtscope: Rtscope, sweep_board: FakeBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("cache").absolute()))
    base, _ = FILE.split("[[axis]]", 1)
    levels = ",".join(
        f'{{ name = "{hz}", kernel.config = "CONFIG_HZ_{hz}=y" }}' for hz in (100, 300)
    )
    made = base.replace("debian-6.12-rt", "pc-6.12-rt")
    Path("hz.toml").write_text(f'{made}[[axis]]\nname = "HZ"\nlevel=[{levels}]')

    said = rtscope("sweep", "hz.toml", "--dry-run")
    packaged = rtscope("sweep", "ticks.toml", "--dry-run")
    told = rtscope("sweep", "hz.toml", "--dry-run", "--json")
    cached = {(): True, ("CONFIG_HZ_100=y",): None}
    monkeypatch.setattr(
        sweepplan, "is_built_for", lambda one, _: cached.get(one.config, False)
    )
    mixed = rtscope("sweep", "hz.toml", "--dry-run")

    assert "3 kernels from source: 3 to build first" in one_line(said.err)
    assert (
        "3 kernels from source: 1 in the cache, 1 to build first (minutes to an hour "
        "each, less with ccache), 1 from your own tree or repository (built first if "
        "it has changed)"
    ) in one_line(mixed.err)
    assert [one["config"] for one in json.loads(told.out)["kernels_from_source"]] == [
        [],
        ["CONFIG_HZ_100=y"],
        ["CONFIG_HZ_300=y"],
    ]
    assert "from source" not in packaged.err


def test_a_plan_of_many_cells_is_not_listed_whole(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    levels = ",".join(
        f'{{ name = "loops {n}", kernel.append = "lpj={n}" }}' for n in range(1, 50)
    )
    base, _ = FILE.split("[[axis]]", 1)
    Path("many.toml").write_text(f'{base}[[axis]]\nname = "loops"\nlevel=[{levels}]')

    said = rtscope("sweep", "many.toml", "--dry-run")

    assert said.status == 0, said.err
    assert "50 cells" in said.err
    assert "   39 " in said.err
    assert "   40 " not in said.err
    assert "and 10 more cells" in said.err


def test_ones_own_qemu_is_refused_on_a_cluster_before_anything_is_made(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    text = FILE.replace("[base]", '[base]\ntarget.qemu = "./qemu"')
    Path("ticks.toml").write_text(text)
    Path("qemu").touch()
    on = ("--on", "tcp://127.0.0.1:9")

    said = rtscope("sweep", "ticks.toml", "--out", "out", *on)

    assert said.status == 2
    assert "target.qemu names a QEMU of this machine" in one_line(said.err)
    assert not Path("out").exists()
    assert rtscope("sweep", "ticks.toml", "--out", "out").status == 0


def test_workers_of_a_cluster_decide_how_many_boards_they_boot(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    on = ("--on", "tcp://127.0.0.1:9")

    said = rtscope("sweep", "ticks.toml", "--out", "out", "--jobs", "2", *on)

    assert said.status == 2
    assert "--jobs 2: each worker of a cluster boots as many boards as" in one_line(
        said.err
    )
    assert "--nthreads" in said.err
    assert not Path("out").exists()


@pytest.mark.parametrize("more", [("--dry-run",), ()])
def test_what_the_board_cannot_do_is_refused_before_the_plan_all_at_once(
    rtscope: Rtscope, sweep_board: FakeBoard, more: Sequence[str]
) -> None:
    Path("ticks.toml").write_text(FILE.replace('cpus = "1"', 'cpus = "5"') + LEVELS)

    said = rtscope("sweep", "ticks.toml", "--out", "out", *more)

    assert said.status == 2
    lines = [line.strip() for line in said.err.splitlines()]
    assert [line.split(":")[0] for line in lines if line[:6] != "ticks."] == [
        "rtscope",
        "CPUs",
        "kernel",
        "symbols",
        "setting",
    ]
    assert "virtual time" not in said.err
    assert not Path("out").exists()


def test_a_board_that_there_is_not_is_refused_before_its_stressors_are_listed(
    rtscope: Rtscope,
) -> None:
    said = rtscope("sweep", "survey", "--target", "virtual:pcc", "--dry-run")

    assert said.status == 2
    assert "survey: base: no such board: 'pcc'; did you mean 'pc'?" in one_line(
        said.err
    )


@pytest.mark.parametrize(
    ("words", "seeds"),
    [
        (("--seed", "7"), [7]),
        *(
            pytest.param(("--seeds", words), seeds, marks=pytest.mark.slow)
            for words, seeds in (("3", [1, 2, 3]), ("5,9", [5, 9]))
        ),
    ],
)
def test_seeds_replace_those_of_the_file_and_stay_after_an_interruption(
    rtscope: Rtscope, sweep_board: FakeBoard, words: Sequence[str], seeds: list[int]
) -> None:
    sweep_board.results = []

    said = rtscope("sweep", "ticks.toml", "--out", "out", *words)
    for record in Path().glob("out/cells/*/runs/*/record.json"):
        record.unlink()
    again = rtscope("sweep", "--resume", "out", "--json")

    assert said.status == again.status == 0, said.err
    for cell in json.loads(again.out)["cells"]:
        found = open_records(Path("out/cells") / cell["directory"])
        assert [record.run.seed for record in found] == seeds


def test_a_shipped_sweep_takes_other_seeds_too(rtscope: Rtscope) -> None:
    words = ("--target", "virtual:jh7110", "--kernel", "jh7110-6.12-rt")

    said = rtscope(
        "sweep",
        "price",
        *words,
        "--seeds",
        "8",
        "--only",
        "boot",
        "--dry-run",
        "--json",
    )

    assert said.status == 0, said.err
    plan = json.loads(said.out)
    assert plan["seeds"] == list(range(1, 9))
    assert plan["cells"][0]["runs"] == 3 * 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ticks.toml", "--seeds", "21"), "--seeds '21': write at most 20"),
        (("ticks.toml", "--seeds", "0"), "--seeds: 0: write 1 to"),
        (("ticks.toml", "--seeds", "1,1"), "--seeds: '1' occurs twice"),
        (("ticks.toml", "--seeds", "few"), "--seeds: 'few': write a whole number"),
        (("ticks.toml", "--seed", "-1"), "--seed: -1: write 0 to"),
        (("ticks.toml", "--seed", "1", "--seeds", "2"), "--seeds: excludes seed"),
        (("survey-machine", "--seeds", "2"), "--seeds: local has no random seeds"),
        (("remedies", "out", "--seeds", "2"), "leave out --seeds"),
        (("--resume", "out", "--seeds", "2"), "leave out --seeds"),
        (("--resume", "out", "--seed", "0"), "leave out --seed"),
    ],
)
def test_seeds_that_cannot_be_taken_are_refused(
    rtscope: Rtscope, sweep_board: FakeBoard, words: Sequence[str], message: str
) -> None:
    said = rtscope("sweep", *words, "--dry-run")

    assert said.status == 2
    assert message in one_line(said.err)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a sweep file"),
        (
            ["none.toml"],
            "cannot read sweep none.toml: no such file; rtscope itself has",
        ),
        (["ticks.toml", "--resume", "out"], "as it was started: leave out FILE"),
        (["--resume", "."], "no sweep there: it has no sweep.json; name the --out of"),
        (["ticks.toml", "--out", "."], "not empty"),
        (["ticks.toml", "--out", "ticks.toml"], "--out ticks.toml: not empty"),
    ],
)
def test_what_cannot_begin_is_refused(
    rtscope: Rtscope, sweep_board: FakeBoard, words: Sequence[str], message: str
) -> None:
    said = rtscope("sweep", *words)

    assert said.status == 2
    assert message in said.err
    assert "Traceback" not in said.err


def test_a_directory_with_a_sweep_is_refused_with_how_to_go_on(
    rtscope: Rtscope, sweep_board: FakeBoard
) -> None:
    rtscope("sweep", "ticks.toml", "--out", "out")

    said = rtscope("sweep", "ticks.toml", "--out", "out")

    assert said.status == 2
    assert "go on with the sweep in it: rtscope sweep --resume out" in one_line(
        said.err
    )
