"""
`rtscope bisect` with real builds and boots: a planted delay, commits without effect.

The kernel is small: what an idle board needs, and no more. Its first build takes ten
minutes of a CPU, the others seconds.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rig import NEEDS_APT

from rtscope.boards.kernels.build import missing_programs
from rtscope.boards.kernels.recipe import find_recipe, get_arch
from rtscope.boards.kernels.source import find_origin
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir, locked
from rtscope.host.units import NS_PER_US
from rtscope.machine.target import agent_file

DELAY_US = 200

RECIPE = """\
title = "A small Linux 6.12 for the JH-7110, for tests"
arch = "riscv64"
board = "jh7110"
fragments = ["rt", "./small.config"]

[source]
package = 'linux-source-6\\.12'
suite = "trixie"

[size.virtual]
base = "allnoconfig"
fragments = ["virtual", "riscv64-virtual", "riscv64-arch-virt"]
"""

# What `virtual` asks for, and an idle board does not need.
LEFT_OUT = (
    *("NET", "UNIX", "INET", "EXT4_FS", "BLOCK", "BLK_DEV", "BLK_DEV_RAM"),
    *("BLK_DEV_RAM_COUNT", "BLK_DEV_RAM_SIZE", "FTRACE", "SCHED_TRACER"),
    *("TIMERLAT_TRACER", "CGROUPS", "CPUSETS", "MEMCG", "SYSVIPC", "POSIX_MQUEUE"),
    *("AIO", "IKCONFIG", "IKCONFIG_PROC", "RSEQ"),
)

DELAY = f"""\
Subject: [PATCH] hrtimer: Wait for the clock event device

--- a/kernel/time/hrtimer.c
+++ b/kernel/time/hrtimer.c
@@ -40,6 +40,7 @@
 #include <linux/sched/debug.h>
 #include <linux/sched/isolation.h>
 #include <linux/timer.h>
+#include <linux/delay.h>
 #include <linux/freezer.h>
 #include <linux/compat.h>

@@ -1857,6 +1858,7 @@ void hrtimer_interrupt(struct clock_event_device *dev)
 \tcpu_base->nr_events++;
 \tdev->next_event = KTIME_MAX;

+\tudelay({DELAY_US});
 \traw_spin_lock_irqsave(&cpu_base->lock, flags);
 \tentry_time = now = hrtimer_update_base(cpu_base);
 retry:
"""

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    NEEDS_APT,
    pytest.mark.skipif(
        bool(missing_programs(get_arch("riscv64"))) or shutil.which("git") is None,
        reason="needs the compiler for riscv64: apt install gcc-riscv64-linux-gnu",
    ),
]


def _note(number: int) -> str:
    """Return a patch that changes no code."""
    return (
        f"Subject: [PATCH] docs: Note {number}\n\n--- /dev/null\n"
        f"+++ b/Documentation/note-{number}.txt\n@@ -0,0 +1 @@\n+Note {number}.\n"
    )


def _write_series(folder: Path, *, culprit: int, count: int) -> None:
    folder.mkdir()
    names = [f"{number:04}.patch" for number in range(1, count + 1)]
    (folder / "series").write_text("\n".join(names) + "\n")
    for number, name in enumerate(names, 1):
        text = DELAY if number == culprit else _note(number)
        (folder / name).write_text(text)


def _write_recipe(folder: Path) -> None:
    (folder / "small.toml").write_text(RECIPE)
    off = "".join(f"# CONFIG_{name} is not set\n" for name in LEFT_OUT)
    (folder / "small.config").write_text(off)


def test_a_delay_in_one_patch_of_eight_is_found_and_explained(tmp_path: Path) -> None:
    _write_recipe(tmp_path)
    _write_series(tmp_path / "patches", culprit=6, count=8)
    bisect = (
        *(sys.executable, "-m", "rtscope", "bisect", "--patches", "./patches"),
        *("--recipe", "./small.toml", "--seeds", "2", "--duration", "1s"),
        *("--margin", "50us", "--out", "out", "--json"),
    )

    said = subprocess.run(
        bisect, cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    (change,) = found["located"]["changes"]
    assert change["name"] == "0006.patch"
    assert found["candidates"] == 8
    # Kernels of equal images are built, and not booted again.
    assert found["boots"] == 4
    assert found["bad"]["values"]["1"] > DELAY_US * NS_PER_US
    assert found["before"]["explanation"]
    assert found["after"]["explanation"]


WITHOUT_EFFECT = (
    ("kernel/time/hrtimer.c", "/* A note that changes nothing. */"),
    ("kernel/sched/core.c", "const unsigned long rtscope_note_1 = 1;"),
    ("kernel/fork.c", "/* Another note that changes nothing. */"),
    ("kernel/exit.c", "const unsigned long rtscope_note_2 = 2;"),
    ("lib/vsprintf.c", "/* The last note that changes nothing. */"),
    ("init/main.c", "const unsigned long rtscope_note_3 = 3;"),
)
"""What a commit each adds to the end of a file: no line before it moves."""


def _git(tree: Path, *words: str) -> str:
    settings = ("user.name=a", "user.email=a@b", "core.compression=1", "gc.auto=0")
    argv = ["git", *(word for one in settings for word in ("-c", one)), *words]
    done = subprocess.run(argv, cwd=tree, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _commit_source(folder: Path) -> Path:
    """Return a git tree of the recipe's source with the commits without effect."""
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    with locked(context.cache, log=context.log):
        origin = find_origin(context, find_recipe(str(folder / "small.toml")))
        origin.unpack(folder)
    tree = folder / "source"
    _git(tree, "init", "--quiet")
    _git(tree, "add", "--all", "--force")
    _git(tree, "commit", "--quiet", "-m", "the source")
    _git(tree, "tag", "start")
    for name, line in WITHOUT_EFFECT:
        with (tree / name).open("a") as file:
            file.write(f"\n{line}\n")
        _git(tree, "commit", "--quiet", "--all", "-m", f"{name}: Add a line")
    return tree


def test_commits_without_effect_are_called_so_after_two_kernels(tmp_path: Path) -> None:
    _write_recipe(tmp_path)
    tree = _commit_source(tmp_path)
    bisect = (
        *("bisect", "--tree", str(tree), "--good", "start", "--bad", "HEAD"),
        *("--recipe", "./small.toml", "--seeds", "3", "--duration", "1s"),
        *("--margin", "20us", "--out", "out", "--json"),
    )

    said, again = (
        subprocess.run(
            (sys.executable, "-m", "rtscope", *words),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        for words in (bisect, ("bisect", "--resume", "out", "--yes"))
    )

    assert said.returncode == 4, said.stderr
    found = json.loads(said.stdout)
    assert (found["candidates"], found["builds"], found["skipped"]) == (6, 2, [])
    assert (found["differs"], found["located"]) == (False, None)
    # The constants make another image, so both ends are booted with each seed.
    assert found["boots"] == 6
    good, bad = (sorted(found[end]["values"].values())[1] for end in ("good", "bad"))
    assert abs(good - bad) <= found["margin"] == 20 * NS_PER_US
    # In words, without building again.
    assert again.returncode == 4, again.stderr
    words = " ".join(again.stdout.split())
    assert "good and bad do not differ by more than the margin: max under idle" in words
    assert "6 commits searched: 2 kernels built, 6 boots, 0 skipped" in words
    assert _git(tree, "status", "--porcelain") == ""
