"""How many boards run at once."""

from collections.abc import Mapping

import pytest

from rtscope.boards.catalogue import get_board
from rtscope.boards.runs.capacity import MIB, Capacity, free_memory_bytes, host_capacity
from rtscope.boards.runs.inspect import GuestFiles
from rtscope.host.errors import BoardError
from rtscope.machine.reader import Content

BOARD = get_board("pc")
EACH_BYTES = 1536 * MIB
MEMINFO = {"/proc/meminfo": b"MemTotal: 9 kB\nMemAvailable:    8388608 kB\n"}


def free(files: Mapping[str, Content]) -> int | None:
    return free_memory_bytes(GuestFiles(files))


@pytest.mark.parametrize(
    ("cpus", "jobs", "runs", "boards"),
    [(8, None, 20, 8), (8, None, 3, 3), (8, 2, 20, 2), (2, 6, 20, 6), (8, 6, 1, 1)],
)
def test_as_many_boards_as_cpus_or_as_asked_but_no_more_than_runs(
    cpus: int, jobs: int | None, runs: int, boards: int
) -> None:
    for free_bytes in (8 * EACH_BYTES, None):
        found = host_capacity(
            BOARD, cpus=cpus, free_bytes=free_bytes, jobs=jobs, runs=runs
        )
        assert found == Capacity(boards)


def test_fewer_boards_for_want_of_memory_are_said() -> None:
    found = host_capacity(
        BOARD, cpus=8, free_bytes=3 * EACH_BYTES + 1, jobs=None, runs=20
    )

    assert found.boards == 3
    assert found.message == (
        "3 of 8 boards at once: each takes up to 1536 MiB, and 4608 MiB are free on "
        "this machine"
    )


def test_a_board_that_does_not_fit_is_refused_before_it_starts() -> None:
    with pytest.raises(BoardError, match=r"up to 1536 MiB \(1G and QEMU\), and 1535"):
        host_capacity(BOARD, cpus=8, free_bytes=EACH_BYTES - 1, jobs=None, runs=1)


def test_free_memory_is_that_of_the_machine_without_cgroups() -> None:
    assert free(MEMINFO) == 8192 * MIB
    assert free({}) is None


def test_the_tightest_cgroup_above_us_counts() -> None:
    files = {
        **MEMINFO,
        "/proc/self/cgroup": b"0::/ci/job\n",
        "/sys/fs/cgroup/ci/job/memory.max": b"max\n",
        "/sys/fs/cgroup/ci/job/memory.current": b"5\n",
        "/sys/fs/cgroup/ci/memory.max": b"3000\n",
        "/sys/fs/cgroup/ci/memory.current": b"1000\n",
    }

    assert free(files) == 2000


def test_version_1_of_cgroups_counts_too_and_its_huge_number_is_no_limit() -> None:
    files = {
        **MEMINFO,
        "/proc/self/cgroup": b"7:cpu:/a\n5:memory:/a\n",
        "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": b"900\n",
        "/sys/fs/cgroup/memory/a/memory.usage_in_bytes": b"1000\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": b"9223372036854771712\n",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": b"1000\n",
    }

    assert free(files) == 0
