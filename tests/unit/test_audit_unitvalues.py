"""What the settings of a unit mean, as systemd.exec(5) and systemd.syntax(7) say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.trees import reader_of
from fakes.unitcases import FIFO, NAME, unit
from rtscope.host.errors import UsageError
from rtscope.machine.audit.unit import SECTIONS, merge, parse
from rtscope.machine.audit.unitfiles import load_unit, processes_of
from rtscope.machine.audit.unitmeaning import (
    IPC_LOCK,
    SYS_NICE,
    OddValueError,
    Policy,
    asks_for_realtime,
    boolean,
    contradicts_itself,
    cpus_of,
    has_capability,
    policy_of,
    rtprio_allowed,
    runs_as_root,
    soft_limit,
)
from rtscope.machine.audit.unitvalues import MAX_PRIORITY
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.reader import Denied

KI, EI = 1 << 10, 1 << 60
AMBIENT, BOUNDING = "AmbientCapabilities", "CapabilityBoundingSet"


# --- values -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "name", "priority", "real_time"),
    [
        ("", "other", 0, False),
        ("CPUSchedulingPriority=50\n", "other", 0, False),
        ("CPUSchedulingPolicy=batch\nCPUSchedulingPriority=50\n", "batch", 0, False),
        ("CPUSchedulingPolicy=idle\n", "idle", 0, False),
        ("CPUSchedulingPolicy=other\n", "other", 0, False),
        ("CPUSchedulingPolicy=fifo\n", "fifo", 1, True),
        ("CPUSchedulingPolicy=rr\nCPUSchedulingPriority=0\n", "rr", 1, True),
        ("CPUSchedulingPolicy=rr\nCPUSchedulingPriority=1\n", "rr", 1, True),
        ("CPUSchedulingPolicy=rr\nCPUSchedulingPriority=2\n", "rr", 2, True),
        ("CPUSchedulingPolicy=fifo\nCPUSchedulingPriority=99\n", "fifo", 99, True),
    ],
)
def test_a_policy_has_the_priority_that_systemd_gives_it(
    service: str, name: str, priority: int, real_time: bool
) -> None:
    policy = policy_of(unit(service))

    assert (policy.name, policy.priority) == (name, priority)
    assert policy.real_time is real_time


def test_a_policy_keeps_the_lines_that_name_it() -> None:
    one = unit(FIFO)
    policy, priority = (
        one.last("CPUSchedulingPolicy"),
        one.last("CPUSchedulingPriority"),
    )

    assert policy_of(one) == Policy("fifo", 80, policy, priority, requested=80)
    assert policy_of(unit("")) == Policy("other", 0, None, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "CPUSchedulingPolicy=FIFO",
            "systemd accepts other, batch, idle, fifo, rr, and numbers",
        ),
        ("CPUSchedulingPriority=100", "priorities are 1 to 99"),
        ("CPUSchedulingPriority=-1", "priorities are 1 to 99"),
        ("CPUSchedulingPriority=1x", "not a number"),
        ("CPUSchedulingPriority=%i", "not a number"),
        ("CPUAffinity=all", "not a CPU list"),
        ("CPUAffinity=numa 1", "not a CPU list"),
        ("CPUAffinity=123456", "not a CPU list"),
        ("RestrictRealtime=maybe", "neither yes nor no"),
        ("LimitMEMLOCK=64X", "not a limit"),
        ("LimitMEMLOCK=64k", "not a limit"),
        ("LimitRTPRIO=20:10", "the soft limit is above the hard one"),
        (f"LimitRTPRIO={'9' * 50}", "not a limit"),
        ("CPUSchedulingPriority=\N{ARABIC-INDIC DIGIT FIVE}", "not a number"),
        ("CPUQuota=50", "write a percentage, such as 50%"),
        ("LimitRTprio=5", "no such setting; near: LimitRTPRIO"),
        ("CPUSchedulingPolcy=fifo", "no such setting; near: CPUSchedulingPolicy"),
        ("After=x.service", "a setting of [Unit], not of [Service]"),
    ],
)
def test_a_line_that_systemd_refuses_counts_for_nothing(text: str, why: str) -> None:
    one = unit(f"{text}\n")
    key = text.partition("=")[0]

    assert [str(mistake) for mistake in one.mistakes] == [
        f"{text}: {why}; systemd ignores the line"
    ]
    assert one.mistakes[0].line.where == f"{NAME}:3"
    assert one.last(key) is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("CPUSchedulingPolicy=fifo\nCPUSchedulingPolicy=FIFO\n", "fifo"),
        ("CPUAffinity=1\nCPUAffinity=x\n", "1"),
        ("LimitMEMLOCK=1G\nLimitMEMLOCK=unlimited\n", "1G"),
    ],
)
def test_the_line_before_a_refused_one_stays(text: str, kept: str) -> None:
    one = unit(text)
    last = one.last(text.partition("=")[0])

    assert last is not None
    assert last.value == kept
    assert str(one.mistakes[0]).endswith(f"systemd ignores the line and keeps {kept}")


@pytest.mark.parametrize(
    "text",
    [
        "DynamicUser=perhaps",
        "User=a:b",
        "User=4294967295",
        "ExecStart=./relative",
        'ExecStart=/bin/true "open',
        "ExecStart=/bin/a\nExecStart=/bin/b",
        "[Service",
    ],
)
def test_some_mistakes_keep_a_unit_from_being_loaded(text: str) -> None:
    one = merge(NAME, {NAME: f"[Service]\n{text}\n"})

    assert [m.effect for m in one.mistakes] == ["systemd does not load the unit"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("CPUAffinity=0 3-1", "3-1"),
        ("AmbientCapabilities=CAP_SYS_NISE", "CAP_SYS_NISE"),
        ("AmbientCapabilities=CAP_SYS_NICE,CAP_IPC_LOCK", "CAP_SYS_NICE,CAP_IPC_LOCK"),
    ],
)
def test_a_part_that_systemd_passes_over_is_named(text: str, part: str) -> None:
    (mistake,) = unit(f"{text}\n").mistakes

    assert mistake.why.startswith(f"{part}: ")
    assert mistake.effect == "systemd ignores that part"


@pytest.mark.parametrize(
    ("service", "read"),
    [
        ("CPUSchedulingPolicy=1\nCPUSchedulingPriority=50\n", ("fifo", 50)),
        ("CPUSchedulingPolicy=2\nCPUSchedulingPriority=0x10\n", ("rr", 16)),
        ("CPUSchedulingPolicy=0x1\nCPUSchedulingPriority=+7\n", ("fifo", 7)),
        ("CPUSchedulingPolicy=0\n", ("other", 0)),
        ("CPUSchedulingPolicy=3\n", ("batch", 0)),
        ("CPUSchedulingPolicy=6\n", ("deadline", 0)),
        ("CPUSchedulingPriority=50\nCPUSchedulingPolicy=rr\n", ("rr", 50)),
        ("CPUSchedulingPriority=0\nCPUSchedulingPolicy=rr\n", ("rr", 1)),
        ("CPUSchedulingPolicy=rr\nCPUSchedulingPolicy=\n", ("other", 0)),
        ("CPUSchedulingPolicy=fi\\\n# inside\nfo\n", ("other", 0)),
    ],
)
def test_policies_are_names_or_numbers(service: str, read: tuple[str, int]) -> None:
    policy = policy_of(unit(service))

    assert (policy.name, policy.priority) == read


@pytest.mark.parametrize(
    ("service", "starts"),
    [
        ("", True),
        ("CPUSchedulingPolicy=fifo\n", True),
        ("CPUSchedulingPriority=0\nCPUSchedulingPolicy=fifo\n", True),
        ("CPUSchedulingPolicy=fifo\nCPUSchedulingPriority=0\n", False),
        ("CPUSchedulingPriority=5\n", False),
        ("CPUSchedulingPriority=5\nCPUSchedulingPolicy=batch\n", True),
        ("CPUSchedulingPolicy=batch\nCPUSchedulingPriority=5\n", False),
        ("CPUSchedulingPolicy=6\n", False),
    ],
)
def test_the_kernel_refuses_what_does_not_fit(service: str, starts: bool) -> None:
    assert policy_of(unit(service)).starts is starts


@pytest.mark.parametrize(
    ("key", "value"),
    [("User", "%i"), ("CPUAffinity", "%i"), ("CPUAffinity", "numa")],
)
def test_what_only_systemd_can_expand_is_no_mistake(key: str, value: str) -> None:
    one = unit(f"{key}={value}\n")
    assert not one.mistakes

    with pytest.raises(OddValueError, match=key):
        runs_as_root(one) if key == "User" else cpus_of(one, key)


def test_the_name_of_an_instance_is_put_in() -> None:
    text = "[Service]\nExecStart=/bin/loop %i\nCPUAffinity=%i\nUser=%i\n"

    assert cpus_of(merge("loop@3.service", {"x": text}), "CPUAffinity") == frozenset(
        {3}
    )
    assert merge("loop@.service", {"x": text}).all("User")[0].expands


@pytest.mark.parametrize(
    ("command", "root"),
    [
        ("/bin/x", False),
        ("-/bin/x", False),
        ("@/bin/x y", False),
        (":/bin/x", False),
        ("+/bin/x", True),
        ("-+/bin/x", True),
        ("!/bin/x", True),
        ("!!/bin/x", False),
    ],
)
def test_the_prefix_of_a_command_may_keep_root(command: str, root: bool) -> None:
    text = f"[Service]\nUser=robot\nExecStart={command}\n"

    assert runs_as_root(merge(NAME, {NAME: text})) is root


@pytest.mark.parametrize("word", ["1", "yes", "y", "true", "t", "on", "ON", "Yes"])
def test_a_word_for_yes_in_any_case_is_yes(word: str) -> None:
    assert boolean(unit(f"RestrictRealtime={word}\n").last("RestrictRealtime")) is True


@pytest.mark.parametrize("word", ["0", "no", "n", "false", "f", "off", "OFF", "No"])
def test_a_word_for_no_in_any_case_is_no(word: str) -> None:
    assert boolean(unit(f"RestrictRealtime={word}\n").last("RestrictRealtime")) is False
    assert boolean(None) is False


@given(st.sets(st.integers(0, 200), min_size=1), st.sampled_from([" ", ",", ", "]))
def test_a_cpu_list_reads_back_as_it_was_written(cpus: set[int], mark: str) -> None:
    text = format_cpulist(frozenset(cpus)).replace(",", mark)

    assert cpus_of(unit(f"CPUAffinity={text}\n"), "CPUAffinity") == frozenset(cpus)


def test_cpu_lists_of_several_lines_add_up() -> None:
    one = unit("CPUAffinity=0-1\nCPUAffinity=3\nCPUAffinity=5-5\nAllowedCPUs=7\n")

    assert cpus_of(one, "CPUAffinity") == frozenset({0, 1, 3, 5})
    assert cpus_of(one, "AllowedCPUs") == frozenset({7})
    assert cpus_of(one, "StartupAllowedCPUs") is None


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        ("infinity", -1),
        ("infinity:infinity", -1),
        ("0", 0),
        ("10:99", 10),
        ("10:infinity", 10),
        ("512", 512),
        ("3K", 3 * KI),
        ("3M", 3 * KI**2),
        ("3G", 3 * KI**3),
        ("3T", 3 * KI**4),
        ("3P", 3 * KI**5),
        ("3E", 3 * EI),
    ],
)
def test_a_limit_is_its_soft_part_in_bytes(value: str, limit: int) -> None:
    assert soft_limit(unit(f"LimitMEMLOCK={value}\n").last("LimitMEMLOCK")) == limit
    assert soft_limit(None) is None


# --- rights -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "root"),
    [
        ("", True),
        ("User=root\n", True),
        ("User=0\n", True),
        ("User=robot\n", False),
        ("User=robot\nUser=\n", True),
        ("DynamicUser=yes\n", False),
        ("DynamicUser=no\n", True),
        ("User=root\nDynamicUser=yes\n", False),
    ],
)
def test_a_unit_is_roots_unless_it_names_another_user(service: str, root: bool) -> None:
    assert runs_as_root(unit(service)) is root


# Of a capability: whether a unit of robot has it, and whether one of root has it.
SETS = [
    ("", False, True),
    (f"{AMBIENT}={SYS_NICE}\n", True, True),
    (f"{AMBIENT}=CAP_KILL {SYS_NICE}\n", True, True),
    (f"{AMBIENT}={IPC_LOCK}\n", False, True),
    (f"{AMBIENT}=\n", False, True),
    (f"{AMBIENT}={SYS_NICE}\n{AMBIENT}=\n", False, True),
    (f"{AMBIENT}=~\n", True, True),
    (f"{AMBIENT}=~CAP_KILL\n", True, True),
    (f"{AMBIENT}=~{SYS_NICE}\n", False, True),
    (f"{AMBIENT}={SYS_NICE}\n{AMBIENT}=CAP_KILL\n", True, True),
    (f"{AMBIENT}={SYS_NICE}\n{AMBIENT}=~CAP_KILL\n", True, True),
    (f"{AMBIENT}={SYS_NICE}\n{AMBIENT}=~{SYS_NICE}\n", False, True),
    (f"{AMBIENT}=CAP_KILL\n{AMBIENT}=~CAP_KILL\n", False, True),
    (f"{BOUNDING}={SYS_NICE}\n", False, True),
    (f"{BOUNDING}=CAP_KILL\n", False, False),
    (f"{BOUNDING}=\n", False, False),
    (f"{BOUNDING}=~\n", False, True),
    (f"{BOUNDING}=~{SYS_NICE}\n", False, False),
    (f"{BOUNDING}=~CAP_KILL\n", False, True),
    (f"{BOUNDING}=CAP_KILL\n{BOUNDING}={SYS_NICE}\n", False, True),
    (f"{BOUNDING}=~{SYS_NICE}\n{BOUNDING}=~CAP_KILL\n", False, False),
    (f"{AMBIENT}={SYS_NICE}\n{BOUNDING}=CAP_KILL\n", False, False),
    (f"{AMBIENT}={SYS_NICE}\n{BOUNDING}={SYS_NICE}\n", True, True),
]


@pytest.mark.parametrize(("lines", "robots", "roots"), SETS)
def test_a_capability_is_had_if_the_sets_hold_it(
    lines: str, robots: bool, roots: bool
) -> None:
    assert has_capability(unit(f"User=robot\n{lines}"), SYS_NICE) is robots
    assert has_capability(unit(lines), SYS_NICE) is roots


@pytest.mark.parametrize(("lines", "robots", "roots"), SETS)
def test_who_has_the_capability_may_ask_for_every_priority(
    lines: str, robots: bool, roots: bool
) -> None:
    robot = unit(f"User=robot\n{lines}LimitRTPRIO=7\n")

    assert rtprio_allowed(robot) == (MAX_PRIORITY if robots else 7)
    assert rtprio_allowed(unit(lines)) == (MAX_PRIORITY if roots else 0)


@pytest.mark.parametrize(
    ("lines", "contradicts"),
    [
        ("", False),
        (f"{BOUNDING}=CAP_KILL\n", False),
        (f"{AMBIENT}={SYS_NICE}\n", False),
        (f"{AMBIENT}={SYS_NICE}\n{BOUNDING}={SYS_NICE}\n", False),
        (f"{AMBIENT}={SYS_NICE}\n{BOUNDING}=CAP_KILL\n", True),
        (f"{AMBIENT}={SYS_NICE}\n{BOUNDING}=~{SYS_NICE}\n", True),
        (f"{AMBIENT}=CAP_KILL\n{BOUNDING}=~{SYS_NICE}\n", False),
    ],
)
def test_giving_what_is_taken_away_is_a_contradiction(
    lines: str, contradicts: bool
) -> None:
    assert contradicts_itself(unit(lines), SYS_NICE) is contradicts


@pytest.mark.parametrize(
    ("limit", "allowed"),
    [("0", 0), ("1", 1), ("98", 98), ("99", 99), ("100", 99), ("infinity", 99)],
)
def test_a_limit_allows_priorities_up_to_itself(limit: str, allowed: int) -> None:
    assert rtprio_allowed(unit(f"User=robot\nLimitRTPRIO={limit}\n")) == allowed


@pytest.mark.parametrize(
    ("service", "asks"),
    [
        ("", False),
        ("Nice=-20\nUser=robot\n", False),
        ("CPUSchedulingPolicy=batch\n", False),
        ("CPUSchedulingPolicy=rr\n", True),
        ("CPUSchedulingPriority=5\n", True),
        ("LimitRTPRIO=0\n", False),
        ("LimitRTPRIO=1\n", True),
        ("LimitRTPRIO=infinity\n", True),
        (f"{AMBIENT}={SYS_NICE}\n", True),
        (f"{AMBIENT}={IPC_LOCK}\n", False),
        (f"{BOUNDING}={SYS_NICE}\n", False),
    ],
)
def test_a_unit_asks_for_real_time_if_one_of_its_settings_does(
    service: str, asks: bool
) -> None:
    assert asks_for_realtime(unit(service)) is asks


# --- files ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read", "odd"),
    [
        ("[Service]\n\n=x\n", [], [("", "=x", "u:3")]),
        ("[Service]\n =x\n", [], [("", "=x", "u:2")]),
        ("[Service]\nwords\n", [], [("", "words", "u:2")]),
        ("[Service]\n[odd\n", [], [("", "[odd", "u:2")]),
        ("[Service]\nodd]\n", [], [("", "odd]", "u:2")]),
        ("[A=b]\n[Service]\nA=b\n", [("A", "b", "u:3")], []),
        ("[Service]\nA=\\\n# no\nb\\\n", [("A", "b", "u:2")], []),
        ("[Service]\nA=b \\\n\nC=d\n", [("A", "b", "u:2"), ("C", "d", "u:4")], []),
        ("[Service]\nA=b\\\\\\\nc\n", [("A", "b\\\\ c", "u:2")], []),
        ("\t[Service]\r\n\tA = b\t\r\n", [("A", "b", "u:2")], []),
    ],
)
def test_a_line_is_an_assignment_or_named_as_odd(
    text: str, read: list[tuple[str, ...]], odd: list[tuple[str, ...]]
) -> None:
    assignments, ignored = parse(text, name="u")

    assert [(a.key, a.value, a.where) for a in assignments] == read
    lines = [mistake.line for mistake in ignored]
    assert [(a.key, a.value, a.where) for a in lines] == odd
    assert {a.section for a in (*assignments, *lines)} == {"Service"}


def test_a_unit_keeps_what_each_of_its_files_says_in_their_order() -> None:
    found = merge(
        NAME, {"a": "[Service]\nNice=1\nodd\n", "b": "[Service]\nNice=2\nodder\n"}
    )

    assert (found.name, found.kind, found.files) == (NAME, "service", ("a", "b"))
    assert [(a.value, a.where) for a in found.all("Nice")] == [
        ("1", "a:2"),
        ("2", "b:2"),
    ]
    assert [(a.value, a.where) for a in (m.line for m in found.mistakes)] == [
        ("odd", "a:3"),
        ("odder", "b:3"),
    ]
    assert (found.installed, found.threads) == (False, None)
    assert found.why_no_threads == "not checked whether it runs"


@pytest.mark.parametrize(("kind", "section"), SECTIONS.items())
def test_each_kind_of_unit_has_its_section(kind: str, section: str) -> None:
    text = "[Service]\nNice=1\n[Socket]\nNice=2\n[Mount]\nNice=3\n[Swap]\nNice=4\n"
    wanted = {"Service": "1", "Socket": "2", "Mount": "3", "Swap": "4"}
    name = f"disk.{kind}"
    found = load_unit(name, reader_of({f"/etc/systemd/system/{name}": text}))

    assert found.installed
    assert [a.value for a in found.all("Nice")] == [wanted[section]]


# systemd.unit(5), table 1: of the system's manager, what counts more first.
PLACES = (
    *("/etc/systemd/system.control", "/run/systemd/system.control"),
    *("/run/systemd/transient", "/run/systemd/generator.early"),
    *("/etc/systemd/system", "/run/systemd/system", "/run/systemd/generator"),
    *("/usr/local/lib/systemd/system", "/usr/lib/systemd/system"),
    *("/lib/systemd/system", "/run/systemd/generator.late"),
)


@pytest.mark.parametrize("first", range(len(PLACES)))
def test_of_several_places_the_one_that_systemd_prefers_counts(first: int) -> None:
    files = {f"{place}/{NAME}": "[Service]\nNice=1\n" for place in PLACES[first:]}

    assert load_unit("loop", reader_of(files)).files == (f"{PLACES[first]}/{NAME}",)


def test_an_instance_has_its_own_file_or_its_templates() -> None:
    place = "/etc/systemd/system"
    files = {
        f"{place}/a@.service": "[Service]\n",
        f"{place}/a@x.service": "[Service]\n",
    }

    assert load_unit("a@x", reader_of(files)).files == (f"{place}/a@x.service",)
    assert load_unit("a@y", reader_of(files)).files == (f"{place}/a@.service",)
    assert load_unit("a@.service", reader_of(files)).files == (f"{place}/a@.service",)


def test_an_unreadable_drop_in_is_masked_and_what_else_lies_there_is_none() -> None:
    place = "/etc/systemd/system"
    also = {f"{place}/{NAME}.d/2.conf": Denied("not a regular file")}
    files = {
        f"{place}/{NAME}": "[Service]\n",
        f"{place}/{NAME}.d/1.conf": "[Service]\nNice=1\n",
        f"{place}/other.service.d/3.conf": "[Service]\nNice=3\n",
    }
    found = load_unit(NAME, reader_of(files, also=also))

    assert found.files == (f"{place}/{NAME}", f"{place}/{NAME}.d/1.conf")


def test_a_unit_of_odd_bytes_is_read_all_the_same() -> None:
    files = {
        f"/etc/systemd/system/{NAME}": b"[Service]\nUser=\xff\n",
        f"/etc/systemd/system/{NAME}.d/1.conf": b"[Service]\nGroup=\xff\n",
    }
    found = load_unit(NAME, reader_of(files))

    assert [a.value for a in (*found.all("User"), *found.all("Group"))] == [
        "\ufffd"
    ] * 2


def refused(name: str, **also: Denied) -> str:
    with pytest.raises(UsageError) as caught:
        load_unit(name, reader_of({}, also={k: v for k, v in also.items()}))
    return str(caught.value)


def test_a_refusal_names_the_unit_and_the_reason() -> None:
    etc = f"/etc/systemd/system/{NAME}"
    denied = {etc: Denied("not a regular file")}

    assert refused("loop.timer") == (
        "--unit loop.timer: units that start processes end in "
        ".service, .socket, .mount, .swap"
    )
    assert refused("loop") == (
        "--unit loop.service: no such unit in systemd's search path"
    )
    assert refused("/nowhere/loop.service") == (
        "--unit loop.service: no such unit in /nowhere"
    )
    assert refused("loop", **denied) == (
        f"--unit loop.service: {etc} cannot be read (not a regular file); a link to "
        "/dev/null masks a unit"
    )


def test_a_masked_unit_is_named_with_its_file() -> None:
    path = f"/lib/systemd/system/{NAME}"
    with pytest.raises(UsageError) as caught:
        load_unit("loop", reader_of({path: ""}))

    assert str(caught.value) == (
        f"--unit loop.service: {path} is empty: the unit is masked"
    )


def test_a_process_that_ended_meanwhile_is_in_no_unit() -> None:
    files = {
        "/proc/12/cgroup": "0::/system.slice/loop.service\n",
        "/proc/13/cgroup": "",
    }

    assert processes_of(unit(""), reader_of(files)) == {12}
    assert processes_of(unit(""), reader_of({})) == frozenset()
