"""What a test executed of its program, in tables and for JSON. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rtscope.host.units import count, plural
from rtscope.present.document import Block, Section, Table, table
from rtscope.verbs.test.codeseen import CodeSeen, ThreadCode
from rtscope.verbs.test.reached import Unreached

MOST_SHOWN = 20
"""Functions of a thread in a table,"""
MOST_THREADS = 8
"""and threads that have one;"""
MOST_NAMES = 60
"""and functions that nothing reached, by name."""


def code_blocks(code: CodeSeen) -> Iterator[Block]:
    """Yield what each judged thread executed at most, and what none of them entered."""
    several = len({one.run for one in code.threads}) > 1
    blocks: list[Block] = []
    for one in code.threads[:MOST_THREADS]:
        if one.used.uses:
            run = f", {one.run}" if several else ""
            blocks += [(f"{one.thread}{run}", "strong"), _table(one)]
        blocks += _left_out(one)
    if len(code.threads) > MOST_THREADS:
        left = plural(len(code.threads) - MOST_THREADS, "more thread")
        blocks.append((f"{left}: see --json.", "muted"))
    if blocks:
        yield Section("Worst cycle of each function", tuple(blocks))
    boards = len({one.board for one in code.files}) > 1
    words = [said for one in code.files for said in _words(one, board=boards)]
    if words:
        yield Section("Code that no judged thread reached", tuple(words))


def _table(one: ThreadCode) -> Table:
    rows = [
        [
            use.name,
            use.file,
            count(use.instructions),
            count(use.cycle),
            count(use.cycles),
        ]
        for use in one.used.uses[:MOST_SHOWN]
    ]
    left = len(one.used.uses) - MOST_SHOWN
    if left > 0:
        rows.append([f"{count(left)} others", "", "", "", ""])
    return table(
        ("function", "file"), ("instructions", "in cycle", "cycles with it"), rows
    )


def _left_out(one: ThreadCode) -> Iterator[Block]:
    for why, cycles in one.used.left_out.items():
        left = plural(cycles, "cycle")
        yield (f"{one.thread}: {left} of {count(one.cycles)} left out: {why}.", "limit")


def _words(one: Unreached, *, board: bool) -> Iterator[str]:
    """Yield sentences about a file, with its board if there are several."""
    name = (one.file or "The program") + (f" on {one.board}" if board else "")
    if one.functions is None:
        yield f"{name}: unknown: {one.why}."
        return
    every = plural(one.functions, "function")
    if not one.never and not one.others:
        yield f"{name}: nothing; its {every} were all entered."
    if one.never:
        number = count(len(one.never))
        yield f"{name}: no thread entered {number} of its {every}: {_names(one.never)}."
    if one.others:
        yield (
            f"{name}: only threads that are not judged entered "
            f"{count(len(one.others))} of its {every}: {_names(one.others)}."
        )


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(one if "(" in one else f"{one}()" for one in names[:MOST_NAMES])
    left = len(names) - MOST_NAMES
    return f"{shown} and {count(left)} more" if left > 0 else shown


def code_row(code: CodeSeen) -> Mapping[str, Any]:
    """Return it for a JSON document."""
    return {
        "threads": [
            {
                "run": one.run,
                "thread": one.thread,
                "tid": one.tid,
                "cycles_left_out": sum(one.used.left_out.values()),
                "functions": [
                    {
                        "function": use.name,
                        "file": use.file,
                        "instructions": use.instructions,
                        "cycle": use.cycle,
                        "cycles": use.cycles,
                    }
                    for use in one.used.uses
                ],
            }
            for one in code.threads
        ],
        "files": [
            {
                "board": one.board,
                "file": one.file,
                "functions": one.functions,
                "never": list(one.never),
                "other_threads": list(one.others),
                "why_unknown": one.why,
            }
            for one in code.files
        ],
    }
