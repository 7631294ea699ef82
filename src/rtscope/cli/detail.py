"""How much of a result a terminal shows: -q, -v and --notes."""

from dataclasses import dataclass, field
from typing import Annotated

import typer

from rtscope.host.errors import UsageError
from rtscope.measure.campaign.options import OUTPUT
from rtscope.present.document import Detail


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
