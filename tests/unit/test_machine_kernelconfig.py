"""A kernel's configuration, as people have it: edited, cut out, of a patched source."""

import gzip
import lzma

import pytest
import zstandard

from rtscope.host.errors import TargetError
from rtscope.machine.audit.examine import (
    catalogue,
    context_of_config,
    examine,
    verifying,
)
from rtscope.machine.audit.model import Check, CheckOutcome, Severity
from rtscope.machine.kernelconfig import (
    MAX_CONFIG_BYTES,
    KernelConfig,
    oddities,
    parse_config,
)
from rtscope.machine.kernelidentity import identify_config
from rtscope.present.formats.audit import kernel_line

HEAD = """\
#
# Automatically generated file; DO NOT EDIT.
# Linux/x86 6.12.6 Kernel Configuration
#
"""
BY_MAKE = f"""{HEAD}\
CONFIG_PREEMPT_LAZY=y
CONFIG_PREEMPT_RT=y
CONFIG_PREEMPT_COUNT=y
CONFIG_PREEMPTION=y
CONFIG_PREEMPT_RCU=y
# CONFIG_EXPERT is not set
CONFIG_ARCH_SUPPORTS_RT=y
CONFIG_HIGH_RES_TIMERS=y
"""


def config_of(text: str) -> KernelConfig:
    return parse_config(text.encode(), source="config")


def found(text: str, name: str) -> Check:
    context = context_of_config(config_of(text), of_build=False)
    return examine(context, [catalogue()[name]])[0]


# --- the last line counts ---------------------------------------------------------


def test_a_symbol_that_is_unset_below_is_not_set() -> None:
    config = config_of(f"{BY_MAKE}# merged:\n# CONFIG_PREEMPT_RT is not set\n")

    assert identify_config(config).preempt_rt is False
    assert list(oddities(config)) == [
        "CONFIG_PREEMPT_RT: line 6 =y, line 14 =n: the last one counts"
    ]


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("# CONFIG_A is not set\nCONFIG_A=y", "y"),
        ("CONFIG_A=y\nCONFIG_A=n", "n"),
        ("CONFIG_A=y\nCONFIG_A=m", "m"),
        ("CONFIG_A=m\n# CONFIG_A is not set\nCONFIG_A=y\n# CONFIG_A is not set", "n"),
        ('CONFIG_A="a"\nCONFIG_A="b"', "b"),
        ('CONFIG_A="a"\n# CONFIG_A is not set', "n"),
        ("CONFIG_A=100\nCONFIG_A=1000", "1000"),
        ("CONFIG_A=y\r\n# CONFIG_A is not set\r\n", "n"),
        # confdata.c looks at the first letter, and takes what old kernels end it with.
        ("CONFIG_A=n\nCONFIG_A=yes", "y"),
        ("CONFIG_A=y\nCONFIG_A=n # no", "n"),
        ("CONFIG_A=y\n# CONFIG_A is not set   ", "n"),
        ('CONFIG_A="a \\"b\\" # c"', 'a \\"b\\" # c'),
    ],
)
def test_the_last_line_of_a_symbol_wins_in_any_form(lines: str, value: str) -> None:
    assert config_of(lines).options == {"CONFIG_A": value}


@pytest.mark.parametrize(
    "line",
    [
        "#CONFIG_A is not set",
        "#  CONFIG_A is not set",
        "# CONFIG_A is not set.",
        "# CONFIG_A=y",
        " CONFIG_A=y",
        "CONFIG_A =y",
        "CONFIG_A= y",
        "CONFIG_A=Y",
        "# a comment on CONFIG_A",
    ],
)
def test_what_kconfig_passes_over_sets_nothing(line: str) -> None:
    assert config_of(f"CONFIG_B=y\n{line}\n").options == {"CONFIG_B": "y"}


def test_a_line_that_was_meant_as_a_setting_is_named() -> None:
    text = f"{HEAD}# CONFIG_A is not set\nCONFIG_A= y\n#CONFIG_B is not set\n"

    check = found(text, "config_lines")

    assert (check.outcome, check.severity) == (CheckOutcome.FAIL, Severity.INFO)
    assert [seen.value for seen in check.evidence] == [
        "line 6: kconfig ignores 'CONFIG_A= y'",
        "line 7: kconfig ignores '#CONFIG_B is not set'",
    ]


def test_lines_that_make_wrote_are_each_there_once() -> None:
    check = found(BY_MAKE, "config_lines")

    assert (check.outcome, check.message) == (
        CheckOutcome.PASS,
        "8 symbols, each on one line",
    )


# --- as people have it ---------------------------------------------------------------


def squeezed(text: str) -> bytes:
    packer = zstandard.ZstdCompressor()
    return packer.compress(text.encode())


MODULE = b"\x7fELF.." + b"IKCFG_ST" + gzip.compress(BY_MAKE.encode()) + b"IKCFG_ED.."


@pytest.mark.parametrize(
    "content",
    [
        BY_MAKE.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + BY_MAKE.encode(),
        BY_MAKE.encode("utf-16"),
        BY_MAKE.replace("\n", "\r\n").encode("utf-16-le"),
        gzip.compress(BY_MAKE.encode()),
        lzma.compress(BY_MAKE.encode()),
        squeezed(BY_MAKE),
        MODULE,
        lzma.compress(MODULE),
        f"root@board:~# zcat /proc/config.gz\n{BY_MAKE}root@board:~# ".encode(),
        "".join(f"    {line}\n" for line in BY_MAKE.splitlines()).encode(),
        "".join(f"> {line}\n" for line in BY_MAKE.splitlines()).encode(),
        "".join(
            f"Nov 27 10:00:00 board sh[7]: {line}\n" for line in BY_MAKE.splitlines()
        ).encode(),
    ],
)
def test_a_configuration_is_read_however_it_came(content: bytes) -> None:
    config = parse_config(content, source="config")

    assert config.whole
    assert (config.release, len(config.options)) == ("6.12.6", 8)
    assert identify_config(config).preempt_rt is True


def test_a_configuration_in_a_mail_has_no_fault_for_that() -> None:
    check = found(
        "".join(f"> {line}\n" for line in BY_MAKE.splitlines()), "config_lines"
    )

    assert check.outcome is CheckOutcome.PASS
    assert "each line began with a quote mark" in check.message


def test_a_prefix_that_was_removed_is_told() -> None:
    config = config_of("".join(f"> {line}\n" for line in BY_MAKE.splitlines()))

    assert config.prefix == "each line began with a quote mark"


@pytest.mark.parametrize(
    "content",
    [
        lzma.compress(BY_MAKE.encode())[:-20],
        b"\xfd7zXZ\0nonsense",
        gzip.compress(b"\0" * (MAX_CONFIG_BYTES + 1)),
        b"PK\x03\x04...",
        b"#!/bin/sh\nCONFIG=y\n",
    ],
)
def test_what_is_damaged_or_no_configuration_is_refused(content: bytes) -> None:
    with pytest.raises(TargetError, match="config: "):
        parse_config(content, source="config")


# --- an excerpt ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "called"),
    [
        (
            "CONFIG_PREEMPT_RT=y\nCONFIG_EXPERT=y\nCONFIG_HZ_1000=y\nCONFIG_A=y\n",
            "an excerpt of 4 symbols, no whole configuration: it asks for PREEMPT_RT=y",
        ),
        (
            "CONFIG_PREEMPT_RT=y\n",
            "an excerpt of 1 symbol, no whole configuration: it asks for PREEMPT_RT=y",
        ),
        (
            "# CONFIG_PREEMPT_RT is not set\nCONFIG_PREEMPT=y\n",
            "an excerpt of 2 symbols, no whole configuration: it asks for PREEMPT_RT=n,"
            " PREEMPT=y",
        ),
        (
            "CONFIG_SMP=y\n",
            "an excerpt of 1 symbol, no whole configuration: it asks for no preemption",
        ),
        (
            "-PREEMPT_VOLUNTARY y\n PREEMPT_RT n -> y\n+HZ 1000\n",
            "an excerpt of 3 symbols, no whole configuration: it asks for PREEMPT_RT=y,"
            " PREEMPT_VOLUNTARY=n",
        ),
        (
            "CONFIG_PREEMPT_RT_FULL=y\n# comment\n",
            "an excerpt of 1 symbol, no whole configuration: it asks for "
            "PREEMPT_RT_FULL=y",
        ),
    ],
)
def test_a_fragment_is_called_one_and_proves_nothing(text: str, called: str) -> None:
    kernel = identify_config(config_of(text), of_build=False)
    context = context_of_config(config_of(text), of_build=False)
    checks = examine(context, verifying())

    assert (kernel.preempt_rt, kernel.preemption_model) == (None, None)
    assert kernel_line(kernel) == called
    assert {c.kind.id for c in checks if c.outcome is CheckOutcome.PASS} <= {
        "config_lines"
    }


def test_a_fragment_that_asks_for_what_is_wrong_fails() -> None:
    check = found("CONFIG_DEBUG_PREEMPT=y\n", "preempt_debugging")

    assert (check.outcome, check.message) == (
        CheckOutcome.FAIL,
        "it asks for DEBUG_PREEMPT=y",
    )


def test_an_image_is_a_kernel_whatever_its_configuration_leaves_out() -> None:
    banner = "Linux version 6.12.1 (a@b) (gcc) #1 SMP PREEMPT_RT Mon"

    config = config_of("CONFIG_PREEMPT_RT=y\n")

    kernel = identify_config(config, banner=banner)

    assert kernel.preempt_rt is True


@pytest.mark.parametrize(
    "head",
    [
        "# Automatically generated make config: don't edit\n"
        "# Linux kernel version: 2.6.33.9-rt31\n",
        "# Automatically generated file; DO NOT EDIT.\n"
        "# Linux/arm 4.9.90-rt71 Kernel Configuration\n",
        "# Automatically generated file; DO NOT EDIT.\r\n"
        "# Linux/riscv 5.15.0-rt17+ Kernel Configuration\r\n",
    ],
)
def test_a_configuration_of_any_age_is_whole_and_has_its_version(head: str) -> None:
    config = config_of(f"{head}CONFIG_SMP=y\n")

    assert config.whole
    assert config.release in ("2.6.33.9-rt31", "4.9.90-rt71", "5.15.0-rt17+")


# --- a patched source ----------------------------------------------------------------


def test_what_make_wrote_without_expert_is_a_note() -> None:
    check = found(BY_MAKE, "preempt_rt_base")

    assert (check.outcome, check.severity) == (CheckOutcome.FAIL, Severity.INFO)
    assert "make wrote PREEMPT_RT=y" in check.message
    assert found(BY_MAKE, "preempt_rt").outcome is CheckOutcome.PASS


def test_what_make_wrote_without_support_of_the_architecture_is_a_note() -> None:
    text = BY_MAKE.replace("CONFIG_ARCH_SUPPORTS_RT=y\n", "")
    text = text.replace("# CONFIG_EXPERT is not set", "CONFIG_EXPERT=y")

    assert found(text, "preempt_rt_base").severity is Severity.INFO


ABOVE = BY_MAKE.replace("CONFIG_PREEMPT_RT=y\n", "")


@pytest.mark.parametrize(
    "text",
    [
        f"{ABOVE}CONFIG_PREEMPT_RT=y\n",
        BY_MAKE.replace("CONFIG_PREEMPT_COUNT=y\n", ""),
        BY_MAKE.replace("CONFIG_PREEMPT_LAZY=y", "CONFIG_PREEMPT_NONE=y"),
        BY_MAKE.replace("# CONFIG_EXPERT is not set\n", ""),
        f"{BY_MAKE}CONFIG_EXPERT=y\n# CONFIG_EXPERT is not set\n",
        BY_MAKE.replace(HEAD, "# Automatically generated file; DO NOT EDIT.\n"),
    ],
)
def test_preempt_rt_that_somebody_wrote_in_stays_fatal(text: str) -> None:
    check = found(text, "preempt_rt_base")

    assert (check.outcome, check.severity) == (CheckOutcome.FAIL, Severity.FATAL)


def test_the_first_patches_of_preempt_rt_need_no_expert() -> None:
    text = f"{HEAD.replace('6.12.6', '4.9.90-rt71')}CONFIG_PREEMPT_RT_FULL=y\n"

    assert identify_config(config_of(text)).preempt_rt is True
    assert found(text, "preempt_rt_base").outcome is CheckOutcome.NOT_APPLICABLE
