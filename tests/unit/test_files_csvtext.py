"""CSV that a spreadsheet opens: no cell becomes a formula, numbers stay numbers."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.host.escape import printable
from rtscope.host.files.csvtext import csv_text, for_csv


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", " =", "\uff1d"])
def test_a_formula_gets_a_quote(start: str) -> None:
    assert for_csv(f"{start}cmd|'/c calc'!A1").startswith("'")


@pytest.mark.parametrize("number", ["-1", "+2.5", "-1e-3", "12"])
def test_a_number_is_no_formula(number: str) -> None:
    assert for_csv(number) == number


@given(st.text())
def test_a_csv_cell_never_begins_a_formula(text: str) -> None:
    written = csv_text([[printable(text)]])
    (cell,) = next(csv.reader(io.StringIO(written)), [""])
    number = cell.lstrip("+-").replace(".", "", 1).replace("e", "").isdigit()
    assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_a_row_is_a_line_and_a_cell_may_have_commas_and_quotes() -> None:
    assert csv_text([["a", "b"], [1, 'x, "y"']]) == 'a,b\n1,"x, ""y"""\n'
