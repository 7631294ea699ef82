"""Why a board gave no results, in words."""

from dataclasses import replace

import pytest

from rtscope.boards.catalogue import get_board
from rtscope.boards.runs.diagnosis import MIB, Evidence, diagnose, oom_kills

BOARD = get_board("jh7110")
LEFT = Evidence(
    board=BOARD,
    status=0,
    given_up="",
    stderr="",
    console=(),
    missing="the board sent no results",
    host_available_bytes=300 * MIB,
    folder="/tmp",
    folder_free_bytes=1 << 40,
)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "[ 1.2] Kernel panic - not syncing: Fatal exception",
            "the kernel panicked: Fatal exception",
        ),
        (
            "Kernel panic - not syncing: System is deadlocked on memory",
            "the board ran out of its memory of 1G",
        ),
        (
            "Kernel panic - not syncing: VFS: Unable to mount root fs on (0,0)",
            "the kernel found no program to start",
        ),
        (
            "Initramfs unpacking failed: write error",
            "could not unpack its user space (write error)",
        ),
        ("tar: can't open '/dev/x'", "could not send its results: can't open"),
    ],
)
def test_the_kernels_last_words_are_the_reason(line: str, words: str) -> None:
    told = diagnose(replace(LEFT, console=("early", line, "Call Trace:")))

    assert words in told
    assert line in told


def test_a_panic_is_shown_from_what_led_to_it() -> None:
    trace = [f"[<{n}>] function" for n in range(40)]
    console = ("a", "b", "Oops", "Kernel panic - not syncing: bad", *trace)

    assert "  Oops\n  Kernel panic - not syncing: bad\n  [<0>]" in diagnose(
        replace(LEFT, console=console)
    )


def test_a_board_that_got_on_until_its_limit_is_not_said_to_have_a_bad_kernel() -> None:
    given_up = "it has not ended within 300 s of host time, the host limit"

    assert diagnose(replace(LEFT, console=(), given_up=given_up)) == (
        f"jh7110: {given_up}"
    )


def test_a_kernel_that_said_nothing_after_the_firmware_is_told_so() -> None:
    firmware = ("OpenSBI v1.6", "Boot HART MEDELEG           : 0xf4b509")
    told = diagnose(replace(LEFT, console=firmware, given_up="it has stopped"))

    assert told.startswith("jh7110: it has stopped; its kernel has printed nothing")
    assert told.endswith("built in, for which 1G of memory are enough")
    assert "a kernel for riscv64 with the console ttyS0 built in" in told


def test_a_killed_qemu_tells_the_memory_of_board_and_host() -> None:
    assert "the board has 1G besides QEMU, this machine 300 MiB free" in diagnose(
        replace(LEFT, status=-9)
    )


def test_a_plugin_that_does_not_know_what_it_is_asked_is_of_another_rtscope() -> None:
    said = "rtscope-plugin: bad argument: switched=1\nqemu: Could not load plugin p.so"
    told = diagnose(replace(LEFT, status=1, stderr=said))

    assert "the plugin of these parts belongs to another version" in told
    assert "--no-record" in told


def test_a_full_disk_comes_before_what_follows_from_it() -> None:
    told = diagnose(replace(LEFT, status=1, stderr="broken", folder_free_bytes=0))

    assert told.startswith("jh7110: no space left in /tmp")


def test_an_agent_killed_for_want_of_memory_is_named() -> None:
    log = "x\nOut of memory: Killed process 71 (rtscope-agent) total-vm:9kB\n"

    assert oom_kills(log, BOARD) == (
        "the board ran out of its memory of 1G: Killed process 71 (rtscope-agent) "
        "total-vm:9kB"
    )
    assert oom_kills("all well\n", BOARD) == ""
