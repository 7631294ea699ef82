"""
The report of the golden record, byte for byte; `make golden` accepts a change.

Of the JSON without a verdict, only the entries that the one with a verdict has not.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fakes.printed import render_brief, render_text
from rtscope.present.documents.results import render_markdown
from rtscope.present.documents.shared import More
from rtscope.present.formats.data import render_csv, render_json
from rtscope.present.model.build import Model, build_model
from rtscope.record.model import record_from_json
from rtscope.stats.verdict import Claim

RECORD = Path(__file__).parent.parent.parent / "format" / "v2" / "record.json"
EXPECTED = Path(__file__).parent / "report"

MORE = More("rtscope report results", "results/report.html")

RENDERERS: Mapping[str, Callable[[Model], str]] = {
    "brief.txt": lambda model: render_brief(model, more=MORE),
    "txt": render_text,
    "md": render_markdown,
    "csv": render_csv,
    "json": render_json,
}


def golden_model(*, asked: bool) -> Model:
    record = record_from_json(RECORD.read_bytes(), name=RECORD.name)
    hour_ns = 3_600 * 1_000_000_000
    return build_model(
        [record],
        deadline_ns=1_000_000 if asked else None,
        claim=Claim(1, hour_ns) if asked else None,
        min_boots=1,
    )


def what_differs(one: str, other: str) -> str:
    """Return the entries of a JSON object that are not the same in another."""
    mine, others = json.loads(one), json.loads(other)
    assert mine.keys() == others.keys()
    changed = {key: value for key, value in mine.items() if value != others[key]}
    return json.dumps(changed, indent=2) + "\n"


@pytest.mark.parametrize("asked", [False, True], ids=["plain", "verdict"])
@pytest.mark.parametrize("form", RENDERERS)
def test_the_report_of_the_golden_record_has_not_changed(
    form: str, asked: bool, rewrite: bool
) -> None:
    path = EXPECTED / f"{'verdict' if asked else 'plain'}.{form}"
    text = RENDERERS[form](golden_model(asked=asked))
    if form == "json" and not asked:
        text = what_differs(text, render_json(golden_model(asked=True)))
    found = text.encode()

    if rewrite:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(found)

    assert found == path.read_bytes()
