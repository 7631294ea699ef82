"""JSON of others against a type: a few bytes do not become gigabytes."""

import pytest
from pydantic import TypeAdapter, ValidationError

from fakes.targets import HELLO
from rtscope.contract import Line, dump_line, parse_line
from rtscope.host.errors import ContractError, RecordError
from rtscope.host.files import documents, first_mistake
from rtscope.host.files.documents import JsonShape, memory_of
from rtscope.record.model import record_from_json

DENSE = {
    "mistakes": '{"type":"tick","cpus":[%s{}]}' % ("{}," * 1_100_000),
    "numbers for tables": '{"type":"tick","cpus":[%s1]}' % ("1," * 6_000_000),
    "lists in lists": '{"type":"growth","cpus":[%s[]]}' % ("[]," * 2_000_000),
    "an unknown type": '{"type":"nosuch","x":[%s{}]}' % ("{}," * 1_100_000),
    "a name that is unknown": '{"type":"keep","x":[%s0]}' % ("[0]," * 2_000_000),
    "many names": '{"type":"tick","temp_mc":{%s"a":1}}' % ('"b":1,' * 400_000),
    "not JSON": "[" * 4_000_000,
}


@pytest.mark.parametrize("kind", DENSE)
def test_a_dense_document_is_refused_before_it_is_read(kind: str) -> None:
    text = DENSE[kind].encode()

    with pytest.raises(ContractError, match="line: too many values"):
        parse_line(text)
    with pytest.raises(RecordError, match="too many values"):
        record_from_json(text, name="record.json")


def test_of_many_mistakes_only_the_first_is_kept() -> None:
    shape = JsonShape(TypeAdapter(list[tuple[int, ...]]))

    with pytest.raises(ValidationError) as caught:
        shape.read(b"[%s[]]" % (b'["a","b"],' * 1000))

    assert caught.value.error_count() == 1
    assert first_mistake(caught.value).startswith("0.0: Input should be a valid int")


@pytest.mark.parametrize("number", ["1e999", "-1e400", f"{'9' * 400}.5"])
def test_a_number_that_would_be_infinite_is_a_mistake_with_its_place(
    number: str,
) -> None:
    shape = JsonShape(TypeAdapter(dict[str, list[float | None]]))

    with pytest.raises(ValidationError) as caught:
        shape.read(b'{"a": [null, %s]}' % number.encode())

    assert first_mistake(caught.value).startswith("a.1")


def test_what_is_written_is_read_again() -> None:
    line: Line = HELLO

    assert parse_line(dump_line(line)) == line


def test_values_are_counted_and_texts_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_VALUES_BYTES", 1000)
    shape = JsonShape(TypeAdapter(list[str]))

    assert shape.read(b'["%s"]' % (b"a" * 10_000)) == ["a" * 10_000]
    assert memory_of(b"[[1,2]]") == 7 + 2 * 64 + 40
    with pytest.raises(ValidationError, match="too many values"):
        shape.read(b"[%s1]" % (b"1," * 100))
