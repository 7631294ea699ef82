"""Write each wake-up that a run kept as a line of CSV."""

from collections.abc import Iterator, Mapping, Sequence

from rtscope.host.errors import UsageError
from rtscope.host.files.csvtext import csv_text
from rtscope.record.model import RunRecord
from rtscope.record.samples import NONE, ThreadSamples


def csv_of_each(
    records: Sequence[RunRecord], samples: Mapping[str, Sequence[ThreadSamples]]
) -> str:
    """
    Return a row for each period: since the start of its run, and its latency, in ns.

    A missed period has an empty latency. Raises UsageError if no run kept any.
    """
    kept = [one for one in records if one.result_digest in samples]
    if not kept:
        raise UsageError(
            "no run kept each wake-up: measure with rtscope run --keep-samples"
        )
    names = ("run", "cpu", "due_ns", "latency_ns")
    rows = (row for one in kept for row in _rows(one, samples[one.result_digest]))
    return csv_text([names, *rows])


def _rows(
    record: RunRecord, threads: Sequence[ThreadSamples]
) -> Iterator[tuple[object, ...]]:
    for thread in threads:
        due_ns = (thread.due_ns - record.result.start_ns).tolist()
        for at_ns, latency in zip(due_ns, thread.latency_ns.tolist(), strict=True):
            yield record.run.id, thread.cpu, at_ns, "" if latency == NONE else latency
