"""What a search for the worst start found, for a terminal, a page and JSON. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from rtscope.host.escape import printable
from rtscope.host.units import plural
from rtscope.present.document import Block, Chart, Section, Words, table
from rtscope.present.words import us
from rtscope.verbs.test.judge import VIRTUAL
from rtscope.verbs.test.responsecharts import growth_of
from rtscope.verbs.test.search.searching import (
    Alone,
    Searched,
    command_of,
    options_of,
)
from rtscope.verbs.test.search.seen import thread_of
from rtscope.verbs.test.search.trials import Trial, growth

CARRIED_OVER = (
    "The starts of a boot share its kernel, the state of its memory, /dev/shm and "
    "files outside /tmp and /run"
)

NO_BOUND = (
    "This is a search and no bound: a start that it did not try may be worse. It is "
    "experimental."
)


def found_section(
    searched: Searched, argv: Sequence[str], *, name: str = "search"
) -> Section:
    """
    Return what a search found; `argv` is how it was called, without the program.

    `name` is that of its chart, of which a page has each once.
    """
    says, *others = found_blocks(searched, argv)
    count = plural(len(searched.trials), "start")
    blocks = (says, _chart(searched, name), *others)
    return Section(f"The worst of {count}", blocks)


def _chart(searched: Searched, name: str) -> Chart:
    worsts_ns = [one.worst_ns for one in searched.trials]
    thread = printable(searched.thread)
    made = growth_of(worsts_ns, searched.limit_ns, thread=thread, name=name)
    return Chart(made, f"The worst response of {thread} in each start, and so far.")


def found_blocks(searched: Searched, argv: Sequence[str]) -> Iterator[Block]:
    """Yield the worst, how it grew, and the command that repeats exactly it."""
    worst = searched.worst
    yield _sentence(searched)
    yield table(
        ("how the worst grew",),
        ("trial", f"response of {searched.thread}"),
        _rows(searched),
    )
    yield NO_BOUND
    yield f"Repeat exactly this start{_by(searched, worst)}:"
    options = options_of(searched, worst.again)
    yield Words((f"  {command_of(argv, options)}",), fit="whole")


def _sentence(searched: Searched) -> str:
    worst, first_ns = searched.worst, searched.first.worst_ns
    starts = plural(len(searched.trials), "start")
    said = (
        f"Worst response {us(worst.alone_ns, VIRTUAL)} of thread {searched.thread} in "
        f"{starts}; {us(first_ns, VIRTUAL)} in the first one, as the test has it."
    )
    highest = max(searched.repeated, key=lambda one: one.worst_ns)
    if highest.worst_ns == worst.alone_ns:
        return said
    return (
        f"{said} Trial {highest.trial} gave {us(highest.worst_ns, VIRTUAL)} among "
        f"other starts of one boot, and {us(highest.alone_ns, VIRTUAL)} alone. "
        f"{CARRIED_OVER}."
    )


def _by(searched: Searched, worst: Alone) -> str:
    words = setting_words(searched, worst.again)
    return f" ({words})" if words else ""


def setting_words(searched: Searched, trial: Trial) -> str:
    """Say what is not as in the first start; empty if that is meant."""
    if trial.proposal.how == "first":
        return ""
    said = []
    for name, value in searched.space.by_name(trial.settings).items():
        thread = thread_of(name)
        what = name if thread is None else f"{_named(searched, thread)} at"
        unit = "" if thread is None else " µs"
        said.append(f"{what} {value}{unit}")
    return ", ".join(said)


def _named(searched: Searched, thread: int) -> str:
    name = searched.names.get(thread)
    return f"thread {thread}" + (f" ({printable(name)})" if name else "")


def _rows(searched: Searched) -> Sequence[Sequence[str]]:
    steps = growth(searched.trials)
    most_ns = max((one.worst_ns for one in steps), default=0) or 1
    return [
        [
            "█" * max(1, one.worst_ns * BAR // most_ns),
            str(one.trial),
            us(one.worst_ns, VIRTUAL),
        ]
        for one in steps
    ]


BAR = 24
"""Characters of the longest bar."""


def found_row(searched: Searched, argv: Sequence[str]) -> dict[str, Any]:
    """Return what a search found for a JSON document; times in virtual ns."""
    space = searched.space
    return {
        "thread": searched.thread,
        "first_ns": searched.first.worst_ns,
        "levers": [
            {"name": one.name, "low": one.low, "high": one.high, "step": one.step}
            for one in space.levers
        ],
        "trials": [
            {
                "how": one.proposal.how,
                "worst_ns": one.worst_ns,
                "settings": dict(space.by_name(one.settings)),
            }
            for one in searched.trials
        ],
        "growth": [
            {"trial": one.trial, "worst_ns": one.worst_ns}
            for one in growth(searched.trials)
        ],
        "alone": [
            {
                "trial": one.trial,
                "in_search_ns": one.worst_ns,
                "worst_ns": one.alone_ns,
                "command": command_of(argv, options_of(searched, one.again)),
            }
            for one in searched.repeated
        ],
    }
