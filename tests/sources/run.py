"""
python -m sources.run [NUMBER...] - types the commands of lab/sources.toml.

Those that take seconds, in one shell, beside a result of this machine, one of a virtual
board, and a histogram of another tool. A line says works, works in part, refused,
missing, not typed or FAILS; with unseen we never saw what the documents name. Ends with
status 1 if a command does not answer as the table says.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from pages.session import Shell, TooLongError
from sourcespage import Item, documents, word_of

TEN_MINUTES_S = 600

HISTOGRAM = """\
# Histogram
000004 000002
000006 000002
# Min Latencies: 00004
# Avg Latencies: 00005
# Max Latencies: 00006
"""

PREPARED = (
    "rtscope run -l idle,cpu -d 2s --out machine -q",
    "rtscope run -t virtual:pc --kernel debian-6.12,debian-6.12-rt -l idle -d 1s "
    "--settle 1s --out board -q",
    "rtscope import import.txt --load idle -d 800us --out imported",
)

WORDS = {"partly": "works in part"}


def main(wanted: Sequence[str]) -> int:
    """Print what became of each thing; return the exit status."""
    items = [one for document in documents() for one in document.item]
    items = [one for one in items if not wanted or str(one.number) in wanted]
    became = Counter[str]()
    with Shell() as shell:
        (shell.here / "import.txt").write_text(HISTOGRAM)
        for command in PREPARED:
            status, printed = shell.type(command, within_s=TEN_MINUTES_S)
            if status:
                print(f"{command}: status {status}\n{printed}")
                return 1
        for one in items:
            word, why = answer_of(one, shell)
            became[word] += 1
            print(f"{one.number:2}  {word:13}  {one.names}{why}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in became.most_common()))
    return 1 if became["FAILS"] else 0


class Typing(Protocol):
    """What types a command; see `Shell.type`."""

    def type(self, command: str, *, within_s: float) -> tuple[int, str]:
        """Type a command; return its status and all that it printed."""


def answer_of(one: Item, shell: Typing) -> tuple[str, str]:
    """Return how it answers, and why so; `not typed` for what takes longer."""
    word = WORDS.get(one.answer, word_of(one))
    if not one.typed:
        return ("not typed", f" ({one.takes})") if one.command else (word, "")
    assert one.command is not None
    try:
        status, printed = shell.type(one.command, within_s=TEN_MINUTES_S)
    except TooLongError as error:
        return "FAILS", f"\n{error}"
    if status not in one.status or one.shows not in printed:
        return "FAILS", f"\n{one.command}: status {status}\n{printed}"
    return word, ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
