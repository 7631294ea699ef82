"""A demonstration as one page: its timelines, and what had to happen."""

from rtscope.host.escape import printable
from rtscope.host.version import __version__
from rtscope.present.formats.html import render_page, style_sheet
from rtscope.verbs.demo.lanes import lanes_chart
from rtscope.verbs.demo.model import Judged
from rtscope.verbs.demo.text import chars_of


def render_demo(found: Judged) -> str:
    """Return the page."""
    begin = found.results[0].begin
    return render_page(
        "verbs/demo/demo.html",
        charts={"lanes_chart": lanes_chart},
        demo_css=style_sheet("verbs/demo/demo.css"),
        name=found.demo.scenario.value,
        title=found.demo.title,
        about=found.demo.about,
        where=printable(
            f"{found.target}, Linux {begin.kernel} ({begin.arch}), CPU {begin.cpu}"
        ),
        held=found.held,
        failed=sum(not one.held for one in found.checks),
        checks=[
            {"says": one.says, "held": one.held, "seen": printable(one.seen, limit=400)}
            for one in found.checks
        ],
        notes=[printable(note, limit=400) for note in found.notes],
        cases=[
            {
                "title": one.case.title,
                "result": one,
                "chars": chars_of(one),
                "threads": one.lanes,
            }
            for one in found.results
        ],
        digest=found.digest,
        made_by=f"rtscope {__version__}",
    )
