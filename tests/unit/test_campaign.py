"""Campaigns: each value is checked once, in the same words wherever it came from."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtscope.campaign import (
    MAX_FILE_BYTES,
    TABLES,
    Campaign,
    RunTable,
    default_campaign,
    from_dict,
    kernels_by_label,
    load_campaign,
    to_dict,
    with_options,
    with_places,
)
from rtscope.errors import UsageError
from rtscope.loads import load_names

S = 1_000_000_000
EXAMPLES = Path(__file__).parents[2] / "examples"

FULL = """
[campaign]
name = "Everything"
order = "blocked"
settle = "3m"
warmup = "2s"
deadline = "200us"
claim = "1/1h"
min_boots = 3
seeds = [7, 9]
require_identical = true
worst = 8
explain = true
deadline_runtime = "50us"
command = ["iperf3", "-c", "host"]
files = ["/data/iperf3"]

[target]
address = "virtual:vf2"
qemu = "/opt/qemu"
locked = "/lab/packages.json"
governor = "performance"
hold_cpu_awake = true
rt_throttling = "off"
storage_dir = "/data"

[kernel]
names = ["debian-6.12", "./bzImage, mine"]

[[run]]
load = ["idle", "custom"]
duration = ["10m", "1h"]
policy = ["fifo", "other"]
priority = [80, 99]
interval = "500us"
repetitions = 2
cpus = "0-2"

[[run]]
load = "cpu"
policy = "deadline"
repetitions = 2
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "my.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(document: Any) -> str:
    with pytest.raises(UsageError) as caught:
        from_dict(document, source="my.toml")
    return str(caught.value)


def refused_option(**given: object) -> str:
    with pytest.raises(UsageError) as caught:
        with_options(default_campaign(), **given)
    return str(caught.value)


def test_the_default_is_this_machine_under_the_five_loads() -> None:
    campaign = default_campaign()

    assert campaign.target == "local"
    assert campaign.kernels == ()
    assert campaign.loads == ("idle", "cpu", "os", "memory", "storage")
    (run,) = campaign.runs
    assert run.durations_ns == (20 * S,)
    assert run.intervals_ns == (200_000,)
    assert run.policies == (("fifo", 99),)
    assert (run.repetitions, run.cpus) == (1, None)
    assert (campaign.settling_ns, campaign.warmup_ns, campaign.worst) == (0, S, 16)


def test_a_file_gives_every_value(tmp_path: Path) -> None:
    assert load_campaign(write(tmp_path, FULL)) == Campaign(
        name="Everything",
        target="virtual:vf2",
        kernels=("debian-6.12", "./bzImage, mine"),
        qemu="/opt/qemu",
        locked="/lab/packages.json",
        files=("/data/iperf3",),
        runs=(
            RunTable(
                loads=("idle", "custom"),
                durations_ns=(600 * S, 3600 * S),
                policy_names=("fifo", "other"),
                priorities=(80, 99),
                intervals_ns=(500_000,),
                repetitions=2,
                cpus=(0, 1, 2),
            ),
            RunTable(loads=("cpu",), policy_names=("deadline",), repetitions=2),
        ),
        order="blocked",
        settle_ns=180 * S,
        warmup_ns=2 * S,
        deadline_ns=200_000,
        claim=(1, 3600 * S),
        min_boots=3,
        seeds=(7, 9),
        require_identical=True,
        worst=8,
        explain=True,
        deadline_runtime_ns=50_000,
        command=("iperf3", "-c", "host"),
        governor="performance",
        hold_cpu_awake=True,
        rt_throttling="off",
        storage_dir="/data",
    )


def test_an_empty_file_is_the_default(tmp_path: Path) -> None:
    assert load_campaign(write(tmp_path, "")) == default_campaign()


def test_only_policies_with_a_priority_get_one() -> None:
    run = RunTable(policy_names=("fifo", "other", "rr"), priorities=(80, 90))

    assert run.policies == (
        ("fifo", 80),
        ("fifo", 90),
        ("other", 0),
        ("rr", 80),
        ("rr", 90),
    )


def test_a_full_campaign_goes_through_json_unchanged(tmp_path: Path) -> None:
    campaign = load_campaign(write(tmp_path, FULL))

    document = json.loads(json.dumps(to_dict(campaign)))

    assert from_dict(document, source="record") == campaign


def test_the_default_goes_through_json_unchanged() -> None:
    document = json.loads(json.dumps(to_dict(default_campaign())))

    assert from_dict(document, source="record") == default_campaign()


def test_every_field_of_a_campaign_has_a_key() -> None:
    fields = {key.field for keys in TABLES.values() for key in keys.values()}

    assert fields == {
        *(f for f in Campaign.__dataclass_fields__ if f != "runs"),
        *RunTable.__dataclass_fields__,
    }
    assert all(key.says for keys in TABLES.values() for key in keys.values())


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda p: p.stem)
def test_each_example_is_a_campaign_and_says_what_for(path: Path) -> None:
    assert load_campaign(path).runs
    assert path.read_text().startswith("# What for: ")


def test_starfives_campaign_is_theirs() -> None:
    campaign = load_campaign(EXAMPLES / "starfive.toml")

    (run,) = campaign.runs
    assert run.loads == ("idle", "cpu", "os", "memory", "storage")
    assert (run.durations_ns, run.intervals_ns) == ((600 * S,), (200_000,))
    assert (campaign.settle_ns, campaign.governor) == (180 * S, "performance")


def test_the_raspberry_pi_campaign_has_50_million_cycles() -> None:
    (run,) = load_campaign(EXAMPLES / "raspberry-pi.toml").runs

    assert run.durations_ns[0] // run.intervals_ns[0] == 50_000_000
    assert run.policies == (("fifo", 90),)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read campaign .*No such file"):
        load_campaign(tmp_path / "none.toml")


@pytest.mark.parametrize(
    "content",
    [
        b"[campaign",
        b"\xff\xfe",
        b"a = 1\na = 2",
        b"a = " + b"9" * 5000,
        b"a = " + b"[" * 100_000,
    ],
)
def test_what_is_no_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(content)

    with pytest.raises(UsageError, match=r"my\.toml: not valid TOML"):
        load_campaign(path)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "#" * (MAX_FILE_BYTES + 1))

    with pytest.raises(UsageError, match="larger than 1 MiB"):
        load_campaign(path)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "my.toml: nothing where a table is expected"),
        ([], "my.toml: a list where a table is expected"),
        ({3: {}}, "my.toml: a table where a table is expected"),
        ({"runs": []}, "my.toml: no such table: 'runs'; did you mean 'run'?"),
        ({"campaign": 3}, "my.toml: [campaign]: 3 where a table is expected"),
        ({"kernel": {"name": "x"}}, "[kernel]: no such key: 'name'; did you mean"),
        ({"run": [{}, {"lod": "x"}]}, "[[run]] number 2: no such key: 'lod'; did you"),
        ({"run": {}}, "my.toml: [run]: a table: write 1 to 1000 tables"),
        ({"run": []}, "my.toml: [run]: a list: write 1 to 1000 tables"),
        ({"run": [{}] * 1001}, "my.toml: [run]: a list: write 1 to 1000 tables"),
        ({"run": [3]}, "[[run]] number 1: 3 where a table is expected"),
    ],
)
def test_a_document_of_another_shape_is_refused_with_its_place(
    document: object, message: str
) -> None:
    assert message in refused(document)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("load", "memroy", "number 1 load: no such load: 'memroy'; did you mean"),
        ("load", 3, "load: 3 is no text; write it in quotes"),
        ("load", [], "load: write 1 to 1000 values"),
        ("load", ["cpu"] * 1001, "load: write 1 to 1000 values"),
        ("load", ["idle", "cpu", "idle"], "load: 'idle' is there twice"),
        ("load", "idle,,cpu", "load: write 1 to 4096 characters"),
        ("load", "x" * 5000, "load: write 1 to 4096 characters"),
        ("load", "a\x1b[31m", "has control characters"),
        ("duration", "200", "duration: 200: no unit; write 200us, 200ms or 200s"),
        ("duration", 600, 'duration: 600: write a text such as "10m"'),
        ("duration", 1.5, 'duration: 1.5: write a text such as "10m"'),
        ("duration", None, 'duration: nothing: write a text such as "10m"'),
        ("duration", {}, 'duration: a table: write a text such as "10m"'),
        ("duration", "500ms", "duration: '500ms': write 1s to 366d"),
        ("duration", "367d", "write 366d or less"),
        ("duration", ["1m", "60s"], "duration: '60s' is there twice"),
        ("interval", "9us", "interval: '9us': write 10us to 10s"),
        ("interval", "11s", "interval: '11s': write 10us to 10s"),
        ("interval", "0s", "more than 0"),
        ("policy", "fif", "policy: no such policy: 'fif'; did you mean 'fifo'?"),
        ("priority", 0, "priority: 0: write 1 to 99"),
        ("priority", 100, "priority: 100: write 1 to 99"),
        ("priority", "80", "priority: '80': write a whole number, 1 to 99"),
        ("priority", True, "priority: true: write a whole number, 1 to 99"),
        ("priority", 10**400, "priority: a huge number: write 1 to 99"),
        ("repetitions", 0, "repetitions: 0: write 1 to 10000"),
        ("repetitions", 10_001, "repetitions: 10001: write 1 to 10000"),
        ("repetitions", [1, 2], "repetitions: a list: write a whole number"),
        ("cpus", "", "cpus: '': not a CPU list; write 0-3"),
        ("cpus", 0, 'cpus: 0: write a text such as "0-3"'),
        ("cpus", "0-9999", "there is no CPU 9999"),
    ],
)
def test_a_wrong_value_of_a_run_is_refused_with_what_to_write(
    key: str, value: object, message: str
) -> None:
    said = refused({"run": [{key: value}]})

    assert said.startswith(f"my.toml: [[run]] number 1 {key}: ")
    assert message in said


@pytest.mark.parametrize(
    ("table", "key", "value", "message"),
    [
        ("campaign", "name", "", "write 1 to 4096 characters"),
        ("campaign", "order", "random", "no such order: 'random'"),
        ("campaign", "settle", "25h", "write 0s to 1d"),
        ("campaign", "warmup", "2h", "write 0s to 1h"),
        ("campaign", "warmup", "0ms", "more than 0"),
        ("campaign", "deadline", "0us", "a duration must be more than 0"),
        ("campaign", "deadline", "0", "0: no unit"),
        ("campaign", "claim", "0/1h", "no test can show that there are none"),
        ("campaign", "min_boots", 0, "write 1 to 10000"),
        ("campaign", "seed", -1, "write 0 to"),
        ("campaign", "worst", 0, "write 1 to 64"),
        ("campaign", "command", [], "write a command such as"),
        ("campaign", "command", "", "write a command such as"),
        ("campaign", "command", 3, "write a command such as"),
        ("campaign", "command", "sh -c 'x", "a quote is not closed"),
        ("campaign", "command", ["a", 3], "each word is a text in quotes"),
        ("campaign", "command", ["a\0"], "each word is a text in quotes"),
        ("campaign", "command", ["", "x"], "the first word is the program"),
        ("target", "address", "lokal", "write local, ssh:HOST or virtual:BOARD"),
        ("target", "address", "local:x", "write local, ssh:HOST"),
        ("target", "address", "ssh:", "write local, ssh:HOST"),
        ("target", "address", "ssh:-oProxyCommand=sh", "does not begin with '-'"),
        ("target", "address", "ssh:root@-oProxyCommand=sh", "does not begin with '-'"),
        ("target", "address", "ssh:a b", "write local, ssh:HOST"),
        ("target", "address", "ssh:a;b", "write local, ssh:HOST"),
        ("target", "address", "ssh:a\nb", "control characters"),
        ("target", "address", "ssh:" + "a" * 256, "write local, ssh:HOST"),
        ("target", "address", "virtual:-x", "write local, ssh:HOST"),
        ("target", "address", "virtual:../x", "write local, ssh:HOST"),
        ("target", "governor", "Performance!", "write for example performance"),
        ("target", "hold_cpu_awake", "yes", "'yes': write true or false"),
        ("target", "hold_cpu_awake", 1, "1: write true or false"),
        ("target", "rt_throttling", "on", "no such setting: 'on'"),
        ("target", "storage_dir", "--x", "write ./--x"),
        ("kernel", "names", "Debian", "write for example debian-6.12-rt"),
        ("kernel", "names", ["a", "a"], "'a' is there twice"),
        ("kernel", "names", "-/a", "begins with '-'; write ./-/a"),
    ],
)
def test_a_wrong_value_elsewhere_is_refused_with_what_to_write(
    table: str, key: str, value: object, message: str
) -> None:
    said = refused({table: {key: value}})

    assert said.startswith(f"my.toml: [{table}] {key}: ")
    assert message in said


@pytest.mark.parametrize(
    "address",
    ["local", "ssh:vf2", "ssh:root@10.0.0.7", "ssh:me@[::1]", "virtual:riscv64-4"],
)
def test_an_address_is_taken_as_written(address: str) -> None:
    assert from_dict({"target": {"address": address}}, source="x").target == address


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"run": [{"duration": "1s", "interval": "600ms"}]},
            "my.toml: [[run]] number 1 duration: 1s has no room for two intervals of "
            "600ms; write a duration of 1200ms or more",
        ),
        (
            {"run": [{}, {"policy": "other", "priority": 10}]},
            "my.toml: [[run]] number 2 priority: policy other has none",
        ),
        (
            {"run": [{"policy": "deadline", "cpus": "0"}]},
            "[[run]] number 1 cpus: the kernel lets no thread of policy deadline be",
        ),
        (
            {"campaign": {"claim": "1/1h"}},
            "[campaign] claim: a claim is about misses of a deadline; write deadline",
        ),
        (
            {"campaign": {"command": ["ls"]}},
            "[campaign] command: no run has the custom load",
        ),
        (
            {"run": [{"load": "custom"}]},
            "[campaign] command: the custom load needs one",
        ),
        (
            {"campaign": {"deadline_runtime": "50us"}},
            "[campaign] deadline_runtime: no run has policy deadline",
        ),
        (
            {
                "campaign": {"deadline_runtime": "300us"},
                "run": [{"policy": "deadline"}],
            },
            "deadline_runtime: 300us does not fit an interval of 200us",
        ),
        (
            {"target": {"address": "ssh:a", "storage_dir": "data"}},
            "[target] storage_dir: 'data' is relative",
        ),
        (
            {"run": [{"load": ["idle", "cpu"]}, {"load": "cpu"}]},
            "[[run]] number 2 load: an earlier [[run]] has the same run of load cpu",
        ),
        (
            {"kernel": {"names": "a,b"}, "run": [{"repetitions": 10_000}] * 2},
            "200,000 runs that take 46 d 7 h; write at most 100,000",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    document: object, message: str
) -> None:
    assert message in refused(document)


def test_as_many_runs_as_allowed_are_taken() -> None:
    document = {
        "kernel": {"names": "a,b"},
        "run": [{"repetitions": 10_000}],
    }

    assert len(from_dict(document, source="x").kernels) == 2


def test_a_relative_storage_directory_is_taken_on_this_machine() -> None:
    document = {"target": {"storage_dir": "data"}}

    assert from_dict(document, source="x").storage_dir == "data"


def test_no_option_leaves_the_campaign_alone() -> None:
    campaign = default_campaign()

    assert with_options(campaign, load=None, seed=None) is campaign


def test_an_option_takes_the_place_of_the_files_value_in_every_run() -> None:
    campaign = Campaign(
        name="x", runs=(RunTable(loads=("idle",)), RunTable(loads=("cpu",)))
    )

    changed = with_options(campaign, duration="5s", target="ssh:vf2", kernel="a,b")

    assert changed == replace(
        campaign,
        target="ssh:vf2",
        kernels=("a", "b"),
        runs=tuple(replace(run, durations_ns=(5 * S,)) for run in campaign.runs),
    )


def test_runs_that_an_option_makes_equal_are_run_once() -> None:
    campaign = Campaign(runs=(RunTable(loads=("idle",)), RunTable(loads=("cpu",))))

    assert with_options(campaign, load="os").runs == (RunTable(loads=("os",)),)


def test_options_take_lists_and_words() -> None:
    campaign = with_options(
        default_campaign(),
        load=["idle", "custom"],
        command="sh -c 'sleep 1'",
        policy="rr",
        priority=[10, 20],
        cpus="1-2",
        hold_cpu_awake=True,
        settle="0",
    )

    assert campaign.command == ("sh", "-c", "sleep 1")
    assert campaign.runs[0].policies == (("rr", 10), ("rr", 20))
    assert campaign.runs[0].cpus == (1, 2)
    assert campaign.hold_cpu_awake


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"duration": "200"}, "--duration: 200: no unit; write 200us"),
        ({"target": "ssh:-x"}, "--target: 'ssh:-x': write local"),
        ({"kernel": "A"}, "--kernel: 'A': write for example"),
        ({"rt_throttling": "on"}, "--rt-throttling: no such setting"),
        ({"claim": "1/1h"}, "--claim: a claim is about misses of a deadline"),
        ({"load": "custom"}, "--command: the custom load needs one"),
        ({"policy": "idle", "priority": 3}, "--priority: policy idle has none"),
        ({"policy": "deadline", "cpus": "0"}, "--cpus: the kernel lets no thread"),
        ({"duration": "1s", "interval": "1s"}, "--duration: 1s has no room"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(
    given: dict[str, object], message: str
) -> None:
    assert refused_option(**given).startswith(message)


def test_an_option_displaces_what_only_made_sense_with_the_files_value() -> None:
    campaign = Campaign(
        runs=(
            RunTable(
                loads=("custom",), policy_names=("fifo", "deadline"), priorities=(80,)
            ),
        ),
        command=("ls",),
        deadline_runtime_ns=50_000,
    )

    changed = with_options(campaign, load="cpu", policy="other")

    assert changed == Campaign(
        runs=(RunTable(loads=("cpu",), policy_names=("other",)),)
    )


def test_an_option_keeps_the_files_priority_where_it_still_applies() -> None:
    campaign = Campaign(runs=(RunTable(priorities=(80,)),))

    assert with_options(campaign, policy="rr").runs[0].policies == (("rr", 80),)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["10m", "200us", "0-3", "1/1h", "idle,cpu", "fifo", "deadline", "local", "a"]
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def tables(name: str) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.sampled_from(sorted(TABLES[name])), VALUES, max_size=4)


DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "campaign": tables("campaign") | VALUES,
        "target": tables("target") | VALUES,
        "kernel": tables("kernel") | VALUES,
        "run": st.lists(tables("run"), max_size=3) | VALUES,
    },
)


@settings(max_examples=500)
@given(DOCUMENTS | VALUES)
def test_any_document_is_a_campaign_or_a_usage_error_of_printable_text(
    document: object,
) -> None:
    said = ""
    try:
        campaign = from_dict(document, source="my.toml")
        assert from_dict(to_dict(campaign), source="x") == campaign
    except UsageError as error:
        said = str(error)

    assert said == "" or (said.isprintable() and said.startswith("my.toml: "))
    assert len(said) < 500


RUNS = st.builds(
    RunTable,
    loads=st.lists(
        st.sampled_from([n for n in load_names() if n != "custom"]),
        min_size=1,
        unique=True,
    ).map(tuple),
    durations_ns=st.lists(
        st.integers(20 * S, 366 * 86_400 * S), min_size=1, max_size=3, unique=True
    ).map(tuple),
    priorities=st.lists(st.integers(1, 99), max_size=3, unique=True).map(tuple),
    intervals_ns=st.lists(
        st.integers(10_000, 10 * S), min_size=1, max_size=3, unique=True
    ).map(tuple),
    repetitions=st.integers(1, 50),
    cpus=st.none() | st.sets(st.integers(0, 4095), min_size=1).map(sorted).map(tuple),
)


@given(RUNS, st.integers(0, S), st.none() | st.integers(0, 2**63 - 1))
def test_any_valid_campaign_goes_through_json_unchanged(
    run: RunTable, warmup_ns: int, seed: int | None
) -> None:
    target = "local" if seed is None else "virtual:pc"
    campaign = Campaign(target=target, runs=(run,), warmup_ns=warmup_ns, seed=seed)

    document = json.loads(json.dumps(to_dict(campaign)))

    assert from_dict(document, source="record") == campaign


@pytest.mark.parametrize(
    ("written", "seeds"),
    [
        (3, (1, 2, 3)),
        ("3", (1, 2, 3)),
        ("1,5, 9", (1, 5, 9)),
        ([5], (5,)),
        ([0, 2**63 - 1], (0, 2**63 - 1)),
    ],
)
def test_seeds_are_a_count_or_a_list(written: object, seeds: tuple[int, ...]) -> None:
    document = {
        "target": {"address": "virtual:pc"},
        "campaign": {"seeds": written},
    }

    assert from_dict(document, source="x").run_seeds == seeds


@pytest.mark.parametrize(
    "written", [0, 1001, "0", "1,x", "1,1", [], [-1], True, "", "²"]
)
def test_other_seeds_are_refused(written: object) -> None:
    document = {
        "target": {"address": "virtual:pc"},
        "campaign": {"seeds": written},
    }

    assert refused(document).startswith("my.toml: [campaign] seeds: ")


def test_a_virtual_board_has_a_seed_and_settles_even_if_nothing_is_said() -> None:
    board = Campaign(target="virtual:pc")

    assert (board.board, board.run_seeds) == ("pc", (1,))
    assert (board.settling_ns, Campaign().settling_ns) == (10 * S, 0)
    assert replace(board, settle_ns=0).settling_ns == 0
    assert replace(board, seed=4).run_seeds == (4,)
    assert Campaign().run_seeds == (None,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": 3}, "--seed: for virtual boards only: nothing chooses what a real"),
        ({"seeds": "3"}, "--seeds: for virtual boards only: nothing chooses what a"),
        ({"qemu": "/q"}, "--qemu: for virtual boards only: a real machine needs none"),
        ({"locked": "l"}, "--locked: for virtual boards only: a real machine has the"),
        (
            {"require_identical": True, "repetitions": 2},
            "--require-identical: for virtual boards only: no two runs of a real",
        ),
        (
            {"require_identical": True, "target": "virtual:pc"},
            "--require-identical: a run that is done once has nothing to be",
        ),
        (
            {"seed": 3, "seeds": "3", "target": "virtual:pc"},
            "--seeds: seed is there too; write one of them",
        ),
    ],
)
def test_what_only_boards_have_is_refused_elsewhere_with_the_reason(
    given: dict[str, object], message: str
) -> None:
    assert refused_option(**given).startswith(message)


def test_an_option_displaces_the_files_seed_and_what_only_its_board_had() -> None:
    board = Campaign(target="virtual:pc", seed=3, qemu="/q", locked="/l")

    assert with_options(board, seeds="2").run_seeds == (1, 2)
    assert with_options(with_options(board, seeds="2"), seed=7).run_seeds == (7,)
    assert with_options(board, target="local") == Campaign()


def test_paths_of_a_campaign_are_those_of_its_own_place() -> None:
    campaign = Campaign(
        target="virtual:pc",
        kernels=("debian-6.12", "./bzImage", "/boot/vmlinuz"),
        qemu="bin/qemu",
        locked="lock.json",
    )

    placed = with_places(campaign, Path("/lab"))

    assert placed.kernels == ("debian-6.12", "/lab/bzImage", "/boot/vmlinuz")
    assert (placed.qemu, placed.locked) == ("/lab/bin/qemu", "/lab/lock.json")
    assert with_places(placed, Path("/other")) == placed


@pytest.mark.parametrize(
    ("kernels", "labels"),
    [
        (["debian-6.12", "./bzImage"], ["debian-6.12", "bzImage"]),
        (["/a/bzImage", "/b/bzImage"], ["a/bzImage", "b/bzImage"]),
        (
            ["/rt/arch/x86/boot/bzImage", "/std/arch/x86/boot/bzImage"],
            ["rt/bzImage", "std/bzImage"],
        ),
        (["debian-6.12", "/k/debian-6.12"], ["debian-6.12", "k/debian-6.12"]),
        (["/a/b/I", "/a/c/I", "/d/c/I"], ["/a/b/I", "/a/c/I", "/d/c/I"]),
        (["/I", "/a/I"], ["/I", "a/I"]),
    ],
)
def test_images_are_called_by_their_files_and_told_apart_by_a_directory(
    kernels: list[str], labels: list[str]
) -> None:
    assert kernels_by_label(kernels) == dict(zip(labels, kernels, strict=True))


@given(
    st.lists(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(
            lambda parts: "/" + "/".join(parts)
        ),
        unique=True,
        max_size=8,
    )
)
def test_no_two_kernels_are_called_the_same(paths: list[str]) -> None:
    assert sorted(kernels_by_label(paths).values()) == sorted(paths)
