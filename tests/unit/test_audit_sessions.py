"""What sessions and user managers are given: limits.conf, rtkit, units of a user."""

from dataclasses import replace

import pytest

from fakes.audited import Case, judged
from fakes.trees import Files, reader_of
from rtscope.machine.audit.examine import catalogue, examine, read_context
from rtscope.machine.audit.model import Check, CheckOutcome, Severity
from rtscope.machine.audit.sessionchecks import read_limits
from rtscope.machine.audit.unit import merge
from rtscope.machine.audit.unitfiles import load_unit
from rtscope.machine.audit.unitmeaning import SYS_NICE, has_capability, runs_as_root

PASS, FAIL = CheckOutcome.PASS, CheckOutcome.FAIL
UNKNOWN, NONE = CheckOutcome.UNKNOWN, CheckOutcome.NOT_APPLICABLE
MAIN = "/etc/security/limits.conf"
AUDIO = "/etc/security/limits.d/audio.conf"
PAM = {"/etc/pam.d/login": "session required pam_limits.so\n"}

# --- limits.conf ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("@audio - rtpio 95", "rtpio: no such item, near: rtprio"),
        ("@audio - memlok unlimited", "memlok: no such item, near: memlock"),
        ("@audio both rtprio 95", "both: not soft, hard or -"),
        ("@audio rtprio 95", "a line has four words"),
        ("@audio - rtprio", "a line has four words"),
        ("@audio - rtprio 95%", "95%: not a number"),
        ("@audio - memlock 64M", "64M: not a number in KiB, nor unlimited"),
        ("@audio - memlock unlimitd", "unlimitd: not a number in KiB"),
        ("@audio - rtprio 100", "100: priorities are 0 to 99"),
        (f"@audio - rtprio {'9' * 5000}", "not a number"),
        ("@audio - nice -21", "-21: nice values are -20 to 19"),
        ("@audio - nice unlimited", "unlimited: not a number"),
        ("%audio - rtprio 95", "% is for maxlogins alone; a group is @audio"),
        ("@audio = rtprio 95", "=: not soft, hard or -"),
        ("@audio\t-\trtprio\t95 now", "'now' behind the value is passed over"),
    ],
)
def test_a_line_that_pam_limits_skips_is_named(line: str, why: str) -> None:
    check = judged("limits_files", Case({AUDIO: f"# c\n{line}\n", **PAM}))

    assert (check.outcome, check.severity) == (FAIL, Severity.MEDIUM)
    assert check.evidence[0].path == f"{AUDIO}:2"
    assert why in check.message


@pytest.mark.parametrize(
    ("line", "who"),
    [
        ("@audio - rtprio 95", "rtprio 95 for group audio"),
        ("robot soft rtprio 50 # note", "rtprio soft 50 for user robot"),
        ("* hard memlock unlimited", "memlock hard unlimited for all users but root"),
        ("1000: - nice -19", "nice -19 for UID 1000:"),
        (":1000 - rtprio 5", "rtprio 5 for UID :1000"),
        ("@500:600 - RTPRIO 5", "rtprio 5 for GID 500:600"),
        ("  @realtime\t-\tmemlock   -1", "memlock -1 for group realtime"),
    ],
)
def test_who_gets_what_is_said(line: str, who: str) -> None:
    check = judged("limits_files", Case({MAIN: f"{line}\n", **PAM}))

    assert check.outcome is PASS
    assert check.message == f"{who}; for login sessions, no system unit"


def test_of_two_lines_the_later_counts_and_limits_d_comes_after() -> None:
    limits = read_limits(
        {
            AUDIO: "@audio - rtprio 95\n",
            MAIN: "@audio - rtprio 10\n",
            "/etc/security/limits.d/99.conf": "@audio soft rtprio 80\n",
        }
    )

    assert [(one.kind, one.value) for one in limits.of("rtprio")] == [("-", "95")]
    assert {one.value for one in limits.overridden} == {"10", "80"}


def test_a_soft_and_a_hard_limit_are_two() -> None:
    text = "@audio soft rtprio 50\n@audio hard rtprio 90\n@audio - nice -10\n"

    assert len(read_limits({MAIN: text}).lines) == 3


@pytest.mark.parametrize(
    ("files", "outcome", "says"),
    [
        ({}, UNKNOWN, "no /etc/security/limits.conf, and no file"),
        ({**PAM}, NONE, "no /etc/security/limits.conf: login sessions"),
        ({MAIN: "# nothing\n"}, PASS, "no line on rtprio, memlock or nice"),
        ({MAIN: "* soft core 0\nftp -\n"}, PASS, "no line on rtprio"),
        (
            {MAIN: "@audio - rtprio 9\n", "/etc/pam.d/login": "auth x\n"},
            *(FAIL, "no service of /etc/pam.d has pam_limits.so"),
        ),
        ({MAIN: "@audio - rtprio 9\n"}, PASS, "rtprio 9 for group audio"),
    ],
)
def test_files_that_give_nothing_are_told(
    files: dict[str, str], outcome: CheckOutcome, says: str
) -> None:
    check = judged("limits_files", Case(files))

    assert check.outcome is outcome
    assert says in check.message


# --- rtkit ------------------------------------------------------------------------

RTKIT = "/usr/lib/systemd/system/rtkit-daemon.service"


@pytest.mark.parametrize(
    ("files", "outcome", "says"),
    [
        ({}, UNKNOWN, "no visible process"),
        (
            {"/proc/7/comm": "rtkit-daemon\n"},
            FAIL,
            "it runs: SCHED_RR up to priority 20",
        ),
        ({RTKIT: "[Service]\nExecStart=/usr/libexec/rtkit-daemon\n"}, FAIL, "200 ms"),
        (
            {
                RTKIT: "[Service]\nExecStart=/usr/libexec/rtkit-daemon\n",
                "/etc/systemd/system/rtkit-daemon.service.d/1.conf": "[Service]\n"
                "ExecStart=\nExecStart=/usr/libexec/rtkit-daemon "
                "--max-realtime-priority=89 --rttime-usec-max=500000\n",
            },
            *(FAIL, "up to priority 89"),
        ),
        ({"/proc/7/comm": "rtkit-test\n"}, PASS, "no rtkit"),
    ],
)
def test_rtkit_is_a_note_with_its_limits(
    files: dict[str, str], outcome: CheckOutcome, says: str
) -> None:
    check = judged("rtkit", Case(files))

    assert check.outcome is outcome
    assert check.severity is Severity.INFO
    assert says in check.message


# --- units of a user's manager ----------------------------------------------------

MANAGER = "/usr/lib/systemd/system/user@.service"
DROP_IN = "/etc/systemd/system/user@.service.d/rt.conf"
PLAIN = {MANAGER: "[Service]\nUser=%i\nPAMName=systemd-user\n"}
GIVEN = {**PLAIN, DROP_IN: "[Service]\nLimitRTPRIO=60\nLimitMEMLOCK=infinity\n"}
BY_PAM = {
    **PLAIN,
    AUDIO: "@audio - rtprio 95\n",
    "/etc/pam.d/systemd-user": "session required pam_limits.so\n",
}
FIFO = "CPUSchedulingPolicy=fifo\nCPUSchedulingPriority=50\n"


def of_user(service: str, files: Files) -> Check:
    kinds = [catalogue()["unit_user_manager"]]
    context = read_context(reader_of(files), kinds)
    name = "motor.service"
    text = f"[Service]\nExecStart=/bin/true\n{service}"
    unit = replace(merge(name, {name: text}), of_user=True)
    return examine(replace(context, unit=unit), kinds)[0]


@pytest.mark.parametrize(
    ("service", "files", "outcome", "says"),
    [
        (FIFO, PLAIN, FAIL, "the unit does not start (214/SETSCHEDULER)"),
        (FIFO, GIVEN, PASS, "nothing that"),
        (FIFO.replace("50", "61"), GIVEN, FAIL, "user@.service has LimitRTPRIO=60"),
        (FIFO, BY_PAM, UNKNOWN, "95 to group audio"),
        ("LimitRTPRIO=60\n", PLAIN, FAIL, "LimitRTPRIO=60: capped"),
        ("LimitRTPRIO=60\n", GIVEN, PASS, "nothing that"),
        ("LimitRTPRIO=infinity\n", GIVEN, FAIL, "capped"),
        ("LimitMEMLOCK=infinity\n", PLAIN, FAIL, "8 MiB or less"),
        ("LimitMEMLOCK=1G\n", GIVEN, PASS, "nothing that"),
        ("Nice=-5\n", PLAIN, FAIL, "(201/NICE)"),
        ("Nice=5\n", PLAIN, PASS, "nothing that"),
        ("User=robot\n", GIVEN, FAIL, "only the system's manager can"),
        ("AmbientCapabilities=CAP_SYS_NICE\n", GIVEN, FAIL, "only the system's"),
        ("AllowedCPUs=1\n", GIVEN, FAIL, "does not delegate the controller cpuset"),
        ("CPUAffinity=1\nCPUWeight=50\n", PLAIN, PASS, "nothing that"),
    ],
)
def test_a_users_manager_gives_no_more_than_it_has(
    service: str, files: Files, outcome: CheckOutcome, says: str
) -> None:
    check = of_user(service, files)

    assert check.outcome is outcome, check.message
    assert says in check.message


def test_a_unit_of_a_user_is_not_roots_and_has_no_capability() -> None:
    unit = replace(merge("a.service", {"a": "[Service]\n"}), of_user=True)

    assert not runs_as_root(unit)
    assert not has_capability(unit, SYS_NICE)


@pytest.mark.parametrize(
    "place",
    [
        "/users/me/.config/systemd/user",
        "/users/me/.local/share/systemd/user",
        "/etc/systemd/user",
        "/usr/lib/systemd/user",
    ],
)
def test_a_unit_is_found_where_a_users_manager_looks(place: str) -> None:
    reader = reader_of({f"{place}/motor.service": "[Service]\nNice=1\n"})

    found = load_unit("motor", reader, of_user=True, home="/users/me")

    assert (found.of_user, found.files) == (True, (f"{place}/motor.service",))
