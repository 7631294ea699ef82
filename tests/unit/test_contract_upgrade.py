"""Names of contract 1 become those of today, each at its place and nowhere else."""

import pytest

from rtscope.contract.upgrade import Names, names_of, renamed, upgraded_line

NAMES: Names = names_of(
    {
        "": {"old": "new"},
        "new": {"x": "y"},
        "map.*": {"k": "l"},
        "map.known": {"k": "m"},
    }
)


def test_a_place_is_a_path_of_keys_and_the_empty_one_is_the_document() -> None:
    assert set(NAMES) == {(), ("new",), ("map", "*"), ("map", "known")}


def test_a_key_is_renamed_at_its_place_and_nowhere_else() -> None:
    before = {"old": {"x": 1, "old": 2}, "x": 3, "k": 4}

    assert renamed(before, NAMES) == {"new": {"y": 1, "old": 2}, "x": 3, "k": 4}
    assert before == {"old": {"x": 1, "old": 2}, "x": 3, "k": 4}


def test_below_any_key_names_are_alike_unless_the_key_has_its_own() -> None:
    before = {"map": {"one": {"k": 1}, "two": {"k": 2}, "known": {"k": 3}, "k": 4}}

    assert renamed(before, NAMES) == {
        "map": {"one": {"l": 1}, "two": {"l": 2}, "known": {"m": 3}, "k": 4}
    }


def test_objects_of_a_list_are_at_the_place_of_the_list() -> None:
    before = {"old": [{"x": 1}, [{"x": 2}], "x", None]}

    assert renamed(before, NAMES) == {"new": [{"y": 1}, [{"y": 2}], "x", None]}


@pytest.mark.parametrize("value", [None, 1, "old", True])
def test_what_has_no_keys_stays_as_it_is(value: object) -> None:
    assert renamed(value, NAMES) == value


@pytest.mark.parametrize("line", [{}, {"type": 1, "a": 2}, {"type": "of-a-newer-one"}])
def test_a_line_of_another_type_stays_as_it_is(line: dict[str, object]) -> None:
    assert upgraded_line(line) == line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "load-hello"}, {"type": "load_hello"}),
        ({"type": "load-end"}, {"type": "load_end"}),
        ({"type": "trace-file", "late": 1}, {"type": "trace_file", "late": 1}),
        ({"type": "trace-pages"}, {"type": "trace_pages"}),
        (
            {"type": "tick", "skipped": 0, "cpus": [{"skipped": 1}, {"skipped": 2}]},
            {
                "type": "tick",
                "skipped": 0,
                "cpus": [{"missed_periods": 1}, {"missed_periods": 2}],
            },
        ),
        (
            {"type": "result", "threads": [{"late": 1, "beyond": 2, "cpu": 3}]},
            {"type": "result", "threads": [{"overruns": 1, "overflow": 2, "cpu": 3}]},
        ),
        (
            {"type": "result", "tracing": {"on": True, "kept": [{"cut": False}]}},
            {
                "type": "result",
                "tracing": {"enabled": True, "kept": [{"truncated": False}]},
            },
        ),
    ],
)
def test_a_line_of_contract_1_has_the_names_of_today_and_one_of_today_keeps_them(
    old: dict[str, object], new: dict[str, object]
) -> None:
    assert upgraded_line(old) == upgraded_line(new) == new
