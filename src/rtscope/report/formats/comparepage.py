"""A comparison as one self-contained HTML page, of the same parts as the report."""

from rtscope.report.formats.html import EFFECT_WORDS, environment, style_sheet
from rtscope.report.model.comparison import Comparison
from rtscope.report.words import NOTHING


def render_comparison_page(comparison: Comparison) -> str:
    """Return the page; the same comparison gives the same bytes."""
    return (
        environment()
        .get_template("compare.html")
        .render(
            comparison=comparison,
            css=style_sheet(),
            effects=EFFECT_WORDS,
            nothing=NOTHING,
        )
    )
