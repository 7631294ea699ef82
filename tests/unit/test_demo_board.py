"""The script with which a virtual board runs a demonstration."""

from rtscope.verbs.demo.board import script_of
from rtscope.verbs.demo.model import Scenario, demos


def test_a_board_runs_each_case_between_two_looks_at_its_settings() -> None:
    demo = demos()[Scenario.THROTTLE]
    lines = list(script_of(demo, 1))

    reads = [n for n, line in enumerate(lines) if line.startswith("rtscope-agent read")]
    cases = [n for n, line in enumerate(lines) if line.startswith("rtscope-agent demo")]
    assert [lines[n].rpartition("/")[2] for n in reads] == [
        "facts.jsonl",
        "facts-after.jsonl",
    ]
    assert [lines[n].rpartition("/")[2] for n in cases] == [
        f"demo-{case.name}.jsonl" for case in demo.cases
    ]
    assert reads[0] < lines.index("sleep 10") < cases[0] < cases[-1] < reads[1]
    assert all("--cpus 1 " in lines[n] for n in cases)


def test_settings_of_a_case_are_put_back_before_the_next_one() -> None:
    demo = demos()[Scenario.THROTTLE]
    lines = list(script_of(demo, 3))
    first, second, third = (
        n for n, line in enumerate(lines) if line.startswith("rtscope-agent demo")
    )

    assert "apply" not in lines[first - 1]
    assert "--set rt_runtime_us:0=-1 >" in lines[second - 1]
    assert "restore --applied" in lines[second + 1]
    assert "--set rt_runtime_us:0=-1 --set fair_server:3=0 >" in lines[third - 1]
    assert "restore --applied" in lines[third + 1]
