"""Campaigns: what a file says, what it leaves out, and the way through JSON."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.host.errors import UsageError
from rtscope.measure.campaign.file import (
    MAX_FILE_BYTES,
    from_dict,
    key_schemas,
    load_campaign,
    to_dict,
)
from rtscope.measure.campaign.model import Campaign, RunTable
from rtscope.measure.loads import get_load, load_names

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
guest_files = ["/data/iperf3"]

[target]
address = "virtual:vf2"
qemu = "/opt/qemu"
lockfile = "/lab/packages.json"
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


def test_the_default_is_this_machine_under_the_five_loads() -> None:
    campaign = Campaign()

    assert campaign.target == "local"
    assert campaign.kernels == ()
    assert campaign.loads == ("idle", "cpu", "os", "memory", "storage")
    (run,) = campaign.runs
    assert run.durations_ns == (20 * S,)
    assert run.intervals_ns == (200_000,)
    assert run.policies == (("fifo", 99),)
    assert (run.repetitions, run.cpus) == (1, None)
    assert (campaign.settling_ns, campaign.warmup_ns, campaign.worst_kept) == (0, S, 64)


def test_fewer_worst_wake_ups_are_kept_where_each_is_recorded() -> None:
    assert Campaign(target="virtual:pc").worst_kept == 16
    assert Campaign(explain=True).worst_kept == 16
    assert Campaign(explain=True, worst=40).worst_kept == 40
    assert Campaign(worst=1).worst_kept == 1


def test_a_file_gives_every_value(tmp_path: Path) -> None:
    assert load_campaign(write(tmp_path, FULL)) == Campaign(
        name="Everything",
        target="virtual:vf2",
        kernels=("debian-6.12", "./bzImage, mine"),
        qemu="/opt/qemu",
        lockfile="/lab/packages.json",
        guest_files=("/data/iperf3",),
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
    assert load_campaign(write(tmp_path, "")) == Campaign()


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
    document = json.loads(json.dumps(to_dict(Campaign())))

    assert from_dict(document, source="record") == Campaign()


def test_every_field_of_a_campaign_has_a_key() -> None:
    keys = [key.partition(".") for key in key_schemas()]
    fields = [*Campaign.__dataclass_fields__, *RunTable.__dataclass_fields__]

    assert len(keys) == len(set(fields) - {"runs"})
    assert {table for table, _, _ in keys} == {"campaign", "target", "kernel", "run"}
    assert all(name for _, _, name in keys)


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
    with pytest.raises(UsageError, match=r"cannot read .*none.toml: No such file"):
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

    with pytest.raises(UsageError, match=r"my\.toml: (not valid TOML|line 1, key a: )"):
        load_campaign(path)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "#" * (MAX_FILE_BYTES + 1))

    with pytest.raises(UsageError, match="1,048,576 bytes of any campaign file"):
        load_campaign(path)


RUNS = st.builds(
    RunTable,
    loads=st.lists(
        st.sampled_from([get_load(n).name for n in load_names() if n != "custom"]),
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
