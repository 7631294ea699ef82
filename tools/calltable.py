"""
Make the agent's table of system calls of calls.toml: python tools/calltable.py.

Calls that cannot block, and the sleep of a cycle, are not in it. `--check` compares and
writes nothing.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "src" / "rtscope" / "programs" / "calls.toml"
HEADER = ROOT / "agent" / "watch" / "calltable.h"

RULES = 2
VALUES = 3
X32 = 4
"""The last of the columns: its own calls are above those of all others."""
NOT_TIMED = ("none", "cycle")
KINDS = {"memory": "TIMED_MEMORY_CALL", "lock": "TIMED_LOCK_WAIT"}
HEAD = """\
/* SPDX-License-Identifier: MIT */
/*
 * calltable - the system calls that may block: number on x86-64, on arm64 and riscv64,
 * on ARM, on 32-bit x86 and in x32; name; kind; whether a thread may wait there for its
 * next cycle; when it cannot block. tools/calltable.py makes it of calls.toml.
 */
#ifndef CALLTABLE_H
#define CALLTABLE_H

/* clang-format off */
#define CALLTABLE(CALL) \\
"""


def header(text: str) -> str:
    """Return the header for the text of calls.toml."""
    calls = tomllib.loads(text)["calls"]
    timed = {n: row for n, row in calls.items() if row["is"] not in NOT_TIMED}
    rows = [_row(name, row) for name, row in timed.items()]
    highest = [max(row["at"][abi] for row in calls.values()) for abi in range(X32 + 1)]
    sleeps = ", ".join(map(str, calls["clock_nanosleep"]["at"]))
    return (
        HEAD
        + " \\\n".join(f"\t{row}" for row in rows)
        + "\n/* clang-format on */\n\n"
        + f"#define CALLTABLE_HIGHEST     {max(highest[:X32])} "
        + "/* of today's kernels */\n"
        + f"#define CALLTABLE_HIGHEST_X32 {highest[X32]}\n"
        + f"#define CALLTABLE_SLEEPS      {{ {sleeps} }} "
        + "/* clock_nanosleep */\n\n#endif\n"
    )


def _row(name: str, row: dict[str, object]) -> str:
    kind = KINDS.get(str(row["is"]), "TIMED_BLOCKING_CALL")
    at, unless = row["at"], row.get("unless", ())
    assert isinstance(at, list)
    assert isinstance(unless, list | tuple)
    rules = "".join(f", {_rule(at, one)}" for at, one in enumerate(unless))
    assert len(unless) <= RULES, name
    given = [values for one in unless if (values := one.split()[2:])]
    assert len(given) <= 1, name
    assert sum(map(len, given)) <= VALUES, name
    values = "".join(f", VALUES({', '.join(one)})" for one in given)
    numbers = ", ".join(map(str, at))
    idle = int(bool(row.get("idle"))) + int(bool(row.get("keyless")))
    return f"CALL({numbers}, {name}, {kind}, {idle}{rules}{values})"


def _rule(at: int, text: str) -> str:
    word, argument, *_ = text.split()
    return f"WHEN({at}, {word.upper()}, {argument})"


def main(argv: list[str]) -> int:
    """Write the header, or compare it."""
    made = header(TABLE.read_text("utf-8"))
    if argv == ["--check"]:
        return int(HEADER.read_text("utf-8") != made)
    HEADER.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
