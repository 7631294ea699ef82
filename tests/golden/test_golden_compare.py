"""
Two kernels side by side and a published table beside them, byte for byte.

Of the JSON of the table a line for each entry: the other has the layout of JSON.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.boards import campaign
from fakes.measurements import on_board
from fakes.printed import render_brief, render_text
from rtscope.machine.facts import FactValue
from rtscope.present.documents.results import render_markdown
from rtscope.present.documents.shared import More
from rtscope.present.formats.data import render_json
from rtscope.present.model.build import build_model
from rtscope.present.model.comparison import build_comparison
from rtscope.present.model.published_comparison import compare_with_published
from rtscope.record.model import RunRecord
from rtscope.record.published import get_published

MORE = More("rtscope compare a b", "compare.html")
EXPECTED = Path(__file__).parent / "compare"


def kernel(name: str, *, rt: bool, seed: int = 1) -> list[RunRecord]:
    runs = campaign(
        loads=("idle", "memory"),
        cpus=2,
        seconds=20,
        kernel=name,
        scale=1 if rt else 40,
        seed=seed,
    )
    model = "PREEMPT_RT" if rt else "full"
    fact = {
        "preempt_rt": FactValue(
            rt, f"uname -v says {'PREEMPT_RT' if rt else 'PREEMPT'}"
        ),
        "preemption_model": FactValue(model, "a test"),
    }
    digest = ("a" if rt else "e") * 64
    return [
        on_board(
            replace(r, facts_before={**r.facts_before, **fact}),
            seed=seed,
            kernel_digest=digest,
        )
        for r in runs
    ]


def sets() -> dict[str, list[RunRecord]]:
    return {"mainline": kernel("k-6.12", rt=False), "rt": kernel("k-6.12-rt", rt=True)}


def together() -> list[RunRecord]:
    return [record for runs in sets().values() for record in runs]


def a_line_for_each(text: str) -> str:
    """Return the entries of a JSON object, and those of its lists, a line for each."""
    return "".join(
        f"{key}: {json.dumps(one)}\n"
        for key, value in json.loads(text).items()
        for one in (value if isinstance(value, list) else [value])
    )


FORMS: Mapping[str, Callable[[], str]] = {
    "report-80.txt": lambda: render_text(build_model(together())),
    "report-120.txt": lambda: render_text(build_model(together()), width=120),
    "compare-80.txt": lambda: render_text(build_comparison(sets())),
    "report-brief.txt": lambda: render_brief(build_model(together()), more=MORE),
    "compare-brief.txt": lambda: render_brief(build_comparison(sets()), more=MORE),
    "compare.md": lambda: render_markdown(build_comparison(sets())),
    "compare.json": lambda: render_json(build_comparison(sets())),
    **{
        f"published.{form}": lambda render=render: render(  # type: ignore[misc]
            compare_with_published(together(), get_published("starfive-visionfive2"))
        )
        for form, render in (
            ("txt", render_text),
            ("md", render_markdown),
            ("entries.txt", lambda found: a_line_for_each(render_json(found))),
        )
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_what_is_said_of_two_kernels_has_not_changed(form: str, rewrite: bool) -> None:
    path = EXPECTED / form
    found = FORMS[form]().encode()

    if rewrite:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(found)

    assert found == path.read_bytes()
