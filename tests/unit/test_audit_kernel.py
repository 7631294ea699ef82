"""The checks of a kernel: every one good, bad, and where it must say unknown."""

import bz2
import contextlib
import gzip
import lzma
import random
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from fakes.trees import reader_of
from rtscope.host.errors import UsageError
from rtscope.machine import kernelimage as image
from rtscope.machine.audit.context import AuditContext, Expected
from rtscope.machine.audit.examine import (
    FUNCTIONS,
    catalogue,
    context_of_config,
    examine,
    parse_row,
    read_context,
    verifying,
)
from rtscope.machine.audit.model import (
    Check,
    CheckKind,
    CheckOutcome,
    Profile,
    Severity,
)
from rtscope.machine.kernelconfig import parse_config
from rtscope.machine.kernelimage import (
    GNU_BUILD_ID,
    build_id_in,
    parse_image,
    read_image,
)

HEAD = (
    "#\n# Automatically generated file; DO NOT EDIT.\n"
    "# Linux/riscv 6.12.107 Kernel Configuration\n#\n"
)
GOOD = HEAD + "\n".join(
    f"CONFIG_{name}"
    for name in (
        *("EXPERT=y", "ARCH_SUPPORTS_RT=y", "PREEMPT_RT=y", "PREEMPT_LAZY=y"),
        *("PREEMPTION=y", "PREEMPT_COUNT=y", "PREEMPT_RCU=y"),
        *("HIGH_RES_TIMERS=y", "HZ=1000"),
        *("HZ_PERIODIC=y", "CPU_FREQ=y", "CPU_FREQ_DEFAULT_GOV_PERFORMANCE=y"),
    )
)
BANNER = "Linux version 6.12.107-rt (me@here) (gcc 14) #1 SMP PREEMPT_RT Mon Jan 1"

# What the DevKit report of StarFive prints (its figures 8-4 to 8-8) as proof that a
# board runs the real-time kernel.
STARFIVE = {
    "/proc/version": "Linux version 5.15.0-rt17+ (b@h) (riscv64-buildroot-linux-gnu-gcc"
    " (Buildroot JH7110_DVK_v3.7.5) 12.2.0, GNU ld 2.38) "
    "#5 SMP PREEMPT RT Wed Oct 25 17:51:59 CST 2023\n",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n",
    "/proc/config.gz": """\
CONFIG_HAVE_PREEMPT_LAZY=y
CONFIG_PREEMPT_LAZY=y
# CONFIG_PREEMPT_NONE is not set
# CONFIG_PREEMPT_VOLUNTARY is not set
# CONFIG_PREEMPT is not set
CONFIG_PREEMPT_RT=y
CONFIG_PREEMPT_COUNT=y
CONFIG_PREEMPTION=y
CONFIG_PREEMPT_RCU=y
CONFIG_DEBUG_PREEMPT=y
CONFIG_HZ_PERIODIC=y
# CONFIG_NO_HZ_IDLE is not set
# CONFIG_NO_HZ_FULL is not set
# CONFIG_NO_HZ is not set
# CONFIG_HZ_100 is not set
# CONFIG_HZ_250 is not set
# CONFIG_HZ_300 is not set
CONFIG_HZ_1000=y
CONFIG_HZ=1000
CONFIG_CPU_IDLE_GOV_LADDER=y
# CONFIG_CPU_IDLE_GOV_MENU is not set
# CONFIG_CPU_IDLE_GOV_TEO is not set
CONFIG_CPU_FREQ_GOV_ATTR_SET=y
CONFIG_CPU_FREQ_GOV_COMMON=y
CONFIG_CPU_FREQ_DEFAULT_GOV_PERFORMANCE=y
CONFIG_CPU_FREQ_GOV_PERFORMANCE=y
CONFIG_CPU_FREQ_GOV_POWERSAVE=y
CONFIG_CPU_FREQ_GOV_USERSPACE=y
# CONFIG_CPU_FREQ_GOV_ONDEMAND is not set
CONFIG_CPU_FREQ_GOV_CONSERVATIVE=y
CONFIG_CPU_FREQ_GOV_SCHEDUTIL=y
""",
}


def outcomes(context: AuditContext) -> dict[str, Check]:
    return {check.kind.id: check for check in examine(context, verifying())}


def of_config(text: str) -> dict[str, Check]:
    return outcomes(context_of_config(parse_config(text.encode(), source="config")))


def config_kinds() -> list[CheckKind]:
    return [k for k in catalogue().values() if k.function == "config"]


def bad_option(kind: CheckKind) -> str:
    for name in kind.args.get("off", ()):
        return f"CONFIG_{name}=y"
    for name, value in kind.args.get("is", {}).items():
        return f"CONFIG_{name}={value + 1}"
    return f"# CONFIG_{kind.args['on'][0]} is not set"


def test_a_good_configuration_fails_no_check() -> None:
    found = of_config(GOOD)

    assert not [c.kind.id for c in found.values() if c.failed]
    assert {c.kind.id for c in found.values() if c.outcome is CheckOutcome.UNKNOWN} == {
        "scaling_governor"
    }


@pytest.mark.parametrize("kind", config_kinds(), ids=lambda k: str(k.id))
def test_good_options_pass_their_check_and_are_shown(kind: CheckKind) -> None:
    on = [f"CONFIG_{name}=y" for name in kind.args.get("on", ())]
    values = [f"CONFIG_{name}={v}" for name, v in kind.args.get("is", {}).items()]
    needs = [f"CONFIG_{name}=y" for name in kind.args.get("needs", ())]
    text = "\n".join([HEAD, "CONFIG_SMP=y", *needs, *on, *values])

    check = examine(
        context_of_config(parse_config(text.encode(), source="config")), [kind]
    )[0]

    assert check.outcome is CheckOutcome.PASS
    assert {*on, *values} <= {e.value for e in check.evidence}
    assert check.evidence


@pytest.mark.parametrize("kind", config_kinds(), ids=lambda k: str(k.id))
def test_a_bad_option_fails_its_check_and_is_shown(kind: CheckKind) -> None:
    needs = [f"CONFIG_{name}=y" for name in kind.args.get("needs", ())]
    bad = bad_option(kind)
    text = "\n".join([HEAD, *needs, bad])

    check = examine(
        context_of_config(parse_config(text.encode(), source="config")), [kind]
    )[0]

    assert check.outcome is CheckOutcome.FAIL
    assert bad.removeprefix("# ") in {e.value for e in check.evidence}


@pytest.mark.parametrize("kind", config_kinds(), ids=lambda k: str(k.id))
def test_an_extract_that_does_not_mention_an_option_leaves_it_unknown(
    kind: CheckKind,
) -> None:
    context = context_of_config(parse_config(b"CONFIG_SOMETHING=y\n", source="config"))

    assert examine(context, [kind])[0].outcome is CheckOutcome.UNKNOWN


@pytest.mark.parametrize("kind", verifying(), ids=lambda k: str(k.id))
def test_a_machine_without_any_file_passes_nothing(kind: CheckKind) -> None:
    check = examine(read_context(reader_of({}), [kind]), [kind])[0]

    assert check.outcome is not CheckOutcome.PASS
    assert check.message


def test_a_module_counts_as_set() -> None:
    found = of_config(GOOD + "\nCONFIG_CPU_FREQ_GOV_ONDEMAND=m\n")

    assert found["other_governors"].message == "CPU_FREQ_GOV_ONDEMAND=m"


def test_without_what_an_option_needs_a_check_does_not_apply() -> None:
    found = of_config(GOOD.replace("CONFIG_CPU_FREQ=y", ""))

    assert found["cpu_freq"].outcome is CheckOutcome.FAIL
    assert found["default_governor"].outcome is CheckOutcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("edited", "fails"),
    [
        (
            GOOD.replace("CONFIG_EXPERT=y", "# CONFIG_EXPERT is not set").replace(
                "CONFIG_PREEMPT_RT=y\n", ""
            )
            + "\nCONFIG_PREEMPT_RT=y",
            "preempt_rt_base",
        ),
        (GOOD.replace("CONFIG_PREEMPTION=y", ""), "preempt_rt_family"),
    ],
)
def test_preempt_rt_that_was_written_in_by_hand_does_not_pass(
    edited: str, fails: str
) -> None:
    found = of_config(edited)

    assert {c.kind.id for c in found.values() if c.failed} == {fails}
    assert found[fails].severity is Severity.FATAL


def test_starfives_own_listing() -> None:
    kinds = verifying()
    found = outcomes(read_context(reader_of(STARFIVE), kinds))

    passes = {name for name, c in found.items() if c.outcome is CheckOutcome.PASS}
    assert {"preempt_rt", "preempt_lazy", "tick_rate", "tick_mode"} <= passes
    assert {"preempt_rt_family", "idle_governor"} <= passes
    assert "scaling_governor" in passes
    assert {c.kind.id for c in found.values() if c.failed} == {
        "preempt_debugging",
        "other_governors",
    }
    assert found["other_governors"].message == (
        "CPU_FREQ_GOV_CONSERVATIVE=y, CPU_FREQ_GOV_SCHEDUTIL=y, "
        "CPU_FREQ_GOV_POWERSAVE=y, CPU_FREQ_GOV_USERSPACE=y"
    )
    assert found["sanitizers"].outcome is CheckOutcome.UNKNOWN


def test_no_cpufreq_is_not_applicable_and_no_pass() -> None:
    kinds = [catalogue()["scaling_governor"]]

    there = {"/sys/devices/system/cpu/online": "0-1"}
    check = examine(read_context(reader_of(there), kinds), kinds)[0]

    assert check.outcome is CheckOutcome.NOT_APPLICABLE


def test_one_cpu_with_another_governor_fails() -> None:
    path = "/sys/devices/system/cpu/cpufreq/policy{}/scaling_governor"
    kinds = [catalogue()["scaling_governor"]]
    files = {path.format(0): "performance", path.format(2): "ondemand"}

    check = examine(read_context(reader_of(files), kinds), kinds)[0]

    assert check.outcome is CheckOutcome.FAIL
    assert [(e.path, e.value) for e in check.evidence] == [(path.format(2), "ondemand")]


def test_preempt_full_is_not_called_real_time() -> None:
    found = of_config(HEAD + "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y\n")

    assert found["preempt_rt"].outcome is CheckOutcome.FAIL
    assert found["preemption_model"].outcome is CheckOutcome.PASS


def test_severity_follows_the_profile() -> None:
    kind = catalogue()["preempt_rt"]

    assert kind.severity_in(Profile.CONTROL) is Severity.FATAL
    assert kind.severity_in(Profile.AUDIO) is Severity.INFO


@pytest.mark.parametrize(
    ("release", "outcome"),
    [("6.11.9", "not applicable"), ("6.12.1", "pass"), ("odd", "unknown")],
)
def test_a_check_is_gated_by_the_version(release: str, outcome: str) -> None:
    row = {
        **{"title": "t", "severity": "low", "expected": "e", "rationale": "w"},
        **{"source": "s", "remedy": "r", "on": ["A"], "since": "6.12"},
    }
    config = parse_config(
        f"{HEAD.replace('6.12.107', release)}CONFIG_A=y\n".encode(), source="config"
    )

    check = examine(context_of_config(config), [parse_row("x", row, group="g")])[0]

    assert check.outcome.value == outcome


def test_each_check_function_answers_a_row() -> None:
    assert {kind.function for kind in catalogue().values()} == set(FUNCTIONS)


def test_a_row_with_an_unknown_function_is_refused() -> None:
    with pytest.raises(ValueError, match="no check function 'nobody'"):
        parse_row("x", {"function": "nobody"}, group="g")


# --- the running kernel against the one that was built ----------------------------

BUILD_ID = bytes(range(20))


def running(files: dict[str, str | bytes], expected: Expected) -> Check:
    kinds = [catalogue()["running_kernel"]]
    context = read_context(reader_of(files), kinds, expected=expected)
    return examine(context, kinds)[0]


def test_the_same_build_id_is_the_same_kernel() -> None:
    notes = b"\0" * 8 + GNU_BUILD_ID + BUILD_ID
    check = running(
        {"/sys/kernel/notes": notes}, Expected("Image", build_id=BUILD_ID.hex())
    )

    assert check.outcome is CheckOutcome.PASS
    assert check.message == "the build ID of Image"


def test_another_banner_is_another_kernel() -> None:
    check = running({"/proc/version": BANNER}, Expected("Image", banner=BANNER + " 2"))

    assert check.outcome is CheckOutcome.FAIL


def test_nothing_to_compare_is_unknown() -> None:
    check = running({"/proc/version": BANNER}, Expected("Image", build_id="00"))

    assert check.outcome is CheckOutcome.UNKNOWN


def test_notes_that_break_off_have_no_build_id() -> None:
    assert build_id_in(GNU_BUILD_ID + BUILD_ID[:19]) is None


# --- images -----------------------------------------------------------------------

PLAIN = (
    b"MZ\0\0"
    + f"{BANNER}\n\0".encode()
    + GNU_BUILD_ID
    + BUILD_ID
    + b"IKCFG_ST"
    + gzip.compress(GOOD.encode())
    + b"IKCFG_ED"
)


def bzimage(payload: bytes) -> bytes:
    head = bytearray(0x400)
    head[0x1F1] = 1
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", head, 0x248, 0, len(payload))
    return bytes(head) + payload


def zboot(payload: bytes) -> bytes:
    return b"MZ\0\0zimg" + struct.pack("<II", 16, len(payload)) + payload


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        gzip.compress(PLAIN),
        bzimage(zstandard.ZstdCompressor().compress(PLAIN)),
        bzimage(lzma.compress(PLAIN)),
        zboot(gzip.compress(PLAIN)),
        gzip.compress(zboot(gzip.compress(PLAIN))),
        zstandard.ZstdCompressor().compress(PLAIN),
        lzma.compress(PLAIN),
    ],
    ids=[
        *("plain", "gzip", "bzImage zstd", "bzImage xz", "zboot", "zboot in gzip"),
        *("zstd", "xz"),
    ],
)
def test_an_image_tells_banner_build_id_and_configuration(content: bytes) -> None:
    image = parse_image(content, source="Image")

    assert image.banner == BANNER
    assert image.build_id == BUILD_ID.hex()
    assert image.config is not None
    assert image.config.is_on("PREEMPT_RT")


def test_a_file_that_is_no_image_is_refused() -> None:
    with pytest.raises(UsageError, match="no kernel image"):
        parse_image(b"hello", source="x")


def test_of_two_banners_the_one_with_the_number_of_the_build_counts() -> None:
    early = b"Linux version 6.12.1 (a@b) (gcc) # SMP Debian 1\n"
    shown = b"Linux version 6.12.1 (a@b) (gcc) #1 SMP Debian 1\n"

    image = parse_image(early + b"\0" + shown, source="vmlinux")

    assert image.banner == shown.decode().strip()


def elf(rest: bytes) -> bytes:
    """Make a vmlinux whose table of sections stands at its end."""
    head = bytearray(b"\x7fELF".ljust(0x40, b"\0"))
    struct.pack_into("<Q", head, 0x28, len(head) + len(rest))
    struct.pack_into("<HH", head, 0x3A, 64, 1)
    return bytes(head) + rest + bytes(64)


def efi(rest: bytes) -> bytes:
    """Make an Image with an EFI stub, which has one section."""
    head = bytearray(b"MZ".ljust(0x100, b"\0"))
    struct.pack_into("<I", head, 0x3C, 0x40)
    head[0x40:0x44] = b"PE\0\0"
    struct.pack_into("<H", head, 0x46, 1)
    struct.pack_into("<II", head, 0x40 + 24 + 16, len(rest), len(head))
    return bytes(head) + rest


# Its end is behind all that is looked for: what is cut off is missed by nobody.
LONG = PLAIN + random.Random(1).randbytes(5000)


@pytest.mark.parametrize(
    "whole",
    [
        gzip.compress(LONG),
        zstandard.ZstdCompressor().compress(LONG),
        lzma.compress(LONG),
        bzimage(gzip.compress(LONG)),
        zboot(gzip.compress(LONG)),
        elf(LONG),
        efi(LONG),
    ],
    ids=["gzip", "zstd", "xz", "bzImage", "zboot", "vmlinux", "EFI stub"],
)
def test_an_image_that_is_cut_short_is_not_judged_by_what_is_left(whole: bytes) -> None:
    assert parse_image(whole, source="Image").banner == BANNER

    with pytest.raises(UsageError, match=r"^Image: (damaged: )?cut short"):
        parse_image(whole[:-2000], source="Image")


def test_an_image_that_rtscope_cannot_unpack_is_called_so() -> None:
    with pytest.raises(UsageError, match=r"unknown compression \(02214c18\)"):
        parse_image(b"\x02\x21\x4c\x18 packed", source="Image.lz4")


def test_an_image_without_an_end_is_not_opened() -> None:
    with pytest.raises(UsageError, match="/dev/zero: a device, not a regular file"):
        read_image(Path("/dev/zero"))


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="directory"):
        read_image(tmp_path)


@given(st.binary(max_size=300), st.integers(0, 600))
def test_damage_never_gives_anything_but_a_clear_error(junk: bytes, at: int) -> None:
    for whole in (gzip.compress(PLAIN), bzimage(lzma.compress(PLAIN))):
        damaged = whole[:at] + junk + whole[at + len(junk) :]
        with contextlib.suppress(UsageError):
            parse_image(damaged, source="x")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "most_mib"), [(gzip, 16), (lzma, 16), (bz2, 16), (zstandard, 64)]
)
def test_an_image_that_unpacks_to_more_than_is_sensible_is_refused(
    module: Any, most_mib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "MAX_PLAIN_BYTES", 1 << 20)
    bomb = module.compress(bytes(2 * most_mib << 20))

    tracemalloc.start()
    with pytest.raises(UsageError, match="more than 1,048,576 bytes unpacked"):
        parse_image(bomb, source="Image")
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most_bytes < most_mib << 20


def test_an_image_that_names_a_huge_dictionary_is_refused() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 512 << 20, "mode": 1, "mf": 3}]
    header = lzma.LZMACompressor(filters=filters, check=lzma.CHECK_NONE)
    bomb = header.compress(PLAIN) + header.flush()

    with pytest.raises(UsageError, match=r"[Mm]emory"):
        parse_image(bomb, source="Image")
