"""
Each wake-up of a run, with its time: the file that `rtscope run --keep-samples` writes.

The file is gzip of one line of JSON, then the bytes of each thread as the agent packed
them (`format/README.md`, `samples`). It may come by mail: sizes are bounded before
anything is unpacked, and its numbers must be those of the record. All times in ns.
"""

import base64
import binascii
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from rtscope.contract import Count, Samples
from rtscope.contract.values import Cpu
from rtscope.host.errors import ContractError, RecordError
from rtscope.host.files import first_mistake, read_bounded
from rtscope.host.files.documents import JsonShape
from rtscope.record.model import Digest, RunRecord

FILE = "samples.gz"
"""The name of the file beside the record."""

SCHEMA = 1

MAX_PERIODS = 4_194_303
"""Of a thread, as the agent has room for: 10 minutes at 200 us are 3,000,000."""

MAX_BYTES = 256 * 1024 * 1024
"""Of all threads together, unpacked: 12,000,000 wake-ups take about 24 MB."""

NONE = np.iinfo(np.int64).min
"""Stands for a period without a wake-up."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ThreadSamples:
    """The wake-ups of one thread, period after period."""

    cpu: int | None
    start_ns: int
    interval_ns: int
    latency_ns: Numbers
    """Number i: of the wake-up due at start + (i + 1) intervals; or NONE."""

    @property
    def woken(self) -> npt.NDArray[np.bool_]:
        """The periods with a wake-up."""
        woken: npt.NDArray[np.bool_] = self.latency_ns != NONE
        return woken

    @property
    def due_ns(self) -> Numbers:
        """When each period was due."""
        steps = np.arange(1, len(self.latency_ns) + 1, dtype=np.int64)
        return self.start_ns + steps * self.interval_ns


@dataclass(frozen=True, slots=True)
class _Thread:
    cpu: Cpu | None
    start_ns: Count
    interval_ns: Count
    periods: Count
    bytes: Count


@dataclass(frozen=True, slots=True)
class _Header:
    schema: int
    result_digest: Digest
    threads: tuple[_Thread, ...]


_SHAPE: JsonShape[_Header] = JsonShape(TypeAdapter(_Header))
_MAX_HEADER = 1 << 20


@dataclass(slots=True)
class SamplesParts:
    """What an agent has sent of its wake-ups so far."""

    packed: dict[int | None, list[bytes]] = field(default_factory=dict)
    periods: dict[int | None, int] = field(default_factory=dict)
    """By CPU, in the order of the threads."""
    _left_bytes: int = MAX_BYTES

    def take(self, line: Samples) -> None:
        """Add the next periods of a thread; ContractError if they are not the next."""
        known = self.periods.get(line.cpu, 0)
        if line.first != known:
            raise ContractError(
                f"the agent sent wake-ups from {line.first} on, and {known} were there"
            )
        try:
            content = base64.b64decode(line.base64, validate=True)
        except binascii.Error as error:
            raise ContractError("the agent garbled a part of its wake-ups") from error
        self._left_bytes -= len(content)
        self.periods[line.cpu] = known + line.periods
        if self._left_bytes < 0 or self.periods[line.cpu] > MAX_PERIODS:
            raise ContractError("the agent sent more wake-ups than it may keep")
        self.packed.setdefault(line.cpu, []).append(content)


def samples_file(parts: SamplesParts, record: RunRecord) -> bytes | None:
    """
    Return the file for what an agent has sent; None if it kept nothing.

    Raises ContractError if it contradicts the result.
    """
    if not parts.periods or record.result.stopped == "lost":
        return None
    packed = {cpu: b"".join(pieces) for cpu, pieces in parts.packed.items()}
    threads = [t for t in record.result.threads if t.cpu in packed]
    if len(threads) != len(packed):
        raise ContractError("the agent sent wake-ups of another thread than measured")
    header = _Header(
        SCHEMA,
        record.result_digest,
        tuple(
            _Thread(
                *(t.cpu, t.start_ns, t.interval_ns),
                periods=parts.periods[t.cpu],
                bytes=len(packed[t.cpu]),
            )
            for t in threads
        ),
    )
    content = b"".join(packed[t.cpu] for t in threads)
    _require_equal(_threads(header, content), record)
    return gzip.compress(_SHAPE.write(header) + b"\n" + content, 6, mtime=0)


def read_samples(path: Path, record: RunRecord) -> tuple[ThreadSamples, ...]:
    """
    Read the wake-ups of a record.

    Raises RecordError for a file that is damaged, too large, or of another result.
    """
    try:
        text = _unpacked(read_bounded(path, limit=MAX_BYTES, kind="file of wake-ups"))
        head, newline, content = text.partition(b"\n")
        if not newline or len(head) > _MAX_HEADER:
            raise ContractError("no header")
        header = _SHAPE.read(head)
        if header.schema != SCHEMA:
            raise ContractError(f"schema {header.schema}, and this rtscope reads 1")
        if header.result_digest != record.result_digest:
            raise ContractError("they are of another result than the record's")
        threads = _threads(header, content)
        _require_equal(threads, record)
    except (ContractError, ValidationError, zlib.error, EOFError, OSError) as error:
        why = (
            first_mistake(error, whole="header")
            if isinstance(error, ValidationError)
            else error
        )
        raise RecordError(f"{path}: damaged wake-ups: {why}") from error
    return threads


def find_samples(
    paths: Sequence[Path], records: Sequence[RunRecord], *, log: Callable[[str], None]
) -> dict[str, tuple[ThreadSamples, ...]]:
    """
    Return the wake-ups that lie below or beside `paths`, by the result's digest.

    Log and leave out a file that is damaged.
    """
    by_id = {record.run.id: record for record in records}
    found: dict[str, tuple[ThreadSamples, ...]] = {}
    for file in (file for path in paths for file in files_of(path)):
        record = by_id.get(file.parent.name)
        if record is None or record.result_digest in found:
            continue
        try:
            found[record.result_digest] = read_samples(file, record)
        except RecordError as error:
            log(f"not shown: {error}")
    return found


def files_of(path: Path) -> Iterator[Path]:
    """Yield the files of wake-ups of a result directory, of a run, of a record."""
    folder = path if path.is_dir() else path.parent
    places = [folder / FILE, *sorted(folder.glob(f"runs/*/{FILE}"))]
    yield from (one for one in places if one.is_file() and not one.is_symlink())


def _unpacked(text: bytes) -> bytes:
    """Return the content of a gzip file; ContractError for more than MAX_BYTES."""
    unpacker = zlib.decompressobj(wbits=31)
    content = unpacker.decompress(text, MAX_BYTES + _MAX_HEADER)
    if not unpacker.eof:
        raise ContractError("cut short, or larger than any run's")
    return content


def _threads(header: _Header, content: bytes) -> tuple[ThreadSamples, ...]:
    made, at = [], 0
    for one in header.threads:
        if one.periods > MAX_PERIODS:
            raise ContractError("more periods than are kept")
        latencies = _latencies(content[at : at + one.bytes], one.periods)
        made.append(ThreadSamples(one.cpu, one.start_ns, one.interval_ns, latencies))
        at += one.bytes
    if at != len(content):
        raise ContractError(f"{len(content)} bytes, and the header names {at}")
    return tuple(made)


_LONGEST = 10
"""Bytes of a number of 64 bits, 7 bits in each."""


def _latencies(packed: bytes, periods: int) -> Numbers:
    """Return the latency of each period; ContractError unless there are so many."""
    content = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(content < 0x80)
    begins = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    if len(ends) != periods or (len(content) and ends[-1] != len(content) - 1):
        raise ContractError(f"{len(ends)} periods, and the header names {periods}")
    lengths = ends - begins + 1
    if periods and int(lengths.max()) > _LONGEST:
        raise ContractError("a number of more than 64 bits")
    words = np.zeros(periods, np.uint64)
    for byte in range(int(lengths.max()) if periods else 0):
        has = lengths > byte
        piece = (content[begins[has] + byte] & 0x7F).astype(np.uint64)
        words[has] |= piece << np.uint64(7 * byte)
    woken = words != 0
    zigzag = words[woken] - np.uint64(1)
    signs = (zigzag & np.uint64(1)).astype(np.int64)
    steps = (zigzag >> np.uint64(1)).astype(np.int64) ^ -signs
    latencies = np.full(periods, NONE, np.int64)
    latencies[woken] = np.cumsum(steps)
    return latencies


def _require_equal(threads: Sequence[ThreadSamples], record: RunRecord) -> None:
    """Raise ContractError unless the wake-ups are those that the result counted."""
    results = {thread.cpu: thread for thread in record.result.threads}
    for one in threads:
        result = results.get(one.cpu)
        if result is None:
            raise ContractError(f"the result has no thread of CPU {one.cpu}")
        kept = one.latency_ns[one.woken]
        late = kept[kept >= 0]
        counted = (len(kept), int(late.sum()), int(late.max()) if len(late) else None)
        wanted = (result.samples, result.sum_ns, result.max_ns)
        if counted != wanted:
            raise ContractError(
                f"CPU {one.cpu}: wake-ups, their sum and maximum in ns are {counted}, "
                f"and the result has {wanted}"
            )
