"""Whether CPUs that are set apart have ways of the last-level cache of their own."""

import gzip

import pytest

from fakes.auditcases import CASES, L3, RESCTRL, partition
from fakes.audited import FAIL, HEAD, NONE, PASS, UNKNOWN, Case, judged
from fakes.trees import CPU, Files
from rtscope.machine.audit.model import CheckOutcome
from rtscope.machine.reader import Denied

CAN = "flags\t\t: fpu cat_l3 tsc\n"
OTHER = {f"{RESCTRL}/cpus_list": "0"}


def outcome(files: Files, **case: object) -> CheckOutcome:
    return judged("cache_partition", Case(files, **case)).outcome  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cpuinfo", "wanted"),
    [
        (CAN, UNKNOWN),
        ("flags\t\t: fpu cat_l2 tsc\n", NONE),
        ("Features\t: fp asimd\n", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_without_resctrl_the_processors_flags_decide(
    cpuinfo: str, wanted: CheckOutcome
) -> None:
    assert outcome({"/proc/cpuinfo": cpuinfo}) is wanted


def test_a_kernel_that_cannot_use_the_processors_partitions_fails() -> None:
    config = gzip.compress(f"{HEAD}CONFIG_X86_64=y\n".encode(), mtime=0)
    assert outcome({"/proc/cpuinfo": CAN, "/proc/config.gz": config}) is FAIL


def test_a_group_of_tasks_without_cpus_may_run_anywhere() -> None:
    tasks = {f"{RESCTRL}/t/schemata": "L3:0=80\n", f"{RESCTRL}/t/cpus_list": "\n"}
    assert outcome({**L3, **partition("f0", "1"), **OTHER}) is PASS
    assert outcome({**L3, **partition("f0", "1"), **OTHER, **tasks}) is FAIL


def test_another_group_of_cpus_set_apart_may_share_ways() -> None:
    second = {f"{RESCTRL}/x/schemata": "L3:0=f0\n", f"{RESCTRL}/x/cpus_list": "0"}
    files = {**L3, **partition("f0", "1"), **second, f"{RESCTRL}/cpus_list": "2-3"}
    more = {f"{CPU}/online": "0-3"}
    more |= {f"{CPU}/cpu{n}/cache/index3/level": "3" for n in (2, 3)}
    more |= {f"{CPU}/cpu{n}/cache/index3/id": "0" for n in (2, 3)}
    assert outcome({**files, **more}, cpus=(0, 1)) is PASS
    assert outcome({**files, **more}, cpus=(1,)) is FAIL


def test_a_cpu_of_the_default_group_has_no_ways_of_its_own() -> None:
    top = {f"{RESCTRL}/schemata": "L3:0=ff\n", f"{RESCTRL}/cpus_list": "0-1"}
    assert outcome({**L3, **top}) is FAIL


def test_code_and_data_apart_count_together() -> None:
    both = {
        f"{RESCTRL}/schemata": "L3CODE:0=3\nL3DATA:0=c\n",
        f"{RESCTRL}/rt/schemata": "L3CODE:0=30\nL3DATA:0=8\n",
        f"{RESCTRL}/rt/cpus_list": "1",
        **OTHER,
    }
    assert outcome({**L3, **both}) is FAIL


def test_other_cpus_of_another_cache_do_not_matter() -> None:
    own = {**L3, f"{CPU}/cpu1/cache/index3/id": "7"}
    assert outcome(own) is NONE


@pytest.mark.parametrize(
    "changed",
    [
        {f"{RESCTRL}/rt/schemata": "L3:0=zz"},
        {f"{RESCTRL}/rt/schemata": "L3:0"},
        {f"{RESCTRL}/rt/cpus_list": "garbage"},
        {f"{RESCTRL}/rt/schemata": "L3:1=f0"},
        {f"{CPU}/cpu1/cache/index3/id": "9" * 5000},
        {f"{CPU}/cpu1/cache/index3/level": "garbage"},
    ],
)
def test_garbage_is_unknown(changed: Files) -> None:
    files = {**L3, **partition("f0", "1"), **OTHER, **changed}
    assert outcome(files) is UNKNOWN


def test_without_masks_of_the_cache_there_is_nothing_to_divide() -> None:
    top = {f"{RESCTRL}/schemata": "MB:0=100\n", f"{RESCTRL}/cpus_list": "0-1"}
    assert outcome({**L3, **top}) is NONE


def test_a_group_that_may_not_be_read_is_unknown() -> None:
    files = {**L3, **partition("f0", "1"), **OTHER}
    del files[f"{RESCTRL}/rt/cpus_list"]
    refused = Denied("Permission denied")
    assert outcome(files, also={f"{RESCTRL}/rt/cpus_list": refused}) is UNKNOWN
    assert outcome(L3, also={f"{RESCTRL}/schemata": refused}) is UNKNOWN


def test_without_cpus_set_apart_there_is_nothing_to_protect() -> None:
    assert outcome(CASES["cache_partition"].good.files, cpus=None) is NONE
