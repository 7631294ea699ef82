"""A record comes back unchanged, and what is no record of ours is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.boards import campaign
from fakes.measurements import on_board, record, thread
from rtscope.host.errors import RecordError
from rtscope.record.model import RunRecord, record_from_json, record_to_json

GOOD = record([thread([5_000, 7_000, 2**34 + 1], interval_ns=10**9)])


def document() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(record_to_json(GOOD))
    return made


def refused(changed: dict[str, Any]) -> str:
    with pytest.raises(RecordError) as error:
        record_from_json(json.dumps(changed).encode(), name="r.json")
    return str(error.value)


@pytest.mark.parametrize("kept", [GOOD, *campaign(cpus=2, seconds=3)])
def test_a_record_comes_back_unchanged(kept: RunRecord) -> None:
    assert record_from_json(record_to_json(kept), name="it") == kept


@given(st.text(max_size=50))
def test_any_text_of_a_machine_comes_back_unchanged(text: str) -> None:
    kept = record([thread([5])], facts={"command_line": text})

    again = record_from_json(record_to_json(kept), name="it")

    assert again.facts_before["command_line"].value == text


@pytest.mark.parametrize("schema", [3, 99])
def test_a_record_of_a_newer_schema_says_to_read_it_with_its_own_version(
    schema: int,
) -> None:
    assert refused({**document(), "schema": schema}) == (
        f"r.json: schema {schema}, and this rtscope reads 2: read it with the newer "
        "rtscope that wrote it"
    )


@pytest.mark.parametrize("schema", [0, 1, "2", None, 1.5, [1]])
def test_a_record_of_no_schema_that_ever_was_says_to_measure_again(
    schema: object,
) -> None:
    assert refused({**document(), "schema": schema}) == (
        f"r.json: schema {schema!a}, and this rtscope reads 2: measure again: "
        "rtscope run"
    )


def test_a_future_record_with_other_fields_is_told_by_its_schema() -> None:
    assert "schema 3, and this rtscope reads 2" in refused({"schema": 3, "runs": []})


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"", "the file"),
        (b"null", "the file"),
        (b"[]", "the file"),
        (b"\x00\xff\xfe", "the file"),
        (b"[" * 100_000, "the file"),
        (b'{"schema":1', "the file"),
        (b'{"schema":2}', "rtscope"),
    ],
)
def test_what_is_no_record_is_refused_with_the_first_place(
    content: bytes, where: str
) -> None:
    with pytest.raises(RecordError, match=f"^r.json: damaged record: {where}: "):
        record_from_json(content, name="r.json")


def with_run(**changes: object) -> dict[str, Any]:
    made = document()
    made["run"] |= changes
    return made


@pytest.mark.parametrize(
    "run_id",
    [
        "../../etc/cron.d/x",
        "001-../../x",
        "001-x/y",
        "/etc/passwd",
        ".",
        "",
        "001-",
        "001-\u202eexe",
        "001-x\n",
        "001-" + "x" * 200,
    ],
)
def test_the_name_of_a_run_cannot_lead_out_of_its_directory(run_id: str) -> None:
    assert "run.id" in refused(with_run(id=run_id))


@pytest.mark.parametrize(
    "changes",
    [
        {"interval_ns": 0},
        {"interval_ns": -1},
        {"duration_ns": 0},
        {"repetition": 0},
        {"priority": -1},
        {"priority": 2**70},
        {"load": "x" * 100_000},
        {"cpus": "0-3"},
    ],
)
def test_a_run_outside_all_sense_is_refused(changes: dict[str, Any]) -> None:
    (key,) = changes
    assert f"run.{key}" in refused(with_run(**changes))


@pytest.mark.parametrize("digest", ["", "x" * 64, "A" * 64, "0" * 63, None])
def test_a_digest_is_64_hex_digits(digest: object) -> None:
    assert "result_digest" in refused({**document(), "result_digest": digest})


def test_a_caveat_longer_than_any_is_refused() -> None:
    assert "caveats.0.detail" in refused(
        {**document(), "caveats": [{"id": "guest", "detail": "x" * 5000}]}
    )


def test_what_a_newer_version_adds_is_ignored() -> None:
    added = {**document(), "invented": {"later": [1]}}

    assert record_from_json(json.dumps(added).encode(), name="it") == GOOD


def test_a_virtual_run_comes_back_unchanged_and_a_damaged_one_is_refused() -> None:
    kept = on_board(GOOD, module_addresses={"virtio": "0x1"}, module_symbols="1 T f\n")
    assert kept.virtual == record_from_json(record_to_json(kept), name="it").virtual
    assert GOOD.virtual is None

    damaged = json.loads(record_to_json(kept))
    damaged["virtual"]["mips"] = "many"
    assert "r.json: " in refused(damaged)
    assert "damaged record: virtual.mips: " in refused(damaged)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("interval_ns", 0),
        ("interval_ns", -1),
        ("interval_ns", 2**63),
        ("interval_ns", 1.5),
        ("interval_ns", None),
        ("interval_ns", "200000"),
        ("samples", -1),
        ("samples", 2**60),
        ("missed_periods", None),
        ("histogram", [[-1, 5]]),
        ("histogram", [[1 << 40, 5]]),
        ("foreign", {"step_ns": 1000, "end_ns": 10_000, "mean_ns": None}),
    ],
)
def test_a_thread_that_cannot_have_measured_is_refused_by_its_key(
    key: str, value: object
) -> None:
    changed = document()
    changed["result"]["threads"][0][key] = value

    assert f"{'imported' if key == 'foreign' else key}" in refused(changed)


def test_a_run_of_another_tool_on_a_board_of_ours_is_refused() -> None:
    changed = json.loads(record_to_json(on_board(GOOD)))
    changed["imported"] = {
        **dict.fromkeys(("tool", "version", "format", "file", "measures"), "x"),
        **{"verified": True, "sha256": "0" * 64},
    }

    assert "on a board of rtscope" in refused(changed)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "1e99"])
@pytest.mark.parametrize("key", ["throughput", "host_duration_s", "least_share"])
def test_a_number_that_nothing_measures_is_refused(key: str, number: str) -> None:
    made = document()
    made["load"]["throughput"] = {"x": 1.0}
    text = json.dumps(made)
    written = {
        "throughput": text.replace(
            '"throughput": {"x": 1.0}', f'"throughput": {{"x": {number}}}'
        ),
        "host_duration_s": text.replace(
            '"host_duration_s": ', f'"host_duration_s": {number}, "was": '
        ),
        "least_share": text.replace('"workers": []', f'"workers": [{WORKER % number}]'),
    }[key]
    assert written != text

    with pytest.raises(RecordError, match=key):
        record_from_json(written.encode(), name="r.json")


WORKER = (
    '{"name": "a", "pid": 1, "processes": 1, "waits": false, "cpu_ns": 1, '
    '"least_share": %s, "most_share": 1.0, "voluntary_switches": 1, '
    '"involuntary_switches": 1}'
)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e400", "-1e400"])
@pytest.mark.parametrize(
    "place",
    [
        ("run", "repetition"),
        ("run", "interval_ns"),
        ("run", "duration_ns"),
        ("run", "block"),
        ("host_duration_s",),
        ("facts_before", "cpu_model", "value"),
        ("load", "throughput", "cpu"),
    ],
)
def test_a_number_that_nothing_can_count_is_refused(
    place: tuple[str, ...], number: str
) -> None:
    changed = document()
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = "NUMBER"
    text = json.dumps(changed).replace('"NUMBER"', number)

    with pytest.raises(RecordError, match=r"r\.json: damaged record"):
        record_from_json(text.encode(), name="r.json")
