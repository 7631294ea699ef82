"""
What the outside view of a program costs the host: CPU seconds of a boot.

The same boot of the board `pc`, in turn without the view, with it, and with the code
that each thread executes counted too; of a program that sleeps for 1 ms each, of one
that computes most of the time, and of one whose two threads wake each other 100,000
times a second (bench/guest/switches.c). Counted are the CPU seconds of QEMU, user and
system; the fewest of each count, as other work on the machine only adds to them. The
guest must do the same each time: equal files, equal instructions. Argument: boots of
each.
"""

import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import File, Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import ProgramView
from rtscope.boards.recording.programplaces import program_view
from rtscope.boards.runs.boot import Booted, boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.host.units import NS_PER_S
from rtscope.machine.target import agent_file

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "bench"
KERNEL = "debian-6.12-rt"
BOOTS = 3
MOST = 1.15
"""Times the CPU seconds of the same boot without the view."""
PROGRAMS = {"quiet": "2000 quiet", "busy": "20000 busy", "switches": "400000"}


def built() -> bytes:
    """Compile the program, static."""
    BUILD.mkdir(parents=True, exist_ok=True)
    out = BUILD / "switches"
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl")
    source = ROOT / "bench" / "guest" / "switches.c"
    subprocess.run([*zig, "-static", "-O1", "-o", out, source], check=True)
    return out.read_bytes()


def cpu_s() -> float:
    """Return the CPU seconds of all QEMUs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def booted(
    prepared: Prepared, program: bytes, words: str, view: ProgramView | None
) -> tuple[float, Booted]:
    """Return the CPU seconds of a boot, and the boot."""
    guard = "RTSCOPE_PROGRAM=1 /bin/rtscope-agent load --log /out/said --"
    script = f"{guard} /switches {words} >/out/guard\ntrue\n"
    before = cpu_s()
    done = boot(
        prepared,
        Job(script, tree={"switches": File(program, runs=True)}),
        seed=1,
        timeout=BootTimeout(120 * NS_PER_S),
        stopped=lambda: False,
        view=view,
    )
    return cpu_s() - before, done


def main(argv: list[str]) -> int:
    """Print a row for each program; 1 if the view costs too much."""
    boots = int(argv[0]) if argv else BOOTS
    context = BuildContext(cache=cache_dir(), agent=agent_file, log=print)
    prepared = prepare(get_board("pc"), KERNEL, context=context)
    view = program_view(prepared, cache=cache_dir(), log=print)
    program, too_much = built(), False
    views = {"without": None, "view": view, "code": replace(view, code=True)}
    print("program    without      view  times      code  times   records      code MB")
    for name, words in PROGRAMS.items():
        fewest: dict[str, float] = {}
        seen: dict[str, Booted] = {}
        for _ in range(boots):
            for how, one in views.items():
                used, seen[how] = booted(prepared, program, words, one)
                fewest[how] = min(used, fewest.get(how, used))
        if any(
            (one.files, one.counts) != (seen["without"].files, seen["without"].counts)
            for one in seen.values()
        ):
            print(f"{name}: the guest did not do the same")
            return 1
        times = [fewest[how] / fewest["without"] for how in ("view", "code")]
        too_much |= max(times) > MOST
        records = len(seen["view"].program or b"") // 32 - 2
        print(
            f"{name:9} {fewest['without']:7.2f} s "
            f"{fewest['view']:7.2f} s {times[0]:6.3f}"
            f" {fewest['code']:7.2f} s {times[1]:6.3f} {records:9,} "
            f"{len(seen['code'].code or b'') / 1e6:12.2f}"
        )
    print(f"at most {MOST}: {'no' if too_much else 'yes'}")
    return int(too_much)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
