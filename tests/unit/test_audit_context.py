"""What an audit knows of CPUs, architecture and versions before it checks anything."""

import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.audited import Case, judged
from fakes.trees import CPU, reader_of
from rtscope.host.errors import UsageError
from rtscope.machine.audit.context import (
    AuditContext,
    Cpus,
    cpu_of,
    isolated,
    listed,
    masked,
    online,
    refuse_absent,
    set_apart,
)
from rtscope.machine.audit.examine import (
    context_of_config,
    examine,
    parse_row,
    paths,
    read_context,
)
from rtscope.machine.audit.model import CheckKind, CheckOutcome, Profile
from rtscope.machine.audit.observe import (
    observe_here,
    read_dma_latency,
    read_kernel_log,
    watch,
)
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.kernelconfig import parse_config
from rtscope.machine.reader import Denied

PARTITIONS = "/sys/fs/cgroup/cpuset.cpus.isolated"
HEAD = "# Automatically generated file; DO NOT EDIT.\n"


def read(files: dict[str, str], cpus: tuple[int, ...] | None = None) -> AuditContext:
    return read_context(reader_of(files), [], cpus=cpus)


# --- CPUs -------------------------------------------------------------------------


@given(st.frozensets(st.integers(0, 200)))
def test_lists_and_masks_name_the_same_cpus(cpus: frozenset[int]) -> None:
    mask = f"{sum(1 << cpu for cpu in cpus):x}"
    grouped = f"{int(mask, 16):056x}"
    groups = [grouped[at : at + 8] for at in range(0, len(grouped), 8)]

    assert listed(format_cpulist(cpus)) == cpus
    assert masked(mask) == cpus
    assert masked(",".join(groups)) == cpus


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("", frozenset()), (" \n", frozenset()), ("(null)\n", frozenset()), ("x", None)],
)
def test_an_empty_list_names_no_cpu_and_a_malformed_one_is_unknown(
    text: str, cpus: Cpus | None
) -> None:
    assert listed(text) == cpus
    assert masked("g") is None
    assert masked("") is None
    assert masked("-1") is None
    assert masked("0x3") is None
    assert masked("1_0") is None


@pytest.mark.parametrize(
    ("path", "cpu"),
    [
        (f"{CPU}/cpu12/cache", 12),
        (f"{CPU}/cpufreq/policy0", None),
        (f"{CPU}/cpuidle", None),
        ("/x/cpu/3", None),
        ("/sys/cpu1/cpu2", 1),
    ],
)
def test_a_path_is_of_the_first_cpu_that_it_names(path: str, cpu: int | None) -> None:
    assert cpu_of(path) == cpu


@pytest.mark.parametrize(
    ("files", "cpus", "there", "alone", "apart"),
    [
        ({}, None, None, set(), None),
        ({}, (2,), None, set(), {2}),
        ({f"{CPU}/online": "0-3"}, None, {0, 1, 2, 3}, set(), None),
        ({f"{CPU}/online": "0-3"}, (2, 5), {0, 1, 2, 3}, set(), {2}),
        ({f"{CPU}/online": "0-3"}, (5,), {0, 1, 2, 3}, set(), None),
        ({f"{CPU}/online": ""}, (5,), None, set(), {5}),
        ({f"{CPU}/online": "x"}, (5,), None, set(), {5}),
        (
            {f"{CPU}/online": "0-3", f"{CPU}/isolated": "1", PARTITIONS: "3,7"},
            *(None, {0, 1, 2, 3}, {1, 3, 7}, {1, 3}),
        ),
        (
            {f"{CPU}/online": "0-3", f"{CPU}/isolated": "1"},
            *((2,), {0, 1, 2, 3}, {1}, {2}),
        ),
        ({f"{CPU}/isolated": "x", PARTITIONS: "3"}, None, None, {3}, {3}),
    ],
)
def test_the_cpus_set_apart_are_named_or_isolated_and_online(
    files: dict[str, str],
    cpus: tuple[int, ...] | None,
    there: set[int] | None,
    alone: set[int],
    apart: set[int] | None,
) -> None:
    context = read(files, cpus)

    assert online(context) == (None if there is None else frozenset(there))
    assert isolated(context) == frozenset(alone)
    assert set_apart(context) == (None if apart is None else frozenset(apart))


def test_cpus_that_are_not_online_are_refused_by_number() -> None:
    with pytest.raises(UsageError) as caught:
        refuse_absent(read({f"{CPU}/online": "0-3"}, (3, 5, 6)))

    assert str(caught.value) == "--cpus: CPU 5-6 is not online; this machine has 0-3"
    for files, cpus in (
        ({f"{CPU}/online": "0-3"}, (3,)),
        ({f"{CPU}/online": "0-3"}, None),
        ({}, (9,)),
    ):
        refuse_absent(read(files, cpus))


# --- what is read -----------------------------------------------------------------


def test_each_file_is_read_once_in_two_round_trips_at_most() -> None:
    row = {
        **{"title": "t", "severity": "low", "expected": "e", "rationale": "w"},
        **{"source": "s", "remedy": "r", "function": "value", "good": ["1"]},
        "paths": ["/a", "/proc/version"],
    }
    kinds = [parse_row(name, row, group="g") for name in ("x", "y")]
    config = "/boot/config-6.12.1"
    reader = reader_of(
        {"/proc/sys/kernel/osrelease": "6.12.1", config: f"{HEAD}CONFIG_SMP=y\n"}
    )
    context = read_context(reader, kinds)

    wanted = paths(kinds)
    assert len(wanted) == len(set(wanted))
    assert {"/a", "/proc/version", "/proc/sys/kernel/arch"} <= set(wanted)
    assert reader.trips[0] == tuple(wanted)
    assert config in context.machine.files
    assert len(reader.trips) <= 3


CPUINFO = "/proc/cpuinfo"


@pytest.mark.parametrize(
    ("files", "arch"),
    [
        ({"/proc/sys/kernel/arch": "riscv64\n"}, "riscv64"),
        ({"/proc/sys/kernel/arch": "x\n", CPUINFO: "vendor_id\t: A\n"}, "x"),
        ({CPUINFO: "vendor_id\t: GenuineIntel\n"}, "x86_64"),
        ({CPUINFO: "CPU implementer\t: 0x41\n"}, "aarch64"),
        ({CPUINFO: "isa\t\t: rv64imac\n"}, "riscv64"),
        ({CPUINFO: "isa: x\n"}, None),
        ({}, None),
    ],
)
def test_the_architecture_is_the_kernels_word_or_the_cpus(
    files: dict[str, str], arch: str | None
) -> None:
    assert read(files).arch == arch


@pytest.mark.parametrize(
    ("option", "arch"),
    [
        ("X86_64", "x86_64"),
        ("ARM64", "aarch64"),
        ("RISCV", "riscv64"),
        ("ARM", "armv7l"),
        ("MIPS", None),
    ],
)
def test_a_configuration_tells_its_architecture(option: str, arch: str | None) -> None:
    text = f"{HEAD}CONFIG_{option}=y\nCONFIG_ARM64_X=y\n"
    context = context_of_config(parse_config(text.encode(), source="c"))

    assert (context.arch, context.alone, context.profile) == (
        *(arch, True),
        Profile.CONTROL,
    )


def kind(**keys: object) -> CheckKind:
    row = {
        **{"title": "t", "severity": "low", "expected": "e", "rationale": "w"},
        **{"source": "s", "remedy": "r", "on": ["A"]},
        **keys,
    }
    return parse_row("x", row, group="g")


@pytest.mark.parametrize(
    ("release", "keys", "message"),
    [
        ("6.11.9", {"since": "6.12"}, "before Linux 6.12"),
        ("6.12.0", {"since": "6.12"}, "A=y"),
        ("6.12.0", {"until": "6.12"}, "since Linux 6.12"),
        ("6.11.9", {"until": "6.12"}, "A=y"),
        ("5.4.0", {"since": "6.1", "until": "6.12"}, "before Linux 6.1"),
        ("6.13.0", {"since": "6.1", "until": "6.12"}, "since Linux 6.12"),
        ("odd", {"since": "6.12"}, "unknown whether this is Linux 6.12 or later"),
        ("6.12.0", {"archs": ["riscv64"]}, "A=y"),
        ("6.12.0", {"archs": ["x86_64"]}, "not on riscv64"),
    ],
)
def test_a_check_that_is_for_other_kernels_or_machines_does_not_apply(
    release: str, keys: dict[str, object], message: str
) -> None:
    text = (
        f"{HEAD}# Linux/riscv {release} Kernel Configuration\n"
        "CONFIG_RISCV=y\nCONFIG_A=y\n"
    )
    context = context_of_config(parse_config(text.encode(), source="c"))
    check = examine(context, [kind(**keys)])[0]

    assert check.message == message


def test_a_check_of_an_unknown_architecture_is_unknown() -> None:
    check = examine(read({}), [kind(archs=["x86_64"])])[0]

    assert (check.outcome, check.message) == (
        CheckOutcome.UNKNOWN,
        "unknown architecture",
    )


def test_a_configuration_alone_answers_no_question_about_a_machine() -> None:
    context = context_of_config(
        parse_config(f"{HEAD}CONFIG_A=y\n".encode(), source="c")
    )
    machine = kind(function="value", paths=["/a"], good=["1"])

    assert examine(context, [machine])[0].message == "needs a running machine"


@pytest.mark.parametrize(
    ("keys", "files", "outcome", "message"),
    [
        ({}, {}, CheckOutcome.UNKNOWN, "no such file: /a, /b"),
        ({"missing": "m"}, {}, CheckOutcome.UNKNOWN, "no such file: /a, /b; m"),
        ({"absent": "none here"}, {}, CheckOutcome.NOT_APPLICABLE, "none here"),
        (
            {"absent": "none here", "hidden_by": "integrity"},
            {"/sys/kernel/security/lockdown": "none [integrity]"},
            *(CheckOutcome.UNKNOWN, "kernel lockdown hides /a"),
        ),
        (
            {"absent": "none here", "hidden_by": "integrity"},
            {"/sys/kernel/security/lockdown": "[none] integrity"},
            *(CheckOutcome.NOT_APPLICABLE, "none here"),
        ),
    ],
)
def test_a_missing_file_is_never_a_pass(
    keys: dict[str, object],
    files: dict[str, str],
    outcome: CheckOutcome,
    message: str,
) -> None:
    lockdown = "/sys/kernel/security/lockdown"
    row = kind(function="value", paths=["/a", "/b", lockdown], good=["1"], **keys)
    check = examine(read_context(reader_of(files), [row]), [row])[0]

    assert (check.outcome, check.message) == (outcome, message)
    if "hides" in message:
        assert [(s.path, s.value) for s in check.evidence] == [*files.items()]


def test_what_the_machine_shows_decides_and_says_so() -> None:
    built = kind(observed_by="seen")
    seen = replace(kind(function="value", paths=["/a"], good=["1"]), id="seen")
    config = gzip.compress(f"{HEAD}# CONFIG_A is not set\n".encode(), mtime=0)
    for text, message in (
        ("1", "A=n; the running machine decides (t)"),
        ("0", "A=n; the running machine decides (t)"),
        (None, "A=n"),
    ):
        files: dict[str, str | bytes] = {"/proc/config.gz": config}
        files |= {} if text is None else {"/a": text}
        context = read_context(reader_of(files), [built, seen])
        found = {
            c.kind.id: c for c in examine(context, [built, seen], observed_first=True)
        }
        assert found["x"].message == message


# --- what is observed -------------------------------------------------------------


def test_a_window_is_as_long_as_it_took_and_not_shorter_than_asked() -> None:
    files = {"/proc/stat": "cpu 1\n", "/proc/interrupts": "  x \n"}
    also = {f"{CPU}/cpufreq/policy0/scaling_cur_freq": Denied("no")}
    found = watch(reader_of(files, also=also), 1, sleep=lambda _s: None)

    assert found.window_ns >= 1
    assert found.before == {"/proc/stat": "cpu 1", "/proc/interrupts": "x"}
    assert watch(reader_of(files), -1).window_ns == 0
    assert watch(reader_of(files), 10**12, sleep=lambda _s: None).window_ns == 10**12


@pytest.mark.parametrize(
    ("records", "log"),
    [
        (b"", ""),
        (b"6,1,1234567,-;hello\n SUBSYSTEM=x\n", "[    1.234567] hello"),
        (b"6,1,0,-;hello; you", "[    0.000000] hello; you"),
        (b"6,1,99999000001,-;late", "[99999.000001] late"),
        (b"6,1;short", "[    0.000000] short"),
        (b"6,1,x,-;odd", "[    0.000000] odd"),
        (b"6,1,5;three", "[    0.000005] three"),
        (b"6,1,5,-;\xff", "[    0.000005] \ufffd"),
    ],
)
def test_a_record_of_the_kernels_log_is_printed_as_dmesg_does(
    tmp_path: Path, records: bytes, log: str
) -> None:
    (tmp_path / "kmsg").write_bytes(records)

    assert read_kernel_log(str(tmp_path / "kmsg")) == (log, "")


def test_a_log_that_has_no_more_to_say_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    opened = os.open

    def without_waiting(path: str, flags: int) -> int:
        assert flags & os.O_NONBLOCK  # reading would wait for ever
        return opened(path, flags)

    monkeypatch.setattr(os, "open", without_waiting)
    try:
        os.write(end, b"6,1,5,-;one\n")
        assert read_kernel_log(str(pipe)) == ("[    0.000005] one", "")
    finally:
        os.close(end)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ((5).to_bytes(4, "little"), (5, "")),
        ((-1).to_bytes(4, "little", signed=True), (-1, "")),
        (b"12345", (875770417, "")),
        (b"123", (None, "{} gave no number")),
    ],
)
def test_a_latency_is_read_from_four_bytes(
    tmp_path: Path, content: bytes, found: tuple[int | None, str]
) -> None:
    path = tmp_path / "cpu_dma_latency"
    path.write_bytes(content)
    latency_us, why = found

    assert read_dma_latency(str(path)) == (latency_us, why.format(path))


def test_looking_here_keeps_what_was_watched_and_tries_only_if_asked() -> None:
    watched = watch(reader_of({"/proc/stat": "cpu"}), 1, sleep=lambda _s: None)
    found = observe_here(watched, trial=False)

    assert found.trial is None
    assert (found.window_ns, found.before) == (watched.window_ns, watched.before)
    assert found.clock_cost_ns is not None
    assert found.clock_cost_ns >= 0
    assert found.clock_resolution_ns is not None
    assert found.clock_resolution_ns >= 1
    assert (found.kernel_log is None) is bool(found.why_no_log)
    assert (found.dma_latency_us is None) is bool(found.why_no_dma_latency)


def test_a_refusal_is_shown_with_the_systems_own_word() -> None:
    path = "/proc/sys/kernel/watchdog"
    found = judged("watchdog", Case(also={path: Denied("Permission denied")}))

    assert [(s.path, s.value) for s in found.evidence] == [
        (path, "cannot be read: Permission denied")
    ]


def test_a_file_that_is_not_there_or_not_readable_has_no_words() -> None:
    path = "/proc/cmdline"
    for reader, words in (
        (reader_of({path: "quiet\n"}), "quiet"),
        (reader_of({}), ""),
        (reader_of({}, also={path: Denied("Permission denied")}), ""),
    ):
        assert read_context(reader, []).words(path) == words
