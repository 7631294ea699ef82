"""Which kernel a machine runs, from every kind of evidence, false ones included."""

import gzip
from pathlib import Path

import pytest

from fakes.trees import (
    CONTAINER,
    DEBIAN_RT,
    DEBIAN_RT_RELEASE,
    DYNAMIC_CONFIG,
    GUEST,
    VISIONFIVE,
    reader_of,
    write_tree,
)
from rtscope.host.errors import TargetError
from rtscope.machine.filetree import FileReader
from rtscope.machine.kernelconfig import (
    MAX_CONFIG_BYTES,
    config_paths,
    find_config,
    parse_config,
)
from rtscope.machine.kernelidentity import (
    PATHS,
    boot_values,
    identify,
    is_release_since,
)
from rtscope.machine.reader import Denied

VERSION = "/proc/sys/kernel/version"
RELEASE = "/proc/sys/kernel/osrelease"
CONFIG = "/proc/config.gz"
REALTIME = "/sys/kernel/realtime"
DEBUG = "/sys/kernel/debug/sched/preempt"
CMDLINE = "/proc/cmdline"


def test_the_starfive_board_is_preempt_rt_by_both_witnesses(tmp_path: Path) -> None:
    kernel = identify(FileReader(write_tree(tmp_path, VISIONFIVE)))

    assert kernel.release == "5.15.0-rt17+"
    assert kernel.version == "#5 SMP PREEMPT RT Wed Oct 25 17:51:59 CST 2023"
    assert kernel.preempt_rt is True
    assert kernel.how == (
        "uname -v says PREEMPT RT; CONFIG_PREEMPT_RT=y in /proc/config.gz"
    )
    assert kernel.preemption_model == "PREEMPT_RT"
    assert kernel.model_how == (
        "the kernel is PREEMPT_RT; ordinary threads preempt each other by the model "
        "'lazy' (CONFIG_PREEMPT_LAZY=y in /proc/config.gz), which real-time threads do "
        "not follow"
    )
    assert kernel.config_source == "/proc/config.gz"


def test_debians_configuration_is_found_in_boot(tmp_path: Path) -> None:
    kernel = identify(FileReader(write_tree(tmp_path, DEBIAN_RT)))

    source = f"/boot/config-{DEBIAN_RT_RELEASE}"
    assert kernel.preempt_rt is True
    assert kernel.how == f"uname -v says PREEMPT_RT; CONFIG_PREEMPT_RT=y in {source}"
    assert kernel.preemption_model == "PREEMPT_RT"
    assert kernel.model_how == "the kernel is PREEMPT_RT"
    assert kernel.config_source == source


def test_a_dynamic_kernel_is_what_its_configuration_makes_it_at_boot() -> None:
    kernel = identify(reader_of(GUEST))

    assert kernel.preempt_rt is False
    assert kernel.how == (
        "uname -v says PREEMPT_DYNAMIC; CONFIG_PREEMPT_RT is not set in /proc/config.gz"
    )
    assert kernel.preemption_model == "none"
    assert kernel.model_how == (
        "the default of PREEMPT_DYNAMIC: CONFIG_PREEMPT_NONE=y in /proc/config.gz"
    )


def test_the_model_in_effect_is_resolved_in_the_order_of_trust() -> None:
    cmdline = {CMDLINE: "preempt=lazy quiet preempt=voluntary"}
    log = "rcu: x\nDynamic Preempt: none\nDynamic Preempt: full\n"
    debug = {DEBUG: "none voluntary full (lazy) \n"}

    by_cmdline = identify(reader_of({**GUEST, **cmdline}))
    by_log = identify(reader_of({**GUEST, **cmdline}), kernel_log=log)
    by_debugfs = identify(reader_of({**GUEST, **cmdline, **debug}), kernel_log=log)

    assert (by_cmdline.preemption_model, by_cmdline.model_how) == (
        "voluntary",
        "preempt=voluntary on the kernel command line",
    )
    assert (by_log.preemption_model, by_log.model_how) == (
        "full",
        "the kernel log says 'Dynamic Preempt: full'",
    )
    assert (by_debugfs.preemption_model, by_debugfs.model_how) == (
        "lazy",
        f"{DEBUG} marks (lazy)",
    )


def test_a_debugfs_closed_by_lockdown_leaves_the_next_witness() -> None:
    closed = {DEBUG: Denied("Operation not permitted")}

    kernel = identify(reader_of({**GUEST, CMDLINE: "preempt=full"}, also=closed))

    assert kernel.preemption_model == "full"
    assert kernel.model_how == "preempt=full on the kernel command line"


@pytest.mark.parametrize(
    ("release", "config", "cmdline", "model"),
    [
        ("6.18.44", DYNAMIC_CONFIG, "preempt=nonsense", "none"),
        ("7.0.1", DYNAMIC_CONFIG, "preempt=voluntary", "none"),
        ("7.0.1", DYNAMIC_CONFIG, "preempt=lazy", "lazy"),
        ("6.1.0", "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y", "preempt=lazy", "full"),
        ("6.1.0", "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y", "preempt=none", "none"),
    ],
)
def test_a_value_that_the_kernel_ignores_is_ignored(
    release: str, config: str, cmdline: str, model: str
) -> None:
    files = {RELEASE: release, VERSION: "#1 SMP PREEMPT_DYNAMIC", CMDLINE: cmdline}

    kernel = identify(reader_of({**files, CONFIG: config}))

    assert kernel.preemption_model == model


@pytest.mark.parametrize(
    ("option", "model"),
    [
        ("PREEMPT_NONE", "none"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT", "full"),
        ("PREEMPT__LL", "full"),
        ("PREEMPT_LAZY", "lazy"),
    ],
)
def test_without_dynamic_the_configuration_is_in_effect(
    option: str, model: str
) -> None:
    files = {VERSION: "#1 SMP", CMDLINE: "preempt=full", CONFIG: f"CONFIG_{option}=y\n"}

    kernel = identify(reader_of(files))

    assert kernel.preempt_rt is False
    assert kernel.preemption_model == model
    assert kernel.model_how == f"CONFIG_{option}=y in /proc/config.gz"


def test_lazy_under_preempt_rt_is_said_to_concern_ordinary_threads_only() -> None:
    config = (
        "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT_LAZY=y\n"
        "CONFIG_ARCH_HAS_PREEMPT_LAZY=y\n"
    )
    files = {RELEASE: "6.18.1", VERSION: "#1 SMP PREEMPT_RT", CONFIG: config}

    kernel = identify(reader_of({**files, CMDLINE: "preempt=full preempt=none"}))

    assert kernel.preemption_model == "PREEMPT_RT"
    assert kernel.model_how == (
        "the kernel is PREEMPT_RT; ordinary threads preempt each other by the model "
        "'full' (preempt=full on the kernel command line), which real-time threads do "
        "not follow"
    )


def test_the_patch_sets_old_name_counts() -> None:
    files = {VERSION: "#1 SMP PREEMPT RT Debian 4.19.37", CONFIG: "CONFIG_X=m\n"}
    old = {**files, CONFIG: "CONFIG_PREEMPT_RT_FULL=y\n"}

    assert identify(reader_of(old)).how == (
        "uname -v says PREEMPT RT; CONFIG_PREEMPT_RT_FULL=y in /proc/config.gz"
    )


def test_sys_kernel_realtime_alone_proves_nothing() -> None:
    kernel = identify(reader_of({VERSION: "#1 SMP vendor", REALTIME: "1\n"}))

    assert kernel.preempt_rt is None
    assert kernel.how == "only /sys/kernel/realtime says so, which is not enough"
    assert kernel.preemption_model is None
    assert kernel.model_how == "unknown whether this kernel is PREEMPT_RT"


def test_mainline_without_sys_kernel_realtime_is_still_preempt_rt() -> None:
    kernel = identify(reader_of({VERSION: "#1 SMP PREEMPT_RT"}))

    assert kernel.preempt_rt is True
    assert kernel.how == "uname -v says PREEMPT_RT"


@pytest.mark.parametrize(
    ("files", "how"),
    [
        (
            {VERSION: "#1 SMP PREEMPT_DYNAMIC", CONFIG: "CONFIG_PREEMPT_RT=y\n"},
            "contradictory: uname -v says PREEMPT_DYNAMIC; "
            "CONFIG_PREEMPT_RT=y in /proc/config.gz",
        ),
        (
            {VERSION: "#1 SMP PREEMPT_RT", CONFIG: "# CONFIG_PREEMPT_RT is not set\n"},
            "contradictory: uname -v says PREEMPT_RT; "
            "CONFIG_PREEMPT_RT is not set in /proc/config.gz",
        ),
        (
            {VERSION: "#1 SMP PREEMPT", REALTIME: "1\n"},
            "contradictory: uname -v says PREEMPT; /sys/kernel/realtime says 1",
        ),
    ],
)
def test_contradictory_evidence_is_stated_and_decides_nothing(
    files: dict[str, str], how: str
) -> None:
    kernel = identify(reader_of(files))

    assert kernel.preempt_rt is None
    assert kernel.how == how
    assert kernel.preemption_model is None


def test_a_kernel_that_shows_nothing_is_unknown_and_says_why() -> None:
    refused = {CONFIG: Denied("Permission denied")}

    kernel = identify(reader_of({RELEASE: "6.1.9"}, also=refused))

    assert kernel.preempt_rt is None
    assert kernel.how == (
        "uname -v does not say so, and the configuration is unknown: "
        "/proc/config.gz: Permission denied"
    )


def test_preempt_in_uname_means_full_only_before_lazy_came() -> None:
    old = identify(reader_of({RELEASE: "6.12.1", VERSION: "#1 SMP PREEMPT x"}))
    new = identify(reader_of({RELEASE: "6.13.0", VERSION: "#1 SMP PREEMPT x"}))

    assert (old.preemption_model, old.model_how) == ("full", "uname -v says PREEMPT")
    assert new.preempt_rt is False
    assert new.preemption_model is None


def test_without_configuration_the_default_of_a_dynamic_kernel_is_unknown() -> None:
    set_at_boot = identify(reader_of(CONTAINER))
    default = identify(reader_of({**CONTAINER, CMDLINE: "quiet"}))

    assert set_at_boot.preemption_model == "voluntary"
    assert default.preemption_model is None
    assert default.model_how.startswith("PREEMPT_DYNAMIC, and its default is unknown")


def test_files_that_were_read_already_are_not_read_again() -> None:
    reader = reader_of(GUEST)
    files = reader.read_many(PATHS)

    assert identify(reader, files=files) == identify(reader_of(GUEST))
    assert reader.trips == [PATHS]


def test_the_digest_is_of_the_plain_text_wherever_it_lies() -> None:
    plain = b"CONFIG_A=y\n"
    digest = "e7e1b2c0a9031fbc9e999438d6d65847f80ddd76244dfc5a1efac71731d40f85"

    assert parse_config(plain, source="a").digest == digest
    assert parse_config(gzip.compress(plain, mtime=0), source="b").digest == digest


def test_options_keep_their_values_and_unset_ones_are_n() -> None:
    text = b'CONFIG_A=y\nCONFIG_B=m\nCONFIG_C="a \\"b\\""\n# CONFIG_D is not set\n# e\n'

    assert parse_config(
        text + b'CONFIG_F=""\nCONFIG_HZ=1000\n', source="x"
    ).options == {
        "CONFIG_A": "y",
        "CONFIG_B": "m",
        "CONFIG_C": 'a \\"b\\"',
        "CONFIG_D": "n",
        "CONFIG_F": "",
        "CONFIG_HZ": "1000",
    }


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "x: not a kernel configuration"),
        (b"<html>404</html>", "x: not a kernel configuration"),
        (
            gzip.compress(b"CONFIG_A=y\n", mtime=0)[:-9],
            "x: compressed with gzip, and cut short",
        ),
        (b"\x1f\x8bnonsense", "x: compressed with gzip, and damaged"),
        (
            gzip.compress(b"#" * (MAX_CONFIG_BYTES + 1)),
            "over 16,777,216 bytes unpacked",
        ),
    ],
)
def test_what_is_no_configuration_is_refused(content: bytes, says: str) -> None:
    with pytest.raises(TargetError, match=says):
        parse_config(content, source="x")


def test_a_damaged_configuration_gives_way_to_the_next_place() -> None:
    files = {CONFIG: b"\x1f\x8bnonsense", "/lib/modules/6.1.9/config": b"CONFIG_A=y\n"}

    search = find_config(reader_of(files), "6.1.9")

    assert search.config is not None
    assert search.config.source == "/lib/modules/6.1.9/config"


def test_no_configuration_names_every_place_that_was_looked_at() -> None:
    search = find_config(reader_of({}), "6.1.9")

    assert search.config is None
    assert search.why == (
        "none of /proc/config.gz, /boot/config-6.1.9, /lib/modules/6.1.9/config, "
        "/lib/modules/6.1.9/build/.config, /usr/lib/kernel/config-6.1.9, "
        "/usr/lib/modules/6.1.9/config is there"
    )


@pytest.mark.parametrize("release", [None, "", "../../etc", "a/b", "6.1*", "..", "x\n"])
def test_a_release_that_is_none_leads_nowhere(release: str | None) -> None:
    assert config_paths(release) == ()


@pytest.mark.parametrize(
    ("release", "since"),
    [("6.12.0-rc1", True), ("6.9.1", False), ("7.0", True), ("x", None), (None, None)],
)
def test_releases_compare_as_numbers(release: str | None, since: bool | None) -> None:
    assert is_release_since(release, (6, 12)) is since


def test_values_after_the_double_dash_are_for_init() -> None:
    assert boot_values("a=1 xa=2 a= a=3 -- a=4", "a") == ("1", "", "3")
