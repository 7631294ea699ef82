"""A demonstration as one page: its timelines, and what had to happen."""

from rtscope.host.escape import printable
from rtscope.host.version import __version__
from rtscope.present.formats.html import render_page, style_sheet
from rtscope.verbs.demo.lanes import lanes_chart
from rtscope.verbs.demo.model import Judged
from rtscope.verbs.demo.text import chars_of


def render_demo(judgement: Judged) -> str:
    """Return the page."""
    begin = judgement.results[0].begin
    return render_page(
        "verbs/demo/demo.html",
        charts={"lanes_chart": lanes_chart},
        demo_css=style_sheet("verbs/demo/demo.css"),
        name=judgement.demo.scenario.value,
        title=judgement.demo.title,
        about=judgement.demo.about,
        where=printable(
            f"{judgement.target}, Linux {begin.kernel} ({begin.arch}), CPU {begin.cpu}"
        ),
        held=judgement.held,
        failed=sum(not one.held for one in judgement.checks),
        checks=[
            {"says": one.says, "held": one.held, "seen": printable(one.seen, limit=400)}
            for one in judgement.checks
        ],
        notes=[printable(note, limit=400) for note in judgement.notes],
        cases=[
            {
                "title": one.case.title,
                "result": one,
                "chars": chars_of(one),
                "threads": one.lanes,
            }
            for one in judgement.results
        ],
        digest=judgement.digest,
        made_by=f"rtscope {__version__}",
    )
