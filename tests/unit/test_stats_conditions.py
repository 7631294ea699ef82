"""Which runs are pooled, and the words for the conditions that keep runs apart."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fakes.measurements import on_board, record, thread
from fakes.traces import tracing
from rtscope.machine.facts import FactValue
from rtscope.record.model import InputDigests, RunRecord
from rtscope.stats.conditions import conditions_of, differences, load_command


def run_of(**others: object) -> RunRecord:
    return replace(record([thread([10])]), **others)  # type: ignore[arg-type]


def apart(one: RunRecord, other: RunRecord) -> set[str]:
    """Return the conditions that keep these runs from being pooled."""
    mine, theirs = conditions_of(one), conditions_of(other)
    labels = mine.keys() | theirs.keys()
    return {label for label in labels if mine.get(label) != theirs.get(label)}


def told(one: Mapping[str, object], *others: Mapping[str, object]) -> tuple[str, ...]:
    """Return the words for the first one."""
    return differences([one, *others])[0]


def stressed(*argv: str) -> RunRecord:
    run = run_of()
    return replace(run, load=replace(run.load, argv=("stress-ng", *argv)))


def test_the_machine_is_named_before_its_kernel_and_settings() -> None:
    assert list(conditions_of(run_of()))[:4] == [
        "target",
        "machine",
        "host name",
        "CPU",
    ]


@pytest.mark.parametrize(
    ("label", "other"),
    [
        ("target", record([thread([10])], target="ssh:board")),
        ("kernel asked for", record([thread([10])], kernel="debian-6.12")),
        ("kernel image", run_of(kernel_digest="a" * 64)),
        ("policy", record([thread([10], policy="rr")])),
        ("priority", record([thread([10], priority=1)])),
        ("interval", record([thread([10], interval_ns=2_000_000)])),
        ("CPUs", record([thread([10], cpu=1)])),
        ("load", record([thread([10])], load="memory")),
        ("tuning", run_of(tuning={"changed": []})),
        ("tracing", run_of(result=replace(run_of().result, tracing=tracing()))),
        ("variant", run_of(run=replace(run_of().run, variant="a"))),
        ("runtime", run_of(run=replace(run_of().run, deadline_runtime_ns=9))),
    ],
)
def test_runs_that_differ_in_one_condition_differ_in_no_other(
    label: str, other: RunRecord
) -> None:
    assert apart(run_of(), other) == {label}


def test_a_run_that_was_traced_is_told_from_one_that_was_not() -> None:
    run = run_of()
    traced = replace(run, result=replace(run.result, tracing=tracing()))
    assert differences([conditions_of(r) for r in (run, traced)]) == (
        ("tracing off",),
        ("tracing on",),
    )


@pytest.mark.parametrize(
    "got",
    [{"policy": "rr"}, {"priority": 1}, {"interval_ns": 2_000_000}],
    ids=lambda got: next(iter(got)),
)
def test_a_thread_that_did_not_get_what_was_asked_keeps_runs_apart(
    got: dict[str, object],
) -> None:
    run = run_of()
    threads = tuple(replace(t, **got) for t in run.result.threads)  # type: ignore[arg-type]
    other = replace(run, result=replace(run.result, threads=threads))
    assert apart(run, other) == {"threads"}


def test_idle_states_that_were_asked_for_and_not_held_are_free() -> None:
    run = run_of()
    asked, held = (
        replace(run, result=replace(run.result, dma_latency_us=0, dma_latency_held=h))
        for h in (False, True)
    )
    assert apart(run, asked) == set()
    assert apart(run, held) == {"idle states held"}


def test_settings_that_were_tuned_in_another_order_are_the_same() -> None:
    changes = [{"path": "/sys/b", "value": 1}, {"path": "/sys/a", "value": "0"}]
    one, other = (
        run_of(tuning={"changed": changed}) for changed in (changes, changes[::-1])
    )
    assert conditions_of(one)["tuning"] == (("/sys/a", "0"), ("/sys/b", "1"))
    assert apart(one, other) == set()


def test_a_change_that_cannot_be_read_is_left_out() -> None:
    one, other = (
        run_of(tuning={"changed": [{"path": "/sys/a", "value": 1}, *more]})
        for more in ((), ("/sys/b",))
    )
    assert apart(one, other) == set()


def test_tuning_of_which_no_changes_are_known_is_not_the_absence_of_tuning() -> None:
    unknown, nothing = run_of(tuning={}), run_of(tuning={"changed": []})
    assert apart(unknown, nothing) == set()
    assert apart(unknown, run_of()) == {"tuning"}


def test_length_place_and_seed_of_a_load_belong_to_one_run() -> None:
    of_one = ("--timeout", "9s", "--temp-path", "/a", "--yaml", "/b", "--seed", "7")
    assert load_command(stressed("--vm", "2", *of_one, "--io", "1")) == (
        *("stress-ng", "--vm", "2", "--io", "1"),
    )


@pytest.mark.parametrize("option", ["--vm-bytes", "--dir-dirs"])
def test_that_a_load_was_fitted_is_kept_and_not_to_what(option: str) -> None:
    assert load_command(stressed(option, "100", "--vm", "2")) == (
        *("stress-ng", option, "--vm", "2"),
    )


@pytest.mark.parametrize("option", ["--seed", "--vm-bytes"])
def test_an_option_whose_value_is_missing_ends_the_command(option: str) -> None:
    kept = ("stress-ng", "--vm", "2", *(() if option == "--seed" else (option,)))
    assert load_command(stressed("--vm", "2", option)) == kept


def test_the_command_of_another_program_is_kept_whole() -> None:
    run = run_of()
    argv = ("hackbench", "--seed", "7")
    assert load_command(replace(run, load=replace(run.load, argv=argv))) == argv


def test_seeds_of_a_board_differ_in_what_follows_from_the_seed_alone() -> None:
    digests = InputDigests("k", "i", "q", "p", "b", "campaign 1", seed=1)
    one = on_board(run_of(), input_digests=digests)
    other = on_board(
        run_of(),
        seed=2,
        initrd_digest="e" * 64,
        input_digests=replace(digests, campaign="campaign 2"),
    )
    assert apart(one, other) == set()


@pytest.mark.parametrize(
    ("label", "others"),
    [
        ("board's kernel", {"kernel_digest": "e" * 64}),
        ("board's qemu", {"qemu_digest": "e" * 64}),
        ("board's plugin", {"plugin_digest": "e" * 64}),
        ("board's board", {"quantum_instructions": 1}),
    ],
)
def test_boards_that_differ_are_apart(label: str, others: dict[str, object]) -> None:
    assert apart(on_board(run_of()), on_board(run_of(), **others)) == {label}  # type: ignore[arg-type]


def test_what_names_a_finding_anyway_is_no_difference() -> None:
    one, other = (
        {"target": f"{n}", "policy": f"{n}", "interval": n, "priority": n}
        for n in (1, 2)
    )
    assert differences([one, other]) == (("priority 1",), ("priority 2",))


def test_what_names_a_finding_is_no_difference_between_kernels_either() -> None:
    one, other = ({"kernel": name, "policy": name} for name in "ab")
    assert told(one, other) == ()


KERNEL = (
    *("kernel image", "kernel build", "kernel configuration", "board's kernel"),
    *("PREEMPT_RT", "preemption model"),
)


@pytest.mark.parametrize("name", ["kernel", "kernel asked for"])
@pytest.mark.parametrize("label", KERNEL)
def test_what_follows_from_another_kernel_is_told_only_of_one_kernel(
    name: str, label: str
) -> None:
    assert told({name: "a", label: "x"}, {name: "b", label: "y"}) == ()
    assert told({name: "a", label: "x"}, {name: "a", label: "y"}) == (f"{label} x",)


def test_differences_are_told_in_the_order_of_the_conditions() -> None:
    one, other = {"b": "1", "c": "1", "a": "1"}, {"b": "2", "c": "1", "a": "2"}
    assert told(one, other) == ("b 1", "a 1")


@pytest.mark.parametrize(
    "label", ["idle states held", "tuning", "runtime", "load version", "variant"]
)
def test_the_absence_of_what_may_be_absent_is_known(label: str) -> None:
    assert told({label: None}, {label: 1}) == (f"{label} none",)


def test_a_fact_that_was_not_read_is_unknown() -> None:
    run = run_of()
    unread = FactValue(None, "a test", reason="denied")
    facts = {**run.facts_before, "governor": unread}
    given = [conditions_of(r) for r in (replace(run, facts_before=facts), run)]
    assert differences(given) == (
        ("frequency governor unknown",),
        ("frequency governor performance",),
    )
    assert told({}, {"governor": "x"}) == ("governor unknown",)


def test_a_switch_is_on_or_off() -> None:
    assert differences([{"SMT": True}, {"SMT": False}]) == (("SMT on",), ("SMT off",))


def test_of_lists_the_words_are_told_that_not_all_have() -> None:
    lists = [(0, 1), (0, 1, 2), (0, 3)]
    assert differences([{"CPUs": cpus} for cpus in lists]) == (
        ("CPUs 1",),
        ("CPUs 1 2",),
        ("CPUs 3",),
    )
    of_pairs = [(("/sys/a", "1"), ("/sys/b", "0")), (("/sys/a", "1"),)]
    assert differences([{"tuning": pairs} for pairs in of_pairs]) == (
        ("tuning /sys/b=0",),
        ("tuning without the others' words",),
    )


def test_a_text_is_told_whole_and_a_command_by_its_words() -> None:
    texts = ("big board A", "big board B")
    for label, words in (("machine", texts[0]), ("load command", "A")):
        assert told({label: texts[0]}, {label: texts[1]}) == (f"{label} {words}",)


@pytest.mark.parametrize(("length", "shown"), [(48, "x" * 48), (49, "x" * 48 + "…")])
def test_a_long_value_is_cut_and_says_so(length: int, shown: str) -> None:
    assert told({"kernel image": "x" * length}, {}) == (f"kernel image {shown}",)
