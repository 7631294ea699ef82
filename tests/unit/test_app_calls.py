"""Each system call of the kernel is judged, and the agent's table is that judgement."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata, resources
from pathlib import Path

import pytest

from fakes import watching
from rtscope.programs.calls import (
    NARROW,
    X32_BIT,
    call_kinds,
    idle_wait,
    may_block,
    names_of_calls,
    reason_of,
)

ROOT = Path(__file__).parent.parent.parent
HEADERS = (
    Path(str(metadata.distribution("ziglang").locate_file("ziglang")))
    / "lib/libc/include"
)
X86_64, GENERIC, ARM, I386, X32 = range(5)
PLACES = [
    ("x86-linux-any/asm/unistd_64.h", X86_64),
    ("aarch64-linux-any/asm/unistd_64.h", GENERIC),
    ("riscv-linux-any/asm/unistd_64.h", GENERIC),
    ("arm-linux-any/asm/unistd-eabi.h", ARM),
    ("x86-linux-any/asm/unistd_32.h", I386),
    ("x86-linux-any/asm/unistd_x32.h", X32),
]
NUMBER = re.compile(
    r"#define __NR_([a-z0-9_]+)\s+"
    r"(?:\(__(?:NR_SYSCALL_BASE|X32_SYSCALL_BIT) ?\+ ?)?([0-9]+)\)?\s*$",
    re.M,
)


def numbers_in(header: Path) -> Mapping[str, int]:
    return {match[1]: int(match[2]) for match in NUMBER.finditer(header.read_text())}


@pytest.mark.parametrize(("place", "column"), PLACES)
def test_each_call_of_the_kernels_headers_is_judged(place: str, column: int) -> None:
    numbers = numbers_in(HEADERS / place)

    assert len(numbers) > 300
    for name, number in numbers.items():
        assert call_kinds()[name].numbers[column] == number, name


@pytest.mark.parametrize(
    ("place", "column"),
    [
        ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", X86_64),
        ("/usr/include/aarch64-linux-gnu/asm/unistd_64.h", GENERIC),
        ("/usr/include/riscv64-linux-gnu/asm/unistd_64.h", GENERIC),
    ],
)
def test_each_call_of_this_machines_headers_is_judged(place: str, column: int) -> None:
    if not Path(place).exists():
        pytest.skip(f"needs {place}")
    for name, number in numbers_in(Path(place)).items():
        assert call_kinds()[name].numbers[column] == number, name


def test_a_call_of_a_board_is_named_by_the_mode_that_it_was_made_in() -> None:
    assert names_of_calls("x86_64")[1] == "write"
    assert names_of_calls("x86_64")[X32_BIT | 516] == "writev"
    assert names_of_calls("aarch64")[64] == "write"
    assert names_of_calls("aarch64")[NARROW | 4] == "write"
    assert NARROW | 4 not in names_of_calls("riscv64")


def test_the_agents_table_is_made_of_the_judgement() -> None:
    command = [sys.executable, str(ROOT / "tools" / "calltable.py"), "--check"]

    assert subprocess.run(command, check=False).returncode == 0


def test_each_call_has_a_reason_and_an_effect_that_is_explained() -> None:
    text = resources.files("rtscope.programs").joinpath("calls.toml").read_text()
    effects = tomllib.loads(text)["effects"]

    for name, kind in call_kinds().items():
        assert kind.why, name
        assert kind.effect in effects, name
        assert not (kind.idle and kind.effect in ("none", "file", "memory")), name
    assert "not judged" in reason_of("")


@pytest.mark.parametrize(
    "names",
    [
        "rename unlink ftruncate fallocate newfstatat access msync sync_file_range "
        "preadv pwritev close mq_timedreceive semtimedop sendmmsg recvmmsg getrandom "
        "membarrier",
        "io_uring_enter sendfile splice copy_file_range preadv2 pwritev2 mkdir "
        "getdents64 statx openat2 syncfs msgrcv semop rt_sigtimedwait fork vfork "
        "epoll_wait fcntl",
        "read write openat fsync fdatasync sync ioctl ppoll pselect6 sendto recvfrom "
        "sendmsg recvmsg accept connect sched_yield clone clone3 execve waitid flock "
        "msgsnd tee vmsplice mkdirat linkat symlinkat truncate fchmod statfs dup",
    ],
)
def test_calls_that_block_or_touch_a_file_system_are_judged_so(names: str) -> None:
    for name in names.split():
        assert call_kinds()[name].effect not in ("none", "memory", "cycle"), name


def test_calls_that_only_read_or_set_a_number_cannot_block() -> None:
    names = (
        "getpid gettid clock_gettime timerfd_settime timer_settime rt_sigprocmask "
        "tgkill sched_getaffinity rseq getcpu prlimit64 futex_wake"
    )
    for name in names.split():
        assert call_kinds()[name].effect == "none", name


def test_one_call_with_several_arguments_is_one_row() -> None:
    rows = tuple(watching.call("read", 2, n, idle=True, key=f"{n:x}") for n in (5, 9))
    seen = replace(watching.thread(1), calls=rows)

    (one,) = may_block(seen)

    assert (one.name, one.times.count, one.times.worst_ns) == ("read", 4, 9)
    assert idle_wait(seen) is None


def test_the_idle_wait_is_known_where_the_records_of_its_sleeps_were_lost() -> None:
    wait = watching.call("epoll_wait", 199, 50_000_000, idle=True)
    other = watching.call("read", 199, 3_000, idle=True, key="4")
    seen = watching.thread(1)
    rest_ns = seen.to_ns - seen.from_ns - wait.times.total_ns
    lost = replace(seen, calls=(wait, other), slept_elsewhere_ns=wait.times.total_ns)

    assert 0 < rest_ns < wait.times.total_ns
    assert idle_wait(lost) is wait
    assert [one.name for one in may_block(lost)] == ["read"]


def test_the_only_wait_of_a_thread_that_never_sleeps_is_its_idle_wait() -> None:
    wait = watching.call("ppoll", 200, 2_000, idle=True)
    write = watching.call("write", 200, 9_000)
    late = replace(watching.thread(1), calls=(write, wait))

    assert idle_wait(late) is wait
    assert [one.name for one in may_block(late)] == ["write"]
    assert idle_wait(replace(late, slept_elsewhere_ns=10**9)) is None
    slept = replace(write, slept=watching.times(1, 5_000, ""))
    assert idle_wait(replace(late, calls=(slept, wait))) is None


@pytest.mark.parametrize("name", ["poll", "epoll_wait", "pselect6", "read"])
def test_a_call_that_took_most_of_the_time_is_the_idle_wait_if_few_sleeps_were_seen(
    name: str,
) -> None:
    seen = watching.thread(1)
    most_ns = (seen.to_ns - seen.from_ns) * 3 // 4
    long = replace(watching.times(200, 9_000_000, name), total_ns=most_ns)
    few = watching.times(2, 4_000, "")
    wait = watching.call(name, 200, idle=True, times=long, slept=few)
    write = watching.call("write", 3, slept=watching.times(3, 90_000, ""))
    late = replace(seen, calls=(write, wait), slept_elsewhere_ns=most_ns)

    assert idle_wait(late) is wait
    assert [one.name for one in may_block(late)] == ["write"]
    short = replace(wait, times=replace(long, total_ns=most_ns // 3))
    assert idle_wait(replace(late, calls=(write, short))) is None


def test_a_call_that_the_kernel_or_a_device_held_most_of_the_time_is_no_idle_wait() -> (
    None
):
    seen = watching.thread(1)
    most_ns = (seen.to_ns - seen.from_ns) * 3 // 4
    long = replace(watching.times(9, 9_000_000, "read"), total_ns=most_ns)
    read = watching.call("read", 9, idle=True, times=long, held=long)
    stuck = replace(seen, calls=(read, watching.call("poll", 9, idle=True)))

    assert idle_wait(stuck) is None
