"""Each wake-up of a run: what the agent packs, the file beside the record, its uses."""

import base64
import gzip
from pathlib import Path

import numpy as np
import pytest

from fakes.measurements import record, thread
from rtscope.contract import Samples, parse_line
from rtscope.host.errors import ContractError, RecordError, UsageError
from rtscope.present.documents.pages import render_html
from rtscope.present.model.build import build_model
from rtscope.present.model.wakeups import MAX_STROKES, wakeups_over_time
from rtscope.record.model import RunRecord
from rtscope.record.samples import (
    FILE,
    NONE,
    SamplesParts,
    ThreadSamples,
    find_samples,
    read_samples,
    samples_file,
)
from rtscope.verbs.exchange.writers.numbers import csv_of_each

MS = 1_000_000
LATENCIES = (5_000, 4_000, 2_500_000, 70, -30)
KEPT = (5_000, 4_000, 2_500_000, None, None, 70, -30)
"""Two periods are gone behind the wake-up that was 2.5 ms late."""


def packed(latencies: tuple[int | None, ...]) -> bytes:
    """Pack periods as `agent/measure/samples.c` does."""
    made, before = bytearray(), 0
    for latency in latencies:
        word = 0
        if latency is not None:
            by, before = latency - before, latency
            word = ((by << 1) ^ (by >> 63)) + 1
        while word >= 0x80:
            made.append(word & 0x7F | 0x80)
            word >>= 7
        made.append(word)
    return bytes(made)


def line(content: bytes, periods: int, *, first: int = 0, cpu: int = 0) -> Samples:
    text = base64.b64encode(content).decode()
    return Samples(cpu=cpu, first=first, periods=periods, base64=text)


def kept(*lines: Samples) -> SamplesParts:
    parts = SamplesParts()
    for one in lines:
        parts.take(one)
    return parts


@pytest.fixture
def measured() -> RunRecord:
    return record([thread(LATENCIES, worst_kept=2)])


@pytest.fixture
def there(tmp_path: Path, measured: RunRecord) -> Path:
    content = samples_file(kept(line(packed(KEPT), 7)), measured)
    assert content is not None
    place = tmp_path / "runs" / measured.run.id / FILE
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    return place


def test_a_line_of_the_agent_is_read() -> None:
    # As agent/tests/measure/test_samples.c expects it.
    said = b'{"type":"samples","cpu":2,"first":0,"periods":5,"base64":"BwACgQEA"}'
    one = parse_line(said)

    assert isinstance(one, Samples)
    assert base64.b64decode(one.base64) == packed((3, None, 2, 66, None))


def test_each_wakeup_comes_back_in_its_period(there: Path, measured: RunRecord) -> None:
    (one,) = read_samples(there, measured)

    assert [None if x == NONE else x for x in one.latency_ns.tolist()] == [*KEPT]
    assert (one.due_ns - measured.result.start_ns).tolist() == [
        n * MS for n in range(1, 8)
    ]


def test_lines_of_a_thread_go_on_from_each_other(measured: RunRecord) -> None:
    whole = packed(KEPT)
    one = samples_file(kept(line(whole, 7)), measured)
    two = samples_file(kept(line(whole[:4], 2), line(whole[4:], 5, first=2)), measured)

    assert one == two


def test_a_gap_between_lines_is_refused() -> None:
    with pytest.raises(ContractError, match="from 3 on, and 2 were there"):
        kept(line(packed(KEPT[:2]), 2), line(packed(KEPT[3:]), 4, first=3))


@pytest.mark.parametrize(
    ("content", "periods"),
    [
        (packed(KEPT[:-1]), 6),
        (packed(KEPT), 6),
        (packed(KEPT) + b"\x80", 7),
        (b"\xff" * 11 + b"\1" + packed(KEPT)[2:], 7),
        (packed((1, *KEPT[1:])), 7),
    ],
)
def test_wakeups_that_the_result_has_not_counted_are_refused(
    measured: RunRecord, content: bytes, periods: int
) -> None:
    with pytest.raises(ContractError):
        samples_file(kept(line(content, periods)), measured)


def test_a_run_that_kept_none_has_no_file(measured: RunRecord) -> None:
    assert samples_file(SamplesParts(), measured) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: b"",
        lambda text: text[:-9],
        lambda text: gzip.compress(b"no header"),
        lambda text: gzip.compress(b"{}\n"),
        lambda text: gzip.compress(gzip.decompress(text)[:-1]),
        lambda text: gzip.compress(gzip.decompress(text) + b"\1"),
        lambda text: gzip.compress(
            gzip.decompress(text).replace(b'"periods":7', b'"periods":999999999999')
        ),
    ],
)
def test_a_damaged_file_is_named_and_the_report_goes_on(
    there: Path, measured: RunRecord, damage: object
) -> None:
    assert callable(damage)
    there.write_bytes(damage(there.read_bytes()))
    logged: list[str] = []

    with pytest.raises(RecordError, match="damaged wake-ups"):
        read_samples(there, measured)
    assert find_samples([there.parents[2]], [measured], log=logged.append) == {}
    assert len(logged) == 1
    assert str(there) in logged[0]


def test_a_file_that_unpacks_without_end_is_refused(
    there: Path, measured: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtscope.record.samples.MAX_BYTES", 1000)
    monkeypatch.setattr("rtscope.record.samples._MAX_HEADER", 1000)
    there.write_bytes(gzip.compress(bytes(100_000)))

    with pytest.raises(RecordError, match="larger than any run"):
        read_samples(there, measured)


def test_a_link_is_not_followed(there: Path, measured: RunRecord) -> None:
    aside = there.with_name("aside")
    there.rename(aside)
    there.symlink_to(aside)

    assert find_samples([there.parents[2]], [measured], log=print) == {}


def test_the_page_draws_each_wakeup_and_the_line(
    there: Path, measured: RunRecord
) -> None:
    samples = find_samples([there.parents[2]], [measured], log=print)
    page = render_html(build_model([measured], samples=samples, deadline_ns=200_000))
    plain = render_html(build_model([measured], deadline_ns=200_000))

    assert 'class="flame wakeups"' in page
    assert "5 wake-ups of 001-idle, a point for each. Red line: the deadline" in page
    assert page.count('class="limit"') == 1
    assert "2 missed periods" in page
    assert "<script" not in page
    assert "wakeups" not in plain


def test_no_latency_is_hidden_where_many_share_a_stroke() -> None:
    many = np.arange(100_000) % 997 + 1_000
    many[54_321] = 900_000
    latencies = tuple(many.tolist())
    one = record([thread(latencies, worst_kept=2)])
    content = samples_file(kept(line(packed(latencies), 100_000)), one)
    assert content is not None
    parts = kept(line(packed(latencies), 100_000))
    assert samples_file(parts, one) == content

    (strokes,) = _read(content, one)
    picture = wakeups_over_time("run", [strokes], {0: 0}, deadline_ns=None)

    assert picture is not None
    assert picture.most_in_stroke == 5  # 100,000 on 24,000 places
    (drawn,) = picture.cpus
    assert len(drawn.places) <= MAX_STROKES
    assert max(drawn.greatest_ns) == 900_000
    assert min(drawn.least_ns) == 1_000
    assert picture.limit == "interval"


def _read(content: bytes, one: RunRecord) -> tuple[ThreadSamples, ...]:
    from rtscope.host.files.heldfolders import temporary_folder

    with temporary_folder("samples", error=RecordError) as folder:
        (folder / FILE).write_bytes(content)
        return read_samples(folder / FILE, one)


def test_each_wakeup_is_a_row_of_csv(there: Path, measured: RunRecord) -> None:
    samples = find_samples([there.parents[2]], [measured], log=print)

    rows = csv_of_each([measured], samples).splitlines()

    assert rows[0] == "run,cpu,due_ns,latency_ns"
    assert rows[1] == "001-idle,0,1000000,5000"
    assert rows[4] == "001-idle,0,4000000,"
    assert rows[7] == "001-idle,0,7000000,-30"
    with pytest.raises(UsageError, match="--keep-samples"):
        csv_of_each([measured], {})
