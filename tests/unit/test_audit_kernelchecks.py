"""What the checks of the kernel answer at their edges."""

from dataclasses import replace

import pytest

from fakes.audited import (
    BOOTED,
    FAIL,
    HEAD,
    NO,
    NONE,
    PASS,
    REFUSED,
    RELEASE,
    UNKNOWN,
    Case,
    Shown,
    Wanted,
    answer,
    shown_of,
)
from fakes.trees import reader_of
from rtscope.machine.audit.context import Expected, Observed
from rtscope.machine.audit.examine import (
    catalogue,
    context_of_config,
    examine,
    read_context,
)
from rtscope.machine.audit.model import Check, CheckOutcome, Profile
from rtscope.machine.kernelconfig import parse_config
from rtscope.machine.reader import Content

CMDLINE = "/proc/cmdline"
CONFIG = "/boot/config-6.12.1"


def of_config(name: str, text: str) -> tuple[CheckOutcome, str, Shown]:
    kinds = [catalogue()[name]]
    context = context_of_config(parse_config(text.encode(), source="config"))
    found = examine(context, kinds)[0]
    return found.outcome, found.message, shown_of(found)


# --- the configuration ------------------------------------------------------------


def test_options_that_are_wrong_are_listed_six_at_most_and_all_are_shown() -> None:
    kind = catalogue()["sanitizers"]
    names = [*kind.args["off"]]
    text = HEAD + "".join(f"CONFIG_{name}=y\n" for name in names)
    outcome, message, shown = of_config("sanitizers", text)

    assert outcome is FAIL
    listed = ", ".join(f"{name}=y" for name in names[:6])
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    assert message == listed + more
    assert shown == [("config", f"CONFIG_{name}=y") for name in names]


def test_options_that_are_off_are_shown_as_a_configuration_writes_them() -> None:
    names = [*catalogue()["sanitizers"].args["off"]]
    outcome, message, shown = of_config("sanitizers", f"{HEAD}CONFIG_SMP=y\n")

    assert outcome is PASS
    assert message.startswith(f"{names[0]}=n")
    assert shown == [("config", f"CONFIG_{name} is not set") for name in names]


def test_an_extract_names_what_it_does_not_mention() -> None:
    assert of_config("tick_rate", "CONFIG_SMP=y\n") == (
        UNKNOWN,
        "config is not a whole configuration and does not mention HZ=1000",
        [],
    )


RT_GROUPS = "CONFIG_RT_GROUP_SCHED"


@pytest.mark.parametrize(
    ("config", "cmdline", "wanted", "told"),
    [
        ("CONFIG_SMP=y\n", "", (PASS, "RT_GROUP_SCHED=n"), f"{RT_GROUPS} is not set"),
        (
            *(f"{RT_GROUPS}=y\n", "quiet"),
            *((FAIL, "RT_GROUP_SCHED=y"), f"{RT_GROUPS}=y"),
        ),
        (
            *(f"{RT_GROUPS}=y\n", "rt_group_sched=1 rt_group_sched=0"),
            *((PASS, "RT_GROUP_SCHED=y, and off since the boot"), f"{RT_GROUPS}=y"),
        ),
        (
            *(f"{RT_GROUPS}=y\n", "rt_group_sched=0 rt_group_sched=1"),
            *((FAIL, "RT_GROUP_SCHED=y"), f"{RT_GROUPS}=y"),
        ),
        (
            *(f"{RT_GROUPS}=y\n{RT_GROUPS}_DEFAULT_DISABLED=y\n", "quiet"),
            *((PASS, "RT_GROUP_SCHED=y, and off since the boot"), f"{RT_GROUPS}=y"),
        ),
        (
            f"{RT_GROUPS}=y\n{RT_GROUPS}_DEFAULT_DISABLED=y\n",
            *("rt_group_sched=1", (FAIL, "RT_GROUP_SCHED=y"), f"{RT_GROUPS}=y"),
        ),
    ],
)
def test_groups_need_a_budget_if_the_kernel_gives_them_one(
    config: str, cmdline: str, wanted: Wanted, told: str
) -> None:
    case = Case({CONFIG: HEAD + config, CMDLINE: cmdline})

    assert answer("rt_group_sched", case) == (*wanted, [(CONFIG, told)])


# --- files with a value -----------------------------------------------------------

GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy{}/scaling_governor"


@pytest.mark.parametrize(
    ("governors", "wanted"),
    [
        (["performance"], (PASS, f"performance in {GOVERNOR.format(0)}")),
        (["performance"] * 2, (PASS, "performance in 2 files")),
        (["performance", "ondemand"], (FAIL, f"ondemand in {GOVERNOR.format(1)}")),
        (["a", "b", "a"], (FAIL, "a, b in 3 files")),
        (["a", "b", "c", "d", "e", "f", "g"], (FAIL, "a, b, c, d, e, f in 7 files")),
        (["x" * 300], (FAIL, f"{'x' * 80} in {GOVERNOR.format(0)}")),
    ],
)
def test_the_values_of_many_files_are_told_once_each(
    governors: list[str], wanted: Wanted
) -> None:
    files = {GOVERNOR.format(n): text for n, text in enumerate(governors)}
    outcome, message, shown = answer("scaling_governor", Case(files))

    assert (outcome, message) == wanted
    bad = [text for text in governors if text != "performance"] or governors
    assert [value for _, value in shown] == [text[:200] for text in bad]


def test_a_file_that_is_refused_leaves_the_others_unknown() -> None:
    also: dict[str, Content] = {GOVERNOR.format(1): REFUSED}
    good = Case({GOVERNOR.format(0): "performance"}, also)

    assert answer("scaling_governor", good) == (
        *(UNKNOWN, "only partly readable"),
        [(GOVERNOR.format(1), NO)],
    )
    bad = replace(good, files={GOVERNOR.format(0): "ondemand"})
    assert answer("scaling_governor", bad)[0] is FAIL


# --- the command line and the log -------------------------------------------------


@pytest.mark.parametrize(
    ("cmdline", "wanted", "shown"),
    [
        ("quiet root=/dev/a", (PASS, "none of them"), ["2 parameters"]),
        ("quiet -- noapic", (PASS, "none of them"), ["1 parameters"]),
        ("noapic quiet", (FAIL, "noapic"), ["noapic"]),
        ("noapicx", (PASS, "none of them"), ["1 parameters"]),
    ],
)
def test_a_harmful_parameter_is_named_unless_it_is_for_init(
    cmdline: str, wanted: Wanted, shown: list[str]
) -> None:
    case = Case({CMDLINE: cmdline})

    assert answer("harmful_parameters", case) == (
        *wanted,
        [(CMDLINE, text) for text in shown],
    )


def test_a_dash_is_an_underscore_in_a_parameter() -> None:
    assert answer("debugging_parameters", Case({CMDLINE: "trace-event=sched:*"})) == (
        *(FAIL, "trace-event=sched:*"),
        [(CMDLINE, "trace-event=sched:*")],
    )
    assert answer("debugging_parameters", Case()) == (UNKNOWN, f"no {CMDLINE}", [])


UNKNOWN_WORDS = 'Unknown kernel command line parameters "{}", will be passed'
KNOWN = "the kernel knows all of them"
FORGOTTEN = "the kernel log no longer reaches back to the boot"


@pytest.mark.parametrize(
    ("log", "wanted", "told"),
    [
        (BOOTED, (PASS, KNOWN), "from boot on"),
        ("Linux version 6.12.1\n", (PASS, KNOWN), "from boot on"),
        ("[    1.000000] Linux version 6.12.1\n", (UNKNOWN, FORGOTTEN), None),
        ("", (UNKNOWN, FORGOTTEN), None),
        (
            UNKNOWN_WORDS.format("BOOT_IMAGE=/v splash nokaslr a=1 b"),
            (FAIL, "a=1, b"),
            'Unknown kernel command line parameters "BOOT_IMAGE=/v splash nokaslr '
            'a=1 b"',
        ),
        (
            *(UNKNOWN_WORDS.format("splash"), (PASS, KNOWN)),
            'Unknown kernel command line parameters "splash"',
        ),
    ],
)
def test_parameters_that_the_kernel_does_not_know_are_named(
    log: str, wanted: Wanted, told: str | None
) -> None:
    shown = [] if told is None else [("kernel log", told)]

    assert answer("unknown_parameters", Case(observed=Observed(kernel_log=log))) == (
        *wanted,
        shown,
    )


LATE = "[    1.000000] sched: RT throttling activated"


@pytest.mark.parametrize(
    ("lines", "wanted", "shown"),
    [
        ([], (PASS, "no such message since the boot"), ["read"]),
        ([LATE], (FAIL, f"1 message: {LATE}"), [LATE]),
        ([LATE] * 7, (FAIL, f"7 messages: {LATE}"), [LATE] * 5),
        (
            [LATE + "x" * 300],
            (FAIL, f"1 message: {(LATE + 'x' * 300)[:160]}"),
            [(LATE + "x" * 300)[:200]],
        ),
    ],
)
def test_messages_of_delays_are_counted_and_five_are_shown(
    lines: list[str], wanted: Wanted, shown: list[str]
) -> None:
    log = BOOTED + "\n".join(lines)
    seen = Observed(kernel_log=log)

    assert answer("logged_delays", Case(observed=seen)) == (
        *wanted,
        [("kernel log", line) for line in shown],
    )
    if not lines:
        late = Observed(kernel_log="[    9.000000] something\n")
        assert answer("logged_delays", Case(observed=late)) == (
            UNKNOWN,
            "no such message, but the log does not reach back to the boot",
            [],
        )


# --- the kernel that runs ---------------------------------------------------------


def compared(files: dict[str, str | bytes], expected: Expected | None) -> Check:
    kinds = [catalogue()["running_kernel"]]
    context = read_context(reader_of(files), kinds, expected=expected)
    return examine(context, kinds)[0]


def test_each_thing_that_is_known_of_both_kernels_is_compared() -> None:
    digest = parse_config(f"{HEAD}CONFIG_A=y\n".encode(), source="x").digest
    files: dict[str, str | bytes] = {
        "/proc/version": "Linux version 6.12.1 " + "x" * 80,
        "/proc/config.gz": f"{HEAD}CONFIG_A=y\n",
    }
    other = Expected("Image", banner="Linux version 6.12.2", config_digest="0" * 64)
    found = compared(files, other)

    assert (found.outcome, found.message) == (
        FAIL,
        "not Image: another version, configuration",
    )
    assert shown_of(found) == [
        (
            "version",
            f"running Linux version 6.12.1 {'x' * 39}, built Linux version 6.12.2",
        ),
        ("configuration", f"running {digest[:60]}, built {'0' * 60}"),
    ]
    same = Expected("Image", banner=str(files["/proc/version"]), config_digest=digest)
    assert compared(files, same).message == "the version, the configuration of Image"


def test_without_anything_to_compare_the_kernel_is_unknown() -> None:
    assert compared({}, None).message == "no kernel was named to compare it with"
    nothing = compared({}, Expected("Image", banner="x"))
    assert (nothing.outcome, nothing.message) == (
        UNKNOWN,
        "neither Image nor the machine has a build ID, a version or a configuration "
        "to compare",
    )


VERSION = "/proc/sys/kernel/version"


@pytest.mark.parametrize(
    ("version", "config", "name", "outcome"),
    [
        ("#1 SMP PREEMPT_RT", "CONFIG_PREEMPT_RT=y\n", "preempt_rt", PASS),
        ("#1 SMP PREEMPT", "CONFIG_PREEMPT=y\n", "preempt_rt", FAIL),
        ("#1 SMP PREEMPT_RT", "CONFIG_PREEMPT_RT=y\n", "preemption_model", NONE),
        ("#1 SMP PREEMPT", "CONFIG_PREEMPT=y\n", "preemption_model", PASS),
        ("#1 SMP", "CONFIG_PREEMPT_NONE=y\n", "preemption_model", FAIL),
    ],
)
def test_the_witnesses_of_preemption_are_shown(
    version: str, config: str, name: str, outcome: CheckOutcome
) -> None:
    files = {VERSION: version, CONFIG: f"{HEAD}{config}# CONFIG_PREEMPT_X is not set\n"}
    found, _, shown = answer(name, Case(files))

    assert found is outcome
    if outcome is not NONE:
        assert shown == [("uname -v", version), (CONFIG, config.strip())]


@pytest.mark.parametrize(
    "option",
    [
        *("PREEMPT_RT", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_VOLUNTARY"),
        *("PREEMPT_NONE", "PREEMPT_DYNAMIC"),
    ],
)
def test_every_option_of_a_preemption_model_is_a_witness(option: str) -> None:
    config = f"CONFIG_{option}=y\nCONFIG_PREEMPT_COUNT=y\n"
    version = "#1 SMP PREEMPT_RT" if option == "PREEMPT_RT" else "#1 SMP PREEMPT"
    files = {VERSION: version, CONFIG: f"{HEAD}{config}"}
    _, _, shown = answer("preempt_rt", Case(files))

    assert (CONFIG, f"CONFIG_{option}=y") in shown
    assert (CONFIG, "CONFIG_PREEMPT_COUNT=y") not in shown


# --- profiles ---------------------------------------------------------------------


@pytest.mark.parametrize("profile", Profile)
def test_a_check_that_is_not_for_a_profile_is_not_answered(profile: Profile) -> None:
    kinds = list(catalogue().values())
    context = read_context(reader_of({}), kinds, profile=profile)
    found = {check.kind.id: check for check in examine(context, kinds)}

    assert set(found) == {kind.id for kind in kinds if profile in kind.profiles}
    for check in found.values():
        assert check.severity is check.kind.severity_in(profile)


def test_the_worst_answer_comes_first_and_the_gravest_of_equal_ones() -> None:
    context = read_context(
        reader_of({RELEASE: "6.12.1", CONFIG: f"{HEAD}CONFIG_SMP=y\n"}),
        catalogue().values(),
    )
    found = examine(context, catalogue().values())
    order = list(CheckOutcome)
    ranks = [(order.index(c.outcome), -c.severity) for c in found]

    assert ranks == sorted(ranks)
    assert len({rank for rank, _ in ranks}) > 2
