"""Units of systemd: read as systemd reads them, judged by what they say and have."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.trees import Files, reader_of
from fakes.unitcases import CASES, FIFO, NAME, RT_GROUPS, Case, judged, unit
from rtscope.host.errors import UsageError
from rtscope.machine.audit.examine import UNIT, auditing, auditing_a_unit
from rtscope.machine.audit.model import CheckOutcome, Severity
from rtscope.machine.audit.unit import merge, parse
from rtscope.machine.audit.unitfiles import load_unit, processes_of

# These say nothing of a unit that has nothing of the kind.
NOT_ASKED = {"unit_nice", "unit_quota"}
OF_THE_POLICY = (
    *("unit_priority", "unit_top_priority", "unit_restricts_realtime", "unit_nice"),
    *("unit_rttime", "unit_reset_on_fork", "unit_quota"),
)


def test_every_check_of_a_unit_has_its_three_cases() -> None:
    assert set(CASES) == {kind.id for kind in auditing_a_unit()}
    assert not [kind for kind in auditing() if kind.group == UNIT]


@pytest.mark.parametrize("name", CASES)
def test_the_good_unit_passes(name: str) -> None:
    check = judged(name, CASES[name][0])

    wanted = CheckOutcome.NOT_APPLICABLE if name in NOT_ASKED else CheckOutcome.PASS
    assert check.outcome is wanted, check.message


@pytest.mark.parametrize("name", CASES)
def test_the_bad_unit_fails_and_the_line_is_named(name: str) -> None:
    check = judged(name, CASES[name][1])

    assert check.outcome is CheckOutcome.FAIL, check.message
    assert check.evidence
    if name != "unit_threads":
        assert check.evidence[0].path.startswith(f"{NAME}:")


@pytest.mark.parametrize("name", CASES)
def test_what_only_systemd_or_the_machine_can_tell_is_unknown(name: str) -> None:
    check = judged(name, CASES[name][2])

    # Nothing of a policy can be unknown: systemd expands no specifier in it.
    known = ("unit_capabilities", *OF_THE_POLICY)
    wanted = CheckOutcome.NOT_APPLICABLE if name in known else CheckOutcome.UNKNOWN
    assert check.outcome is wanted, check.message


@pytest.mark.parametrize("kind", auditing_a_unit(), ids=lambda kind: kind.id)
def test_an_ordinary_unit_fails_nothing(kind: object) -> None:
    name = kind.id  # type: ignore[attr-defined]
    ordinary = Case("User=www\nNice=5\nCPUWeight=200\nRestrictRealtime=yes\n")

    check = judged(name, replace(ordinary, config=RT_GROUPS))
    assert check.outcome is not CheckOutcome.FAIL or check.severity is Severity.INFO


@pytest.mark.parametrize(
    ("service", "says"),
    [
        ("CPUSchedulingPriority=80\n", "a priority, but the policy is other"),
        ("CPUSchedulingPolicy=fifo\n", "fifo without a priority: it gets 1"),
        ("CPUSchedulingPolicy=rr\nCPUSchedulingPriority=0\n", "rr with priority 0"),
    ],
)
def test_a_policy_and_a_priority_belong_together(service: str, says: str) -> None:
    assert judged("unit_priority", Case(service)).message.startswith(says)


@pytest.mark.parametrize(
    "line",
    [
        "CPUSchedulingPolicy=deadline",
        "CPUSchedulingPriority=100",
        "CPUSchedulingPriority=high",
        "CPUAffinity=a-b",
        "CPUAffinity=3-1",
        "RestrictRealtime=maybe",
        "LimitRTPRIO=lots",
        "LimitMEMLOCK=64X",
        "no assignment at all",
    ],
)
def test_what_systemd_would_ignore_is_named_with_its_line(line: str) -> None:
    check = judged("unit_values", Case(f"{line}\n"))

    assert check.outcome is CheckOutcome.FAIL
    assert check.message.startswith(f"{NAME}:3: ")
    assert line.partition("=")[2] in check.message


@pytest.mark.parametrize(
    ("service", "outcome"),
    [
        ("User=robot\nAmbientCapabilities=CAP_SYS_NICE\n", CheckOutcome.PASS),
        ("User=robot\nAmbientCapabilities=~CAP_SYS_NICE\n", CheckOutcome.FAIL),
        ("User=robot\nAmbientCapabilities=~CAP_KILL\n", CheckOutcome.PASS),
        ("User=robot\n", CheckOutcome.FAIL),
        ("User=root\n", CheckOutcome.PASS),
        ("DynamicUser=yes\n", CheckOutcome.FAIL),
        ("CapabilityBoundingSet=CAP_KILL\n", CheckOutcome.FAIL),
        (
            "CapabilityBoundingSet=CAP_KILL\nCapabilityBoundingSet=~\n",
            CheckOutcome.PASS,
        ),
        ("CapabilityBoundingSet=\n", CheckOutcome.FAIL),
        ("CapabilityBoundingSet=\nLimitRTPRIO=infinity\n", CheckOutcome.PASS),
        ("User=robot\nLimitRTPRIO=10:99\n", CheckOutcome.FAIL),
    ],
)
def test_rights_are_merged_as_systemd_merges_them(
    service: str, outcome: CheckOutcome
) -> None:
    assert judged("unit_rtprio", Case(FIFO + service)).outcome is outcome


# --- reading ----------------------------------------------------------------------


def test_lines_are_read_as_systemd_syntax_says() -> None:
    text = (
        "[Service]\n# a comment\n; another\n\n  Key = a \\\n# in between\n  b \\\n"
        "; too\nc\nLast=x\\\\\nEmpty=\nEquals=a=b\n"
    )
    assignments, ignored = parse(text, name="u")

    assert [(a.key, a.value, a.where) for a in assignments] == [
        ("Key", "a  b  c", "u:5"),
        ("Last", "x\\\\", "u:10"),
        ("Empty", "", "u:11"),
        ("Equals", "a=b", "u:12"),
    ]
    assert ignored == []


def test_an_empty_assignment_forgets_those_before_it_and_no_others() -> None:
    found = unit(
        "CPUAffinity=0\nCPUAffinity=\nCPUAffinity=1\nCPUAffinity=2,3\nNice=1\n"
    )

    assert [a.value for a in found.all("CPUAffinity")] == ["1", "2,3"]
    assert found.last("Nice") is not None
    assert unit("Nice=1\nNice=\n").last("Nice") is None


def test_other_sections_are_not_the_services() -> None:
    found = merge(
        NAME, {NAME: "Nice=1\n[Unit]\nNice=2\n[Service]\n[Install]\nNice=3\n"}
    )

    assert found.last("Nice") is None
    assert [str(mistake) for mistake in found.mistakes] == [
        "Nice=1: an assignment outside of a section; systemd ignores the line",
        "Nice=2: a setting of [Service], not of [Unit]; systemd ignores the line",
        "Nice=3: a setting of [Service], not of [Install]; systemd ignores the line",
    ]


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    parse(text, name="u")


# --- finding ----------------------------------------------------------------------

ETC, USR, RUN = "/etc/systemd/system", "/usr/lib/systemd/system", "/run/systemd/system"


def service(nice: int) -> str:
    return f"[Service]\nNice={nice}\n"


def nice_of(name: str, files: Files) -> str | None:
    found = load_unit(name, reader_of(files)).last("Nice")
    return found.value if found else None


def test_the_administrators_unit_goes_before_the_distributions() -> None:
    files = {f"{USR}/{NAME}": service(1), f"{ETC}/{NAME}": service(2)}

    assert nice_of("loop", files) == "2"
    assert load_unit(NAME, reader_of(files)).files == (f"{ETC}/{NAME}",)


def test_drop_ins_follow_by_name_and_the_nearer_one_hides_its_namesake() -> None:
    files = {
        f"{USR}/{NAME}": service(0),
        f"{USR}/{NAME}.d/50-b.conf": service(1),
        f"{ETC}/{NAME}.d/20-a.conf": service(2),
        f"{RUN}/{NAME}.d/50-b.conf": service(3),
        f"{USR}/service.d/90-all.conf": service(4),
        f"{USR}/{NAME}.d/notes.txt": service(5),
    }
    found = load_unit(NAME, reader_of(files))

    assert found.files == (
        f"{USR}/{NAME}",
        f"{ETC}/{NAME}.d/20-a.conf",
        f"{RUN}/{NAME}.d/50-b.conf",
        f"{USR}/service.d/90-all.conf",
    )


def test_drop_ins_of_prefixes_and_templates_count_too() -> None:
    files = {
        f"{USR}/a-b-c@.service": service(0),
        f"{ETC}/a-.service.d/1.conf": service(1),
        f"{ETC}/a-b-.service.d/2.conf": service(2),
        f"{ETC}/a-b-c@.service.d/3.conf": service(3),
        f"{ETC}/a-b-c@x.service.d/4.conf": service(4),
    }
    found = load_unit("a-b-c@x.service", reader_of(files))

    assert [path[-6:] for path in found.files[1:]] == [f"{n}.conf" for n in "1234"]


def test_a_further_prefix_hides_the_nearer_ones_namesake() -> None:
    files = {
        f"{USR}/a-b.service": service(0),
        f"{ETC}/a-.service.d/1.conf": service(1),
        f"{ETC}/a-b.service.d/1.conf": service(2),
    }

    assert nice_of("a-b.service", files) == "2"


@pytest.mark.parametrize(
    ("name", "files", "why"),
    [
        ("nope", {}, "no such unit in systemd's search path"),
        ("loop", {f"{ETC}/{NAME}": ""}, "the unit is masked"),
        ("loop.timer", {}, "units that start processes end in .service"),
    ],
)
def test_a_unit_that_is_none_is_refused(name: str, files: Files, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        load_unit(name, reader_of(files))


def test_a_file_is_read_with_the_drop_ins_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.service.d").mkdir()
    (tmp_path / "mine.service").write_text(service(1))
    (tmp_path / "mine.service.d" / "x.conf").write_text(service(2))
    found = load_unit(str(tmp_path / "mine.service"), reader_of({}))

    assert found.last("Nice") is not None
    assert [a.value for a in found.all("Nice")] == ["1", "2"]
    assert not found.installed


def test_a_units_processes_are_those_of_its_control_group() -> None:
    files = {
        "/proc/7/cgroup": "0::/system.slice/loop.service\n",
        "/proc/8/cgroup": "0::/system.slice/loop.service/below\n",
        "/proc/9/cgroup": "0::/system.slice/other-loop.service\n",
        "/proc/10/cgroup": "5:cpu:/\n1:name=systemd:/system.slice/loop.service\n",
    }

    assert processes_of(unit(""), reader_of(files)) == {7, 8, 10}
