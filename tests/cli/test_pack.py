"""`rtscope pack`, and the verbs that read its archive."""

import json
import tarfile
from pathlib import Path

from fakes.commandline import Rtscope
from fakes.measurements import record, thread
from rtscope.record.directory.records import create


def results(folder: Path, latency_ns: int = 5_000) -> Path:
    store = create(folder, {}, command=("rtscope", "run"))
    store.save(record([thread([latency_ns] * 5000)], "idle"))
    return folder


def test_a_result_becomes_one_file_with_its_page(rtscope: Rtscope, here: Path) -> None:
    said = rtscope("pack", results(here / "results"))

    assert said.status == 0, said.err
    assert said.out.startswith("results.rtscope.tar.gz: 0.")
    with tarfile.open(here / "results.rtscope.tar.gz") as tar:
        names = tar.getnames()
    assert names[:2] == ["results/pack.json", "results/campaign.json"]
    assert "results/report.html" in names


def test_report_and_compare_read_the_archive_as_the_directory(
    rtscope: Rtscope, here: Path
) -> None:
    results(here / "a")
    results(here / "b", 7_000)
    for name in ("a", "b"):
        assert rtscope("pack", name).status == 0
    packs = [f"{name}.rtscope.tar.gz" for name in ("a", "b")]

    for form in ("csv", "json"):
        whole, packed = (
            rtscope("report", x, "--format", form) for x in ("a", packs[0])
        )
        assert packed.out == whole.out
    whole, packed = (rtscope("compare", *x, "--json") for x in (("a", "b"), packs))
    assert packed.status == 0, packed.err
    assert packed.out == whole.out, "with the same labels"


def test_explain_says_that_nothing_of_it_was_recorded(
    rtscope: Rtscope, here: Path
) -> None:
    results(here / "a")
    rtscope("pack", "a")
    whole, packed = (rtscope("explain", x) for x in ("a", "a.rtscope.tar.gz"))

    assert packed.status == whole.status == 2
    assert "a.rtscope.tar.gz: the explanation is not kept" in packed.err


def test_redacted_on_request(rtscope: Rtscope, here: Path) -> None:
    said = rtscope("pack", results(here / "kiln"), "--redact", "--out", "x.tar.gz")

    assert said.status == 0, said.err
    assert "look at it before you send it" in said.err
    with tarfile.open(here / "x.tar.gz") as tar:
        assert {name.split("/")[0] for name in tar.getnames()} == {"results"}
        notes = tar.extractfile("results/pack.json")
        assert notes is not None
        assert json.load(notes)["redacted"] is not None


def test_a_name_of_another_kind_is_refused(rtscope: Rtscope, here: Path) -> None:
    said = rtscope("pack", results(here / "a"), "--out", "a.zip")

    assert said.status == 2
    assert "name a file that ends in .tar.gz" in said.err
