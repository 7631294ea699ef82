"""From the files that a board has sent to its record."""

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.measurements import record, thread
from fakes.trees import GUEST, Files
from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import Kernel
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import Qemu
from rtscope.boards.runs.assemble import measured_on_board
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.diagnosis import messages_of
from rtscope.boards.runs.prepare import request_for
from rtscope.contract import (
    Applied,
    FileLine,
    KernelMessage,
    Line,
    Refused,
    Tuned,
    dump_line,
)
from rtscope.host.errors import BoardError
from rtscope.machine.settings.remedies import SettingChange, TuningPlan
from rtscope.measure.assemble import assemble
from rtscope.measure.campaign.model import Campaign
from rtscope.record.caveats.catalogue import caveats_from_outside
from rtscope.record.model import RunRecord

MEASURED = (Path(__file__).parents[2] / "format/v2/x86_64.jsonl").read_bytes()
BOARD = get_board("pc")
PREPARED = Prepared(
    BOARD,
    Qemu((), version="1", digest=""),
    plugin=Path("/plugin.so"),
    kernel=Kernel("debian-6.12-rt", Path(__file__), "a" * 64),
    archives=(),
    parts=(),
)


def sent(files: Files) -> bytes:
    """Return the lines of the board's agent that read these files."""
    return b"\n".join(
        dump_line(
            FileLine(
                path,
                "ok",
                base64.b64encode(
                    content.encode() if isinstance(content, str) else content
                ).decode(),
            )
        )
        for path, content in files.items()
    )


TUNED = (
    Applied("irq_affinity", 4, "0-1", "0"),
    Refused("watchdog", 0, "0", "missing", "no such file"),
    Tuned(2, applied=1, already=0, refused=1),
)
PLAN = TuningPlan(
    (
        SettingChange(
            "irq_affinity", "irq_affinity", 4, "/proc/irq/4/smp_affinity_list", "", "0"
        ),
        SettingChange("watchdog", "watchdog", 0, "/proc/sys/kernel/watchdog", "1", "0"),
    ),
    impossible={"scaling_governor": "this machine has no /sys/cpufreq"},
)


def kept_of(*lines: Line, tuned: tuple[str, ...]) -> RunRecord:
    """Return the record of a board whose agent answered so to its settings."""
    run = replace(record([thread([9_000])]).run, target="virtual:pc")
    booted = Booted(
        files={
            "measure.jsonl": MEASURED,
            "facts-before.jsonl": sent(GUEST),
            "facts-after.jsonl": sent(GUEST),
            "tuned.jsonl": b"\n".join(dump_line(line) for line in lines),
        },
        counts={},
        initrd_digest="",
        plugin_digest="",
        host_seconds=1.0,
    )
    campaign = Campaign(target="virtual:pc", tuned=tuned)
    asked = request_for(run, campaign, BOARD, ("rtscope",), settings=("--set", "x"))
    request = replace(asked, tuning=PLAN)
    return assemble(
        measured_on_board(request, PREPARED, booted, trace={}, attachments={})
    )


def test_settings_that_a_board_made_or_refused_are_in_its_record() -> None:
    kept = kept_of(*TUNED, tuned=("safe",))

    tuning = kept.tuning or {}
    assert tuning["changed"] == [
        {
            "check": "irq_affinity",
            "path": "/proc/irq/4/smp_affinity_list",
            "before": "0-1",
            "value": "0",
        }
    ]
    assert [one["reason"] for one in tuning["refused"]] == ["no such file"]
    assert tuning["impossible"] == PLAN.impossible
    assert tuning["options"] == ["--set", "x"]  # for a replay
    changed = [c.detail for c in kept.caveats if c.id == "knobs_changed"]
    assert changed == ["irq_affinity=0"]


def test_a_named_setting_that_a_board_refuses_is_no_measurement() -> None:
    with pytest.raises(BoardError, match="001-idle: pc: --tuned: watchdog: no such"):
        kept_of(*TUNED, tuned=("irq_affinity", "watchdog"))


def test_a_board_is_said_to_be_a_board_and_not_to_be_a_guest_too() -> None:
    run = replace(record([thread([9_000])]).run, target="virtual:pc")
    booted = Booted(
        files={
            "measure.jsonl": MEASURED,
            "facts-before.jsonl": sent(GUEST),
            "facts-after.jsonl": sent(GUEST),
        },
        counts={"marks": 3, "last_mark": 70, "instructions": 99, "per_cpu": [99]},
        initrd_digest="",
        plugin_digest="",
        host_seconds=1.0,
    )

    campaign = Campaign(target="virtual:pc")
    request = request_for(run, campaign, BOARD, ("rtscope",))
    kept = assemble(
        measured_on_board(request, PREPARED, booted, trace={}, attachments={})
    )

    # What was counted until QEMU ended is of the host, and differs each time.
    assert kept.virtual is not None
    assert kept.virtual.plugin_counters == {"marks": 3, "last_mark": 70}
    raised = [caveat.id for caveat in kept.caveats]
    assert kept.facts_before["guest"].value is True
    assert "virtual_board" in raised
    assert "guest" not in raised


@pytest.mark.parametrize(
    ("append", "told"),
    [
        (("rcu_nocbs=all",), ["rcu_nocbs=all: unknown to this kernel"]),
        (("skew_tick=1",), []),
        ((), []),  # the board's own are no doubt
    ],
)
def test_a_boot_parameter_that_the_kernel_ignores_limits_the_result(
    append: tuple[str, ...], told: list[str]
) -> None:
    log = b'Unknown kernel command line parameters "pti=off rcu_nocbs=all", will be'

    kept = kept_with_log(log, append=append)

    raised = [one.detail for one in kept.caveats if one.id == "parameters_ignored"]
    assert raised == told


THROTTLED = b"<4>[    2.250000] sched: RT throttling activated"
CUT = b"<4>[    2.500000] ------------[ cut here ]------------"
WARNED = b"<4>[    2.500000] WARNING: CPU: 0 PID: 76 at kernel/sched/cpupri.c:151"
BOOTED = b"<6>[    0.100000] smpboot: Booting Node   0, Processors: #1"
UNKNOWN = b"<3>[    0.200000] ACPI: no such table"


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ([BOOTED, UNKNOWN], []),
        (
            [BOOTED, CUT, WARNED],
            ["kernel warning: 2 messages, the first: WARNING: CPU: 0 PID: 76 at ker"],
        ),
        (
            [WARNED, THROTTLED, WARNED],
            [
                "kernel warning: 2 messages, the first: WARNING: CPU: 0 PID: 76",
                "; RT throttling: 1 message: sched: RT throttling activated",
            ],
        ),
    ],
)
def test_a_warning_before_the_measured_time_is_a_doubt(
    log: list[bytes], told: list[str]
) -> None:
    kept = kept_with_log(b"\n".join(log))

    details = [c.detail for c in kept.caveats if c.id == "kernel_warned_outside"]
    assert len(details) == bool(told)
    assert all(text in details[0] for text in told)


def test_a_warning_within_the_measured_time_is_told_once() -> None:
    message = KernelMessage(time_us=2_500_000, level=4, text=WARNED[18:].decode())
    assert not list(caveats_from_outside(messages_of(WARNED.decode()), [message]))


def kept_with_log(log: bytes, *, append: tuple[str, ...] = ()) -> RunRecord:
    """Return the record of a boot with this kernel log."""
    run = replace(record([thread([9_000])]).run, target="virtual:pc")
    booted = Booted(
        files={
            "measure.jsonl": MEASURED,
            "facts-before.jsonl": sent(GUEST),
            "facts-after.jsonl": sent(GUEST),
            "kernel.log": log,
        },
        counts={},
        initrd_digest="",
        plugin_digest="",
        host_seconds=1.0,
    )
    campaign = Campaign(target="virtual:pc", append=append)
    request = request_for(run, campaign, BOARD, ("rtscope",))
    return assemble(
        measured_on_board(request, PREPARED, booted, trace={}, attachments={})
    )
