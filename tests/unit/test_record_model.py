"""A record comes back unchanged, and what is no record of ours is refused."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.boards import campaign
from fakes.measurements import record, thread
from rtscope.errors import RecordError
from rtscope.record.model import (
    RunRecord,
    record_from_json,
    record_to_json,
    write_atomically,
)

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


@pytest.mark.parametrize("schema", [0, 2, 99, "1", None, 1.5, [1]])
def test_a_record_of_another_schema_says_to_read_it_with_its_own_version(
    schema: object,
) -> None:
    told = refused({**document(), "schema": schema})

    assert told.startswith("r.json: not a record of schema 1;")
    assert "newer rtscope" in told


def test_a_future_record_with_other_fields_is_told_by_its_schema() -> None:
    assert "not a record of schema 1" in refused({"schema": 2, "measurements": []})


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"", "the file"),
        (b"null", "the file"),
        (b"[]", "the file"),
        (b"\x00\xff\xfe", "the file"),
        (b"[" * 100_000, "the file"),
        (b'{"schema":1', "the file"),
        (b'{"schema":1}', "rtscope"),
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


# --- writing --------------------------------------------------------------------------


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new and longer")

    assert path.read_bytes() == b"new and longer"
    assert names_in(tmp_path) == ["record.json"]
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_is_full_leaves_what_was_there(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "record.json"
    write_atomically(path, b"old")
    monkeypatch.setattr(os if call == "fsync" else Path, call, full)

    with pytest.raises(RecordError, match=r"No space left on device; free some space"):
        write_atomically(path, b"new")

    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["record.json"]


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="No such file or directory"):
        write_atomically(tmp_path / "none" / "record.json", b"")


def test_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    device = tmp_path / "null"
    os.mkfifo(device)

    with pytest.raises(RecordError, match="not a regular file"):
        write_atomically(device, b"page")

    assert device.is_fifo()


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "report.html"
    precious.write_text("precious")
    link.symlink_to(precious)

    write_atomically(link, b"page")

    assert precious.read_text() == "precious"
    assert not link.is_symlink()
