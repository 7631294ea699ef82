"""Which settings --tuned makes on a virtual board, after one look at each kernel."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fakes.audited import KERNEL, KTHREADD, thread, threads
from rtscope.boards.catalogue import get_board, with_append
from rtscope.boards.kernels.catalogue import Kernel
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import Qemu
from rtscope.boards.runs import inspect as inspecting
from rtscope.boards.runs.inspect import GuestFiles, GuestInspections, settings_for
from rtscope.host.errors import TargetError
from rtscope.machine.settings.remedies import choose

PREPARED = Prepared(
    get_board("pc"),
    Qemu((), version="1", digest=""),
    plugin=Path("/plugin.so"),
    kernel=Kernel("debian-6.12-rt", Path("/kernel"), "a" * 64),
    archives=(),
    parts=(),
)
LOCKED = "/proc/sys/vm/compact_unevictable_allowed"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The paths that boards were asked for; none is booted."""
    found: list[Sequence[str]] = []

    def inspect(_: Prepared, paths: Sequence[str], **__: Any) -> SimpleNamespace:
        found.append(paths)
        return SimpleNamespace(reader=GuestFiles({LOCKED: b"1\n"}))

    monkeypatch.setattr(inspecting, "inspect_guest", inspect)
    return found


def test_a_kernel_is_looked_at_once_for_all_its_runs(
    asked: list[Sequence[str]],
) -> None:
    known = GuestInspections(lambda _: None)
    other = replace(PREPARED, board=with_append(PREPARED.board, ["quiet"]))
    kinds = choose(["locked_memory_moves"])

    plans = [
        settings_for(board, kinds, known, named=(), cpus=cpus)
        for board in (PREPARED, other)
        for cpus in (None, (1,))
    ]

    assert len(asked) == 2  # two command lines
    assert LOCKED in asked[0]
    assert "/proc/irq/*/smp_affinity_list" in asked[0]
    assert [[c.value for c in plan.changes] for plan in plans] == [["0"]] * 4


@pytest.mark.parametrize(
    ("check", "files", "written"),
    [
        (
            "fair_server",
            {
                f"/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime": b"50000000\n"
                for cpu in (0, 1)
            },
            ["0", "0"],
        ),
        (
            "preemption_model",
            {"/sys/kernel/debug/sched/preempt": b"none (voluntary) full\n"},
            ["full"],
        ),
    ],
)
def test_settings_of_the_scheduler_are_made_on_a_board(
    monkeypatch: pytest.MonkeyPatch,
    check: str,
    files: dict[str, bytes],
    written: list[str],
) -> None:
    machine = {
        "/proc/sys/kernel/osrelease": b"6.12.43+deb13-amd64\n",
        "/proc/sys/kernel/version": b"#1 SMP PREEMPT_DYNAMIC Debian 6.12.43-1\n",
        "/sys/devices/system/cpu/online": b"0-1\n",
        **files,
    }

    def inspect(*_: Any, **__: Any) -> SimpleNamespace:
        return SimpleNamespace(reader=GuestFiles(machine))

    monkeypatch.setattr(inspecting, "inspect_guest", inspect)

    plan = settings_for(
        PREPARED,
        choose([check]),
        GuestInspections(lambda _: None),
        named=[check],
        cpus=(0, 1),
    )

    assert [change.value for change in plan.changes] == written


def test_a_named_check_without_a_remedy_there_is_refused(
    asked: list[Sequence[str]],
) -> None:
    kinds = choose(["irq_affinity", "locked_memory_moves"])

    known = GuestInspections(lambda _: None)
    with pytest.raises(TargetError, match="pc: --tuned: irq_affinity: unknown: no /pr"):
        settings_for(PREPARED, kinds, known, named=["irq_affinity"], cpus=(1,))
    lenient = settings_for(PREPARED, kinds, known, named=["safe"], cpus=(1,))
    assert "irq_affinity" in lenient.impossible
    assert len(lenient.changes) == 1
    assert asked


def test_an_interrupt_thread_of_the_next_boot_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    word = "interrupt_threads:eth0=90"
    stats = threads(KTHREADD, thread("irq/24-eth0", 1, 50, KERNEL))
    by_process = {f"/proc/{p.split('/')[2]}/stat": t for p, t in stats.items()}
    files = {p: str(text).encode() for p, text in {**stats, **by_process}.items()}

    def inspect(*_: Any, **__: Any) -> SimpleNamespace:
        return SimpleNamespace(reader=GuestFiles(files))

    monkeypatch.setattr(inspecting, "inspect_guest", inspect)

    with pytest.raises(TargetError, match="numbers its threads anew at each boot"):
        settings_for(
            PREPARED,
            choose([word]),
            GuestInspections(lambda _: None),
            named=[word],
            cpus=None,
        )
