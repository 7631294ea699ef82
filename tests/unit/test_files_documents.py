"""TOML and JSON of strangers: every mistake is an error of rtscope."""

import pytest

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files.documents import json_object, toml_tables

DEEP = 50_000


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * DEEP,
        "a = " + "[" * DEEP + "]" * DEEP,
        "a = " + "{b=" * DEEP,
        "a = " + "{b=" * DEEP + "1" + "}" * DEEP,
        ".".join("a" * 5_000) + " = 1",
        "[" + ".".join("a" * 5_000) + "]",
        "[" + " . ".join("a" * DEEP) + "]",
        "[" + " . ".join("a" * 5 * DEEP),
        "a = {" + "a." * DEEP + "a = 1}",
        "'a'" + '."a"' * DEEP + " = 1",
        "a = " + "1" * 5_000,
        "a = 2026-13-45",
        "a = 25:61:61",
        "a = 1979-05-27T07:32:00+99:99",
        'a = "\\ud800"',
        'a = "',
        "\0",
        "[a]\n[a]",
        "a = 1\na.b = 2",
    ],
)
def test_a_toml_document_that_cannot_be_read_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"^kernel\.toml: ") as caught:
        toml_tables(text, name="kernel.toml")

    assert len(str(caught.value)) < 300


def test_dots_in_a_text_or_between_numbers_are_no_key() -> None:
    dotted = "1." * 4_000
    text = f'a.b = "{dotted}"\nc = [{"1.5, " * DEEP}]\n'
    read = toml_tables(text, name="kernel.toml")
    assert read == {"a": {"b": dotted}, "c": [1.5] * DEEP}


@pytest.mark.parametrize(
    "text",
    [
        "[" * DEEP,
        "[" * DEEP + "]" * DEEP,
        '{"a":' * DEEP + "1" + "}" * DEEP,
        "1" * 5_000,
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": "\\ud800"}',
        '{"a": 1',
        "[]",
        "null",
        "1e5",
        "",
        "\0",
        b"\xff\xfe{}",
        b'{"a": "\xff"}',
    ],
)
def test_a_json_document_that_cannot_be_read_is_refused_by_name(
    text: str | bytes,
) -> None:
    with pytest.raises(RecordError, match=r"^sweep\.json: damaged: ") as caught:
        json_object(text, name="sweep.json")

    assert len(str(caught.value)) < 300


def test_what_is_right_is_read() -> None:
    assert toml_tables(b"[a]\nb = [1, {c = 2}]", name="x") == {
        "a": {"b": [1, {"c": 2}]}
    }
    assert json_object(b'{"a": [1, 2.5, null]}', name="x") == {"a": [1, 2.5, None]}
