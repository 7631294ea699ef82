"""Campaigns that are refused: each value is checked once, in the same words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.refusals import refused
from rtscope.host.errors import UsageError
from rtscope.measure.campaign.file import from_dict, key_schemas, to_dict


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "my.toml: nothing: write a table"),
        ([], "my.toml: a list: write a table"),
        ({3: {}}, "my.toml: a table: write a table"),
        ({"runs": []}, "my.toml: no such table: 'runs'; did you mean 'run'?"),
        ({"campaign": 3}, "my.toml: [campaign]: 3: write a table"),
        ({"kernel": {"name": "x"}}, "[kernel]: no such key: 'name'; did you mean"),
        ({"run": [{}, {"lod": "x"}]}, "[[run]] number 2: no such key: 'lod'; did you"),
        ({"run": {}}, "my.toml: [run]: a table: write 1 to 1000 tables"),
        ({"run": []}, "my.toml: [run]: a list: write 1 to 1000 tables"),
        ({"run": [{}] * 1001}, "my.toml: [run]: a list: write 1 to 1000 tables"),
        ({"run": [3]}, "[[run]] number 1: 3: write a table"),
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
        ("load", ["idle", "cpu", "idle"], "load: 'idle' occurs twice"),
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
        ("duration", ["1m", "60s"], "duration: '60s' occurs twice"),
        ("interval", "9us", "interval: '9us': write 10us to 10s"),
        ("interval", "11s", "interval: '11s': write 10us to 10s"),
        ("interval", "0s", "more than 0"),
        ("policy", "fif", "policy: no such policy: 'fif'; did you mean 'fifo'?"),
        ("priority", 0, "priority: 0: write 1 to 99"),
        ("priority", 100, "priority: 100: write 1 to 99"),
        ("priority", "8O", "priority: '8O': write a whole number, 1 to 99"),
        ("priority", True, "priority: true: write a whole number, 1 to 99"),
        ("priority", 10**400, "priority: a huge number: write 1 to 99"),
        ("repetitions", 0, "repetitions: 0: write 1 to 10000"),
        ("repetitions", 10_001, "repetitions: 10001: write 1 to 10000"),
        ("repetitions", [1, 2], "repetitions: a list: write a whole number"),
        ("cpus", "", "cpus: '': not a CPU list; write 0-3"),
        ("cpus", 0, 'cpus: 0: write a text such as "2-3"'),
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
        ("campaign", "order", "sorted", "no such order: 'sorted'"),
        ("campaign", "settle", "25h", "write 0s to 1d"),
        ("campaign", "warmup", "2h", "write 0s to 1h"),
        ("campaign", "warmup", "0ms", "more than 0"),
        ("campaign", "deadline", "0us", "not more than 0"),
        ("campaign", "deadline", "0", "0: no unit"),
        ("campaign", "claim", "0/1h", "no test can show zero misses"),
        ("campaign", "min_boots", 0, "write 1 to 10000"),
        ("campaign", "seed", -1, "write 0 to"),
        ("campaign", "worst", 0, "write 1 to 64"),
        ("campaign", "command", [], "write a command such as"),
        ("campaign", "command", "", "write a command such as"),
        ("campaign", "command", 3, "write a command such as"),
        ("campaign", "command", "sh -c 'x", "no closing quotation mark"),
        ("campaign", "command", ["a", 3], "each word is a text in quotes"),
        ("campaign", "command", ["a\0"], "each word is a text in quotes"),
        ("campaign", "command", ["", "x"], "the program is empty"),
        ("target", "address", "lokal", "write local, ssh:HOST, lab:PLACE or virtual"),
        ("target", "address", "local:x", "write local, ssh:HOST"),
        ("target", "address", "ssh:", "write local, ssh:HOST"),
        ("target", "address", "ssh:-oProxyCommand=sh", "does not begin with '-'"),
        ("target", "address", "ssh:root@-oProxyCommand=sh", "does not begin with '-'"),
        ("target", "address", "ssh:a b", "write local, ssh:HOST"),
        ("target", "address", "ssh:a;b", "write local, ssh:HOST"),
        ("target", "address", "ssh:a\nb", "control characters"),
        ("target", "address", "ssh:" + "a" * 256, "write local, ssh:HOST"),
        ("target", "address", "lab:-p", "write local, ssh:HOST"),
        ("target", "address", "lab:a/b", "write local, ssh:HOST"),
        ("target", "address", "lab:" + "a" * 65, "write local, ssh:HOST"),
        ("target", "address", "virtual:-x", "write local, ssh:HOST"),
        ("target", "address", "virtual:../x", "write local, ssh:HOST"),
        ("target", "governor", "Performance!", "write for example performance"),
        ("target", "hold_cpu_awake", "yes", "'yes': write true or false"),
        ("target", "hold_cpu_awake", 1, "1: write true or false"),
        ("target", "rt_throttling", "on", "no such setting: 'on'"),
        ("target", "storage_dir", "--x", "write ./--x"),
        ("kernel", "names", "Debian", "write for example debian-6.12-rt"),
        ("kernel", "names", ["a", "a"], "'a' occurs twice"),
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
    [
        "local",
        "ssh:vf2",
        "ssh:root@10.0.0.7",
        "ssh:me@[::1]",
        "virtual:riscv64-4",
        "lab:vf2-1",
    ],
)
def test_an_address_is_taken_as_written(address: str) -> None:
    assert from_dict({"target": {"address": address}}, source="x").target == address


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"run": [{"duration": "1s", "interval": "600ms"}]},
            "my.toml: [[run]] number 1 duration: 1s is shorter than two intervals "
            "of 600ms; write a duration of 1200ms or more",
        ),
        (
            {"run": [{}, {"policy": "other", "priority": 10}]},
            "my.toml: [[run]] number 2 priority: policy other has no priority",
        ),
        (
            {"run": [{"policy": "deadline", "cpus": "0"}]},
            "[[run]] number 1 cpus: the kernel pins no thread of policy deadline to",
        ),
        (
            {"campaign": {"claim": "1/1h"}},
            "[campaign] claim: a claim needs a deadline; write deadline",
        ),
        (
            {"campaign": {"command": ["ls"]}},
            "[campaign] command: no run has the custom load",
        ),
        (
            {"run": [{"load": "custom"}]},
            "[campaign] command: the custom load needs a command",
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
            "deadline_runtime: 300us is longer than the interval of 200us",
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
    keys = [key.partition(".")[2] for key in key_schemas() if key.startswith(name)]
    return st.dictionaries(st.sampled_from(sorted(keys)), VALUES, max_size=4)


DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "campaign": tables("campaign") | VALUES,
        "target": tables("target") | VALUES,
        "kernel": tables("kernel") | VALUES,
        "run": st.lists(tables("run"), max_size=3) | VALUES,
    },
)


@pytest.mark.slow
@settings(max_examples=200)
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
