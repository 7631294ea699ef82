"""What an audit says of rights and limits, and of what denials and lockdown hide."""

import errno
from dataclasses import replace

import pytest

from fakes.auditcases import CASES
from fakes.audited import Case, judged, limits
from rtscope.machine.audit.context import Observed, Trial
from rtscope.machine.audit.model import CheckOutcome
from rtscope.machine.reader import Denied


def test_lockdown_is_named_where_it_hides_the_fair_server() -> None:
    assert "lockdown" in judged("fair_server", CASES["fair_server"].unseen).message


def test_a_fair_server_of_which_a_part_is_refused_is_not_said_to_be_off() -> None:
    folder = "/sys/kernel/debug/sched/fair_server"
    refused = {f"{folder}/cpu1/runtime": Denied("Permission denied")}
    off = Case({f"{folder}/cpu0/runtime": "0"}, also=refused, cpus=None)
    on = replace(off, files={f"{folder}/cpu0/runtime": "50000000"})

    check = judged("fair_server", off)
    assert check.outcome is CheckOutcome.UNKNOWN
    assert check.message == "only partly readable"
    assert [e.path for e in check.evidence] == list(refused)
    assert judged("fair_server", on).outcome is CheckOutcome.FAIL


def test_a_group_that_does_not_share_out_cpu_time_needs_no_budget() -> None:
    bad = CASES["group_budget"].bad
    path = "/sys/fs/cgroup/user.slice/cgroup.controllers"

    check = judged(
        "group_budget", replace(bad, files={**bad.files, path: "cpuset memory"})
    )

    assert check.outcome is CheckOutcome.PASS


@pytest.mark.parametrize(
    ("rtprio", "capabilities", "says"),
    [
        ("0", "0", "neither CAP_SYS_NICE nor a limit on real-time priorities above 0"),
        ("50", "0", "no CAP_SYS_NICE, and RLIMIT_RTPRIO is 50"),
        (
            "0",
            "800000",
            "despite CAP_SYS_NICE: a control group, a seccomp filter or a container",
        ),
    ],
)
def test_a_refused_policy_names_who_refused(
    rtprio: str, capabilities: str, says: str
) -> None:
    files = {**limits(rtprio=rtprio), "/proc/self/status": f"CapEff:\t{capabilities}\n"}
    refused = Observed(trial=Trial("FIFO", errno.EPERM, "Operation not permitted"))

    check = judged("realtime_policy", Case(files, observed=refused))

    assert check.message == f"EPERM: {says}"


def test_a_capability_goes_beyond_a_limit() -> None:
    files = {**limits(rtprio="0"), "/proc/self/status": "CapEff:\t0000000000800000\n"}

    assert judged("rtprio_limit", Case(files)).outcome is CheckOutcome.PASS


def test_a_denied_pattern_is_unknown_and_names_the_place() -> None:
    path = "/sys/kernel/mm/ksm/run"
    check = judged("ksm", Case({}, {path: Denied("Permission denied")}))

    assert check.evidence[0].path == path


@pytest.mark.parametrize("name", ["current_tracer", "trace_instances", "trace_events"])
def test_what_lockdown_takes_away_is_named(name: str) -> None:
    lockdown = {"/sys/kernel/security/lockdown": "none integrity [confidentiality]"}

    check = judged(name, Case(lockdown))

    assert check.outcome is CheckOutcome.UNKNOWN
    assert check.message.startswith("kernel lockdown hides /sys/kernel/tracing/")
