"""One file to mail: what is in it, what fits, what is taken out, what is refused."""

import gzip
import io
import json
import random
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.measurements import record, thread
from rtscope.host.errors import RecordError, UsageError
from rtscope.machine.facts import FactValue
from rtscope.record import pack as pack_module
from rtscope.record.directory.records import ResultDir, create, open_records
from rtscope.record.model import RunRecord
from rtscope.record.pack import (
    MAX_FILES,
    NOTES,
    Packed,
    collect,
    folder_name,
    is_packed,
    pack,
    unpack,
    unpacking,
)
from rtscope.verbs.pack.redact import redacted

SALT = b"salt of this test"
NOISE = random.Random(1).randbytes(100_000)


def results(folder: Path, *loads: str, host: str = "kiln-7") -> Path:
    """Write a campaign with a run of each load, worse from run to run."""
    store = create(folder, {"target": "local"}, command=("rtscope", "run"))
    for number, load in enumerate(loads or ("idle",), start=1):
        one = record([thread([5_000] * 50 + [number * 100_000])], load)
        facts = {**one.facts_before, "hostname": FactValue(host, source="a test")}
        run = replace(one.run, id=f"{number:03}-{load}-r1")
        save(store, replace(one, run=run, facts_before=facts, facts_after=facts))
    return folder


def save(store: ResultDir, one: RunRecord) -> None:
    store.attach(one.run.id, "audit.json", b"{}\n")
    store.attach(one.run.id, "worst.trace.dat", gzip.compress(one.run.id.encode()))
    store.save(one)


def packed(folder: Path, path: Path, *, limit_bytes: int = 1 << 20) -> Packed:
    return pack(
        path,
        collect(folder),
        name=folder_name(folder),
        limit_bytes=limit_bytes,
        notes={},
        left_out={},
    )


def archive(path: Path, *members: tuple[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def names_of(path: Path) -> list[str]:
    with tarfile.open(path) as tar:
        return tar.getnames()


def test_what_was_packed_reads_as_the_directory_does(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", "idle", "memory")
    path = tmp_path / "r.tar.gz"
    told = packed(folder, path)

    with unpacking() as opened:
        place = opened(path)
        assert open_records(place) == open_records(folder)
        assert (place / "runs/001-idle-r1/audit.json").read_bytes() == b"{}\n"
    assert not place.exists(), "nothing stays behind"
    assert told == Packed(path.stat().st_size, len(names_of(path)), {})


def test_the_same_results_make_the_same_archive(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", "idle")
    packed(folder, tmp_path / "1.tar.gz")
    packed(folder, tmp_path / "2.tar.gz")

    one, two = (tmp_path / f"{n}.tar.gz" for n in (1, 2))
    assert one.read_bytes() == two.read_bytes()


def test_the_recording_of_the_worst_wakeup_comes_first(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", "idle", "memory", "cpu")

    assert [path for path in collect(folder) if path.endswith(".dat")] == [
        "runs/003-cpu-r1/worst.trace.dat",
        "runs/002-memory-r1/worst.trace.dat",
        "runs/001-idle-r1/worst.trace.dat",
    ]


def test_a_recording_that_does_not_fit_is_left_out_and_listed(tmp_path: Path) -> None:
    files = {
        "campaign.json": b"{}",
        "runs/001-idle-r1/record.json": b"{}",
        "runs/001-idle-r1/worst.trace.gz": NOISE,
        "runs/001-idle-r1/bound.trace.gz": b"small",
    }
    path = tmp_path / "r.tar.gz"
    told = pack(path, files, name="r", limit_bytes=4096, notes={}, left_out={})

    assert list(told.left_out) == ["runs/001-idle-r1/worst.trace.gz"]
    assert path.stat().st_size <= 4096
    assert "r/runs/001-idle-r1/bound.trace.gz" in names_of(path)
    with tarfile.open(path) as tar:
        notes = tar.extractfile(f"r/{NOTES}")
        assert notes is not None
        assert json.load(notes)["left_out"] == dict(told.left_out)


def test_records_that_do_not_fit_are_an_error_and_no_archive(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", "idle")

    with pytest.raises(UsageError, match="the records alone need more than 1,500"):
        packed(folder, tmp_path / "r.tar.gz", limit_bytes=1500)
    assert not (tmp_path / "r.tar.gz").exists()


def test_a_directory_without_records_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no record in it"):
        collect(tmp_path)


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", "idle")
    (folder / "runs/001-idle-r1/audit.json").unlink()
    (folder / "runs/001-idle-r1/audit.json").symlink_to("/etc/passwd")
    (folder / "runs/002-idle-r1").symlink_to(folder / "runs/001-idle-r1")

    assert list(collect(folder)) == [
        "campaign.json",
        "runs/001-idle-r1/record.json",
        "runs/001-idle-r1/worst.trace.dat",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "../record.json",
        "r/../campaign.json",
        "/campaign.json",
        "campaign.json",
        "r/runs/001-idle-r1/../record.json",
        "r/runs/001-idle-r1/rc.local",
        "r/runs/../../campaign.json",
        "r/runs/001-idle-r1/deep/record.json",
        "r/runs/record.json",
        "r/unfinished/.jsonl",
        "r/unfinished/001-a.jsonl/x",
        "r\x1b[2J/campaign.json",
        ".ssh/campaign.json",
    ],
)
def test_a_file_that_pack_does_not_write_refuses_the_archive(
    tmp_path: Path, name: str
) -> None:
    path = archive(tmp_path / "r.tar.gz", (name, b"x"))
    into = tmp_path / "into"
    into.mkdir()

    with pytest.raises(RecordError, match="is no file of a packed result"):
        unpack(path, into)
    assert list(into.iterdir()) == []


def test_links_in_an_archive_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo("r/campaign.json")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)

    with pytest.raises(RecordError, match="is no regular file"):
        unpack(path, tmp_path)


def test_a_file_twice_and_a_second_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    twice = (("r/campaign.json", b"1"), ("r/campaign.json", b"2"))
    other = (("r/campaign.json", b"1"), ("s/campaign.json", b"2"))

    with pytest.raises(RecordError, match=r"it holds campaign\.json twice"):
        unpack(archive(tmp_path / "twice.tar.gz", *twice), tmp_path / "1")
    with pytest.raises(RecordError, match=r"'s/campaign\.json' is no file of"):
        unpack(archive(tmp_path / "other.tar.gz", *other), tmp_path / "2")


def test_too_many_files_and_damage_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pack_module._BOUNDS.max_files == MAX_FILES
    few = replace(pack_module._BOUNDS, max_files=400)
    monkeypatch.setattr(pack_module, "_BOUNDS", few)
    lines = ((f"r/unfinished/001-{n}.jsonl", b"") for n in range(401))
    many = archive(tmp_path / "many.tar.gz", *lines)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(many.read_bytes()[: many.stat().st_size // 2])
    other = tmp_path / "other.gz"
    other.write_bytes(gzip.compress(b"no archive"))

    with pytest.raises(RecordError, match="too large for a packed result"):
        unpack(many, tmp_path / "a")
    for path in (cut, other):
        with pytest.raises(UsageError, match="not a packed result, or damaged"):
            unpack(path, tmp_path / "b")
    with pytest.raises(UsageError, match="an empty archive"):
        unpack(archive(tmp_path / "empty.tar.gz"), tmp_path)


def test_only_compressed_files_are_taken_for_archives(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", "idle")

    assert not is_packed(folder)
    assert not is_packed(folder / "runs/001-idle-r1/record.json")
    assert not is_packed(tmp_path / "missing")
    assert is_packed(folder / "runs/001-idle-r1/worst.trace.dat")


# --- redaction ------------------------------------------------------------------------


def test_redaction_leaves_what_was_measured(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", "idle")
    files, left_out, _ = redacted(collect(folder), salt=SALT)
    path = tmp_path / "r.tar.gz"
    pack(path, files, name="r", limit_bytes=1 << 20, notes={}, left_out=left_out)

    (before,) = open_records(folder)
    (after,) = open_records(unpack(path, tmp_path / "into"))
    assert after.result == before.result
    assert after.result_digest == before.result_digest
    assert left_out == {"runs/001-idle-r1/worst.trace.dat": "cannot be redacted"}


def test_names_and_addresses_are_gone_everywhere(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", "idle", host="kiln-7")
    audit = folder / "runs/001-idle-r1/audit.json"
    audit.write_text(
        json.dumps(
            {
                "cmdline": "root=UUID=12345678-1234-1234-1234-123456789abc ip=10.1.2.3",
                "mac": "aa:bb:cc:dd:ee:ff",
                "v6": "at fe80::1:2 and ::1 and 127.0.0.1",
                "said": "kiln-7 booted; kiln-77 did not; ann@example.org",
                "path": "/home/" + "ann/results",
                "serial": "Serial: X1Y2Z3",
                "kernel": "6.12.48+deb13-amd64 at 12:34:56, 0000:00:1f.2",
            }
        )
    )
    files, _, tally = redacted(collect(folder), salt=SALT)
    text = b"".join(files.values()).decode()

    said = json.loads(files["runs/001-idle-r1/audit.json"])
    for gone in ("12345678-1234", "10.1.2.3", "aa:bb", "fe80", "ann", "X1Y2Z3"):
        assert gone not in text
    assert "kiln-7 " not in said["said"]
    assert "kiln-77" in said["said"], "another name"
    assert said["v6"].endswith(" and ::1 and 127.0.0.1")
    assert said["kernel"] == "6.12.48+deb13-amd64 at 12:34:56, 0000:00:1f.2"
    assert tally.counts["names"] >= 4
    assert tally.counts["addresses"] == 2


def test_two_machines_stay_two_and_another_archive_has_other_names(
    tmp_path: Path,
) -> None:
    def host(name: str, salt: bytes) -> str:
        folder = tmp_path / f"{name}-{salt.hex()[:4]}"
        files, _, _ = redacted(collect(results(folder, host=name)), salt=salt)
        document = json.loads(files["runs/001-idle-r1/record.json"])
        return str(document["facts_before"]["hostname"]["value"])

    one, two = host("kiln-7", SALT), host("anvil", SALT)
    assert one.startswith("name-")
    assert one != two
    assert host("kiln-7", b"another") != one
