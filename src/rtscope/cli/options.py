"""Options that several verbs share: how much is shown, of boards, --reuse, consent."""

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtscope.cli.console import say
from rtscope.host.errors import UsageError
from rtscope.host.escape import printable
from rtscope.host.units import plural
from rtscope.measure.campaign.messages import OUTPUT
from rtscope.measure.campaign.values import MAX_SEED
from rtscope.present.document import Detail
from rtscope.present.words import enumeration
from rtscope.record.model import RunRecord

if TYPE_CHECKING:
    from rtscope.measure.campaign.model import Campaign

# --- how much of a result a terminal shows: -q, -v and --notes ------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayOptions:
    """The options of every verb with a result on a terminal."""

    quiet: Annotated[bool, typer.Option("--quiet", rich_help_panel=OUTPUT)] = False
    """The answer alone, in one line."""
    verbose: Annotated[bool, typer.Option("--verbose", rich_help_panel=OUTPUT)] = False
    """Everything on the terminal (default: what fits into one look)."""

    detail: Detail = field(init=False)

    def __post_init__(self) -> None:
        """Take what is asked for. Raise UsageError for -q with -v, before any work."""
        if self.quiet and self.verbose:
            raise UsageError("--quiet and --verbose exclude each other: leave one out")
        all_or_brief = Detail.ALL if self.verbose else Detail.BRIEF
        detail = Detail.QUIET if self.quiet else all_or_brief
        object.__setattr__(self, "detail", detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDisplayOptions:
    """The options of a report or a comparison, whose caveats may be many."""

    display: DisplayOptions
    notes: Annotated[bool, typer.Option("--notes", rich_help_panel=OUTPUT)] = False
    """Every caveat with its numbers and its remedy."""

    detail: Detail = field(init=False)

    def __post_init__(self) -> None:
        """Take what is asked for. Raise UsageError for --notes with -q or -v."""
        if self.notes and self.display.detail is not Detail.BRIEF:
            raise UsageError("--notes shows the caveats alone: leave out -q and -v")
        detail = Detail.NOTES if self.notes else self.display.detail
        object.__setattr__(self, "detail", detail)


# --- options that a virtual board has and a real machine has not ----------------------

BoardKernel = Annotated[
    str | None,
    typer.Option(
        help="Kernel of a virtual board, by name or path of an image (default: the "
        "first kernel of the board), e.g. debian-6.12-rt."
    ),
]


BoardSeed = Annotated[
    int | None,
    typer.Option(
        help="Seed of a virtual board's random numbers (default: 1), e.g. 7.",
        min=0,
        max=MAX_SEED,
    ),
]


def refuse_board_options(board: str | None, **options: object) -> None:
    """
    Raise UsageError if one of these options is given and the machine is no board.

    All that a verb has are given by their names, in the order of its help.
    """
    if board is None and any(value is not None for value in options.values()):
        names = [f"--{name}" for name in options]
        raise UsageError(
            f"{enumeration(names)} {'is' if len(names) == 1 else 'are'} for virtual "
            "boards only: add --target virtual:BOARD"
        )


# --- results that were computed before: when `run --reuse` may take them --------------


def refuse_reuse(campaign: "Campaign") -> None:
    """Raise UsageError for a campaign whose results must be new."""
    if campaign.board is None:
        raise UsageError(
            "--reuse is for virtual boards only: no two runs of a machine are the "
            "same; leave it out"
        )
    if campaign.require_identical:
        raise UsageError(
            "--require-identical measures again, to compare; --reuse does not "
            "measure: leave one out"
        )


def refuse_reused(records: Sequence[RunRecord], *, source: str) -> None:
    """Raise UsageError if a record that must be a measurement is a stored result."""
    reused = [one.run.id for one in records if one.virtual and one.virtual.reused]
    if reused:
        raise UsageError(
            f"{source} has stored results, such as {reused[0]}, and only measurements "
            "are compared: measure without --reuse into a new --out"
        )


def reused_of(records: Sequence[RunRecord]) -> int:
    """Return how many of them are stored results."""
    return sum(one.virtual is not None and one.virtual.reused for one in records)


def tell_reused(records: Sequence[RunRecord]) -> None:
    """Say how many results were not measured now, if any."""
    if count := reused_of(records):
        of = plural(len(records), "run")
        say(f"{count} of {of}: stored results of equal inputs, not measured again")


# --- consent to what a campaign or a search runs here, if it may have come by mail ----


def ask_command(campaign: "Campaign") -> None:
    """Ask whether to run the custom command of a campaign; UsageError if not."""
    if campaign.command:
        _ask([f"the custom command {shlex.join(campaign.command)}"])


def ask_programs(campaigns: Iterable["Campaign"]) -> None:
    """
    Ask whether to run the programs of this machine that campaigns name.

    Such a program is a QEMU from a path or from the addresses of a lock file, or the
    build of a source that a recipe in a file names. Raises UsageError if the user
    refuses, or cannot be asked.
    """
    programs: dict[str, None] = {}
    for one in campaigns:
        recipes = [name for name in one.kernels if name.endswith(".toml")]
        programs |= dict.fromkeys(map(_build, recipes))
        if one.qemu:
            programs[f"the program {one.qemu} as QEMU"] = None
        if one.lockfile:
            programs[f"QEMU as the lock file {one.lockfile} names it"] = None
    if programs:
        _ask(list(programs))


def ask_builds(
    *, tree: Path | None, patches: str | None, kernels: Iterable[str]
) -> None:
    """
    Ask whether to build what a search names and does not come with rtscope.

    Git in a tree runs nothing that its settings name; what a build runs, Makefiles,
    patches and configurations name. Raises UsageError as `ask_programs` does.
    """
    builds = []
    if tree is not None:
        builds.append(f"the build of commits of the tree {tree}, by its Makefiles")
    if patches is not None:
        builds.append(f"the build of a kernel with the patches {patches}")
    for name in dict.fromkeys(kernels):
        if name.endswith(".toml"):
            builds.append(_build(name))
        elif Path(name).is_file():
            builds.append(f"the build of a kernel with the configuration {name}")
    if builds:
        _ask(builds, of="search")


def _build(recipe: str) -> str:
    return f"the build of the kernel {recipe}"


def _ask(programs: list[str], *, of: str = "campaign") -> None:
    words = "; ".join(map(printable, programs))
    if not sys.stdin.isatty():
        raise UsageError(f"this {of} runs {words}; if you trust it, add --yes")
    said = "\n  ".join(map(printable, programs))
    print(f"This {of} runs here:\n  {said}", file=sys.stderr)
    if not typer.confirm("Run it?", err=True):
        raise UsageError("not resumed")
