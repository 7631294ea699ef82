"""Whether the kernel may call EFI firmware: by its words, files and log."""

import gzip

import pytest

from fakes.audited import BOOTED, FAIL, NONE, PASS, UNKNOWN, Case, judged
from fakes.trees import Files
from rtscope.machine.audit.context import Observed
from rtscope.machine.audit.examine import catalogue, context_of_config, examine
from rtscope.machine.audit.machinechecks import EFI_BITS, EFI_WORKERS
from rtscope.machine.audit.model import CheckOutcome
from rtscope.machine.kernelconfig import parse_config
from rtscope.machine.kernelidentity import CMDLINE
from rtscope.machine.reader import Denied

HEAD = "# Automatically generated file; DO NOT EDIT.\nCONFIG_X86_64=y\n"
ON = "CONFIG_EFI=y\n# CONFIG_EFI_DISABLE_RUNTIME is not set\n"
OFF = "CONFIG_EFI=y\nCONFIG_EFI_DISABLE_RUNTIME=y\n"
OLD_RT = "CONFIG_EFI=y\nCONFIG_PREEMPT_RT=y\n"
OLD = "CONFIG_EFI=y\nCONFIG_PREEMPT_NONE=y\n"
BANNER = f"{BOOTED}[    0.000000] efi: EFI v2.7 by EDK II\n"


def config(text: str) -> Files:
    return {"/proc/config.gz": gzip.compress((HEAD + text).encode(), mtime=0)}


@pytest.mark.parametrize(
    ("options", "cmdline", "wanted"),
    [
        (ON, "quiet", FAIL),
        (ON, "efi=noruntime", PASS),
        (ON, "noefi", PASS),
        (ON, "efi=debug,noruntime", PASS),
        (ON, "efi=noruntime efi=runtime", FAIL),
        (ON, "quiet -- efi=noruntime", FAIL),
        (ON, "myefi=noruntime", FAIL),
        (OFF, "quiet", PASS),
        (OFF, "efi=runtime", FAIL),
        (OFF, "efi=noruntime,runtime", FAIL),
        (OLD, "quiet", FAIL),
        (OLD_RT, "quiet", UNKNOWN),
        ("# CONFIG_EFI is not set\n", "quiet", NONE),
        ("# CONFIG_EFI is not set\n", "efi=runtime", NONE),
    ],
)
def test_the_last_word_on_efi_decides(
    options: str, cmdline: str, wanted: CheckOutcome
) -> None:
    files = {**config(options), EFI_BITS: "64", CMDLINE: cmdline}
    assert judged("efi_runtime", Case(files)).outcome is wanted


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (None, UNKNOWN),
        ("[    9.000000] usb: hello\n", UNKNOWN),
        (BOOTED, NONE),
        (BANNER, FAIL),
        ("[    0.000000] efi: EFI v2.7 by EDK II\n", FAIL),
    ],
)
def test_an_absent_directory_is_no_proof_but_a_whole_log_is(
    log: str | None, wanted: CheckOutcome
) -> None:
    files = {**config(ON), CMDLINE: "quiet"}
    case = Case(files, observed=Observed(kernel_log=log))
    assert judged("efi_runtime", case).outcome is wanted


def test_a_file_that_may_not_be_read_is_there() -> None:
    files = {**config(ON), CMDLINE: "quiet"}
    case = Case(files, {EFI_BITS: Denied("Permission denied")})
    assert judged("efi_runtime", case).outcome is FAIL


@pytest.mark.parametrize(
    ("mask", "cpus", "wanted"),
    [
        ("1", (1,), PASS),
        ("00000000,00000001", (1,), PASS),
        ("3", (1,), FAIL),
        ("3", None, FAIL),
        ("garbage", (1,), UNKNOWN),
        ("4", (1,), UNKNOWN),
        ("5", (1,), PASS),
        ("", (1,), UNKNOWN),
    ],
)
def test_calls_may_be_confined_to_other_cpus(
    mask: str, cpus: tuple[int, ...] | None, wanted: CheckOutcome
) -> None:
    files = {**config(ON), EFI_BITS: "64", CMDLINE: "quiet", EFI_WORKERS: mask}
    files |= {"/sys/devices/system/cpu/online": "0-1"}
    assert judged("efi_runtime", Case(files, cpus=cpus)).outcome is wanted


@pytest.mark.parametrize(
    ("options", "wanted"), [(ON, FAIL), (OFF, PASS), ("CONFIG_EFI=n\n", NONE)]
)
def test_a_configuration_alone_tells_the_default(
    options: str, wanted: CheckOutcome
) -> None:
    found = parse_config((HEAD + options).encode(), source="config")
    (check,) = examine(context_of_config(found), [catalogue()["efi_runtime"]])
    assert check.outcome is wanted
    assert wanted is not FAIL or "if EFI firmware starts" in check.message
