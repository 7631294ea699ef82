"""TOML and JSON of strangers: every mistake is an error of rtscope."""

import pytest

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files.documents import json_object, json_value, toml_tables
from rtscope.host.units import is_whole

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


NINES = "9" * 5_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f"a = 1\nb = {NINES}", "line 2, key b: a number of 5,000 digits"),
        (f"[x]\ny = [1, {NINES}]", "line 2, key y: a number of 5,000 digits"),
        (f"x = [\n1,\n-{NINES}\n]", "line 3, key x: a number of 5,000 digits"),
        (f'a = "{NINES}"\n[t]\nb.c = +{NINES}', "line 3, key b.c: a number of"),
        ("a = 1_" + "0_0" * 3_000, "line 1, key a: a number of 6,001 digits"),
        ("a = 0x" + "f" * 5_000, "line 1, key a: a number too large"),
        ("[[r]]\nq = 0b" + "1" * 70, "line 2, key q: a number too large"),
        ("'k k' = 0o" + "7" * 60, "key k k: a number too large"),
        ("a = {b = [[1], [99999999999999999999]]}", "key b: a number too large"),
        ("[t]\nq = 1e999", "line 2, key q: a number too large"),
        ("q = [0.5, -inf]", "line 1, key q: a number too large"),
        ("q = nan", "line 1, key q: a number too large"),
    ],
)
def test_a_number_without_end_is_named_by_line_and_key(text: str, where: str) -> None:
    with pytest.raises(UsageError) as told:
        toml_tables(text, name="f.toml")

    assert str(told.value).startswith(f"f.toml: {where}")
    assert "64 bits" in str(told.value)
    assert "set_int_max_str_digits" not in str(told.value)


ENDLESS_JSON = [
    ('{"a": 1e999}', "a: a number too large"),
    ('{"thread": {"0": {"max": -1E+400}}}', "thread.0.max: a number too large"),
    ('{"a": [1, {"b": [0, %s.5]}]}' % ("9" * 400), "a.1.b.1: a number too large"),
    ('{"a": %s}' % ("9" * 40), "a: a number too large"),
    (f"[{NINES}]", "number out of range at line 1"),
    ("1e999", "a number too large"),
]


@pytest.mark.parametrize(("text", "where"), ENDLESS_JSON)
def test_no_number_of_json_becomes_infinite(text: str, where: str) -> None:
    with pytest.raises(RecordError) as told:
        json_value(text, name="f.json")

    assert str(told.value).startswith(f"f.json: damaged: {where}")


def test_small_exponents_and_digits_in_texts_are_read() -> None:
    text = '{"a": 1e308, "b": 1e-999, "c": "1e999", "d": %s}' % ("9" * 39)
    assert json_value(text, name="f.json")["a"] == 1e308


def test_of_a_huge_number_a_message_has_twenty_digits() -> None:
    digest = "f" + "1" * 63
    told = str(RecordError(f"f: {NINES} is no count, of {digest}"))
    assert told == f"f: {'9' * 20}… (5,000 digits) is no count, of {digest}"


def test_large_numbers_of_64_bits_are_read() -> None:
    text = f"a = {(1 << 64) - 1}\nb = {-(1 << 63)}\nc = '{NINES}'"
    assert toml_tables(text, name="f.toml")["a"] == (1 << 64) - 1


@pytest.mark.parametrize("text", [NINES, "9" * 40, "\u0663", "\u00b2", "", "-1", " 1"])
def test_what_int_would_not_read_is_no_whole_number(text: str) -> None:
    assert not is_whole(text)
    assert is_whole("0")
    assert is_whole(str(1 << 64))
