"""Which measurements a report was made from."""

from dataclasses import dataclass

from rtscope.record.model import RunRecord
from rtscope.report.escape import printable


@dataclass(frozen=True, slots=True)
class Provenance:
    """One record: equal result digests mean the same measurement."""

    run: str
    started: str
    rtscope: str
    agent: str
    result_digest: str
    kernel_digest: str
    """Empty if it was not recorded."""
    inputs_digest: str | None
    """Of all that the result of a virtual board depends on; None on a machine."""
    seed: int | None


def provenance_of(record: RunRecord) -> Provenance:
    """Name a record and what made it."""
    virtual = record.virtual
    digest = virtual and virtual.inputs_digest
    return Provenance(
        run=printable(record.run.id),
        started=printable(record.started),
        rtscope=printable(record.rtscope),
        agent=printable(record.hello.agent),
        result_digest=record.result_digest,
        kernel_digest=printable(record.kernel_digest or ""),
        inputs_digest=printable(digest) if digest else None,
        seed=record.run.seed,
    )
