"""`rtscope history show`: latencies over time, night after night."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import Json, put_json, stdout_console
from rtscope.host.errors import UsageError
from rtscope.host.escape import all_printable
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.present.render.page import page_of
from rtscope.present.render.terminal import print_blocks
from rtscope.verbs.history import database
from rtscope.verbs.history.indexing import IndexFile
from rtscope.verbs.history.listing import FilterOptions
from rtscope.verbs.history.shifts import shifts_of
from rtscope.verbs.history.showpage import show_document
from rtscope.verbs.history.showtext import Shown, show_blocks, show_json
from rtscope.verbs.history.timeline import timelines


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRequest:
    """The options of `rtscope history show`."""

    index: IndexFile = Path(database.NAME)
    """File of the index (default: history.db), e.g. lab.db."""
    filters: FilterOptions
    nights: Annotated[int, typer.Option(min=1, max=1000)] = 14
    """Newest nights of a single series on the terminal (default: 14), e.g. 60."""
    html: Path | None = None
    """HTML page to write, with all nights of each series, e.g. history.html."""
    json: Json = False


def show(request: ShowRequest) -> int:
    """
    Show latencies over time: each night's worst, and since when a series is other.

    Of one series, its nights; of several, a line each. A change point is where a figure
    went to another level: if nothing changed, at most 5 % of calls show one at all.
    """
    if request.html is not None:
        refuse_unwritable(request.html)
    filters = request.filters.chosen()
    with database.opened(request.index) as opened:
        lines, older = timelines(opened, filters)
    if not lines:
        raise UsageError(
            f"{request.index}: no run to show; leave out filters, or index results: "
            "rtscope history index DIR"
        )
    shown = Shown(lines, shifts_of(lines), older)
    if request.html is not None:
        page = page_of(show_document(shown))
        write_atomically(request.html, page.encode())
    if request.json:
        put_json(show_json(shown))
        return 0
    with stdout_console() as console:
        blocks = show_blocks(shown, nights=request.nights)
        print_blocks(all_printable(tuple(blocks)), console)
    return 0
