"""
What the matrix plants: each culprit, where it makes the thread late, and its title.

The names are here and in the modules, and nowhere in the code.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from culprits.scenes import BOTH

PLAIN, RT = BOTH
TURN_NS = 12_000_000
PIECE = ("interrupts off", "preemption off")
NOT_OFF = ("kernel code without preemption",)
ANY_INTERRUPT = ("an earlier interrupt", "another interrupt")
OTHER_CPU = ("waiting for another CPU",)
LOCK = ("waiting for a lock",)
GRACE_PERIOD = ("waiting for a grace period",)
BLOCKED = ("waiting for another thread",)
RIVAL = ("another task",)
WAIT = (*LOCK, *OTHER_CPU)
PROBE = ("a probe",)


@dataclass(frozen=True, slots=True)
class Culprit:
    """One that is planted, and what an explanation has to say of it."""

    what: str
    name: str
    """The function to blame, or the task."""
    causes: tuple[str, ...]
    on: tuple[str, ...] = BOTH
    """The kernels on which it makes the thread late; on others nothing may be late."""
    elsewhere: bool = False
    """It is on another CPU."""


NEAR = (
    Culprit("interrupts off, helper of another module", "mask_and_poll", PIECE[:1]),
    Culprit("preemption off, helper of another module", "pinned_section", PIECE[1:]),
    Culprit("raw spin lock held, udelay, tail call", "drain_fifo", PIECE[:1]),
    Culprit("preemption off, mdelay", "settle_phy", PIECE[1:]),
    Culprit("interrupts off, memcpy", "copy_frame", PIECE[:1]),
    Culprit("interrupts off, printk", "dump_registers", PIECE[:1], (PLAIN,)),
    Culprit("softirqs off", "bottom_halves_off", PIECE[1:], (PLAIN,)),
    Culprit("a loop with nothing off", "long_walk", NOT_OFF, (PLAIN,)),
    Culprit("interprocessor call, tail call", "doorbell", ANY_INTERRUPT),
    Culprit("irq_work, tail call", "refill", ANY_INTERRUPT),
    Culprit("hard hrtimer", "sample_adc", ("another timer's callback",)),
    Culprit("soft hrtimer", "blink_led", ("a softirq",), (PLAIN,)),
    Culprit("timer wheel", "retransmit", ("a softirq",), (PLAIN,)),
    Culprit("tasklet", "receive_burst", ("a softirq",), (PLAIN,)),
    Culprit("work item, interrupts off", "scrub_cache", PIECE[:1]),
    Culprit("kernel thread, FIFO 95", "pump/1", RIVAL),
    Culprit("cold part of a function", "check_overrun", PIECE[:1]),
    Culprit("NMI", "watchdog_nmi", ANY_INTERRUPT),
    Culprit("callback of RCU", "bury", ("a softirq",), (PLAIN,)),
)
FAR = (
    Culprit("spin lock, held by a thread", "scan_bus", LOCK, elsewhere=True),
    Culprit("spin lock, held in a timer", "reset_bus", LOCK, elsewhere=True),
    Culprit("rw lock, held by a writer", "rebuild_table", LOCK, (PLAIN,), True),
    Culprit("sequence counter", "slew_clock", OTHER_CPU, elsewhere=True),
    Culprit("stop_machine", "swap_tables", OTHER_CPU, elsewhere=True),
    Culprit("call awaited, tail call", "invalidate_range", OTHER_CPU, elsewhere=True),
    Culprit(
        "interrupts off, calls awaited", "program_flash", OTHER_CPU, elsewhere=True
    ),
    Culprit("polled memory", "prepare_reply", OTHER_CPU, elsewhere=True),
    Culprit("mutex", "write_config", LOCK, elsewhere=True),
    Culprit("rt_mutex, chain of two", "compact_log", LOCK, elsewhere=True),
    Culprit("rw semaphore", "prune_tree", LOCK, elsewhere=True),
    Culprit("grace period of RCU", "traverse_routes", GRACE_PERIOD, elsewhere=True),
)
STYLES = (
    Culprit("interrupts off by a pair of helpers", "calibrate_sensor", PIECE[:1]),
    Culprit("raw spin lock held, table of operations", "take_frame", PIECE[:1]),
    Culprit("preemption off, recursion", "walk_nodes", PIECE[1:]),
    Culprit("interrupts off, library function", "sign_image", PIECE[:1]),
    Culprit("preemption off, memset", "wipe_frames", PIECE[1:]),
    Culprit("preemption off, many short helpers", "count_pages", PIECE[1:]),
    Culprit("handler of an interrupt line", "serve_uart", ANY_INTERRUPT),
    Culprit("stop_machine, on this CPU", "patch_text", (PIECE[0], *RIVAL)),
    Culprit("interrupt in a softirq, tail call", "snoop_bus", ANY_INTERRUPT),
    Culprit("poll of a network device", "poll_ring", ("a softirq",), (PLAIN,)),
    Culprit("kernel thread, FIFO, same priority", "peer/1", RIVAL),
    Culprit("kernel thread, round robin", "robin/1", RIVAL),
)
HELD = (
    Culprit("call of all CPUs, tail call", "drain_local", OTHER_CPU, elsewhere=True),
    Culprit("lock in a bit", "insert_entry", OTHER_CPU, (PLAIN,), elsewhere=True),
    Culprit("counting semaphore", "rotate_keys", LOCK, elsewhere=True),
    Culprit("completion", "derive_key", BLOCKED, elsewhere=True),
    Culprit("wait queue", "decode_frame", BLOCKED, elsewhere=True),
    Culprit("work item, flushed", "rewrite_journal", BLOCKED, elsewhere=True),
    Culprit("grace period of SRCU", "match_rules", GRACE_PERIOD, elsewhere=True),
)
TRICKS = (
    Culprit("lock tried in a loop", "grab_gate", WAIT, elsewhere=True),
    Culprit("lock tried in a loop with delays", "hold_port", WAIT, elsewhere=True),
    Culprit("word exchanged in a loop", "own_ring", WAIT, elsewhere=True),
    Culprit("bit claimed by helpers", "flush_lines", WAIT, elsewhere=True),
    Culprit("flag polled until a deadline", "poll_link", PIECE[1:]),
    Culprit("three queued calls", "flush_b", ANY_INTERRUPT),
    Culprit("two items of irq_work", "drain_log", ANY_INTERRUPT),
    Culprit("many short calls", "sync_counter", ANY_INTERRUPT),
    Culprit("interrupts off in a tasklet", "mask_in_tasklet", PIECE[:1]),
    Culprit("NMI longer than the recorded path", "long_nmi", ANY_INTERRUPT),
    Culprit("two NMIs", "long_nmi", ANY_INTERRUPT),
)
PROBES = (
    Culprit("kprobe, by ftrace", "trace_expiry", PROBE),
    Culprit("kprobe, by a jump", "trace_motor", PROBE),
    Culprit("kprobe, by a breakpoint", "trace_pump", PROBE),
    Culprit("kretprobe", "trace_return", PROBE),
    Culprit("callback of ftrace", "count_turns", PROBE),
    Culprit("fprobe", "watch_belt", PROBE),
    Culprit("interprocessor call beside a kprobe", "innocent_bystander", ANY_INTERRUPT),
)


@dataclass(frozen=True, slots=True)
class Boot:
    """One campaign, in which a module plants one culprit after the other."""

    module: str
    culprits: tuple[Culprit, ...]
    kernels: tuple[str, ...] = BOTH
    board: str = "pc"
    turn_ns: int = TURN_NS
    seconds: int = 1

    @property
    def name(self) -> str:
        """What the boot is called: its board and module."""
        return f"{self.board}-{self.module}"

    def campaign(self, files: Sequence[Path], out: Path) -> tuple[str, ...]:
        """Return what follows `rtscope run` to measure it."""
        insert = "; ".join(
            f"insmod /files/$(uname -r)-{name}.ko" for name in ("dally", self.module)
        )
        return (
            *("--target", f"virtual:{self.board}", "--duration", f"{self.seconds}s"),
            *("--load", "custom", "--cpus", "1", "--warmup", "200ms"),
            *("--worst", "64", "--settle", "0s", "--interval", "100us"),
            *("--priority", "50", "--kernel", ",".join(self.kernels)),
            *("--guest-files", ",".join(map(str, files))),
            *("--command", f"sh -c '{insert}; exec sleep 100'", "--out", str(out)),
        )


MODULES = {"near": NEAR, "far": FAR, "styles": STYLES, "held": HELD}
OF_X86 = {"tricks": TRICKS, "probes": PROBES}
NMI = "watchdog_nmi"
"""Not on arm64."""
TURNS_NS = {"held": 2 * TURN_NS}
"""Where it is not TURN_NS, as in the module."""
SECONDS = {"probes": 3}
"""Where it is not one: to attach a probe may take the kernel a second."""


def _boots(board: str, kernels: tuple[str, ...], *without: str) -> Iterator[Boot]:
    modules = MODULES | (OF_X86 if board == "pc" else {})
    for module, culprits in modules.items():
        planted = tuple(one for one in culprits if one.name not in without)
        turn_ns = TURNS_NS.get(module, TURN_NS)
        seconds = SECONDS.get(module, 1)
        yield Boot(module, planted, kernels, board, turn_ns, seconds)


BOOTS = (*_boots("pc", BOTH), *_boots("rpi3", (RT,), NMI))
