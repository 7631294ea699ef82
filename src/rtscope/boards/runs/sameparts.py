"""
What is added to earlier results must come from the same parts as they did.

Otherwise a difference between two runs may be one of two agents, or of two QEMUs.
"""

from collections.abc import Iterable, Iterator

from rtscope.boards.runs.prepare import DIGITS, PreparedCampaign
from rtscope.host.errors import UsageError
from rtscope.record.model import RunRecord

COMMON_PARTS = ("agent-", "plugin-", "qemu-", "userland-")
"""How the names of parts begin that all kernels of a board have in common."""


def refuse_other_inputs(
    campaign: PreparedCampaign, records: Iterable[RunRecord]
) -> None:
    """Raise UsageError if a resumed campaign would use other parts than before."""
    now: dict[tuple[str, str | None], str] = {}
    for request, prepared in campaign.runs:
        now["kernel", request.run.kernel] = prepared.kernel.digest
        now["qemu", None] = prepared.qemu.digest
        now["plugin", None] = prepared.plugin_digest
    for record in records:
        if (virtual := record.virtual) is None or (
            inputs := virtual.input_digests
        ) is None:
            continue
        for name, label, then in (
            ("kernel", record.run.kernel, inputs.kernel),
            ("qemu", None, inputs.qemu),
            ("plugin", None, inputs.plugin),
        ):
            _refuse_other(record, name, then, now.get((name, label)))
        refuse_other_common_parts(campaign, [record])


def refuse_other_common_parts(
    campaign: PreparedCampaign, records: Iterable[RunRecord]
) -> None:
    """Raise UsageError if records of other kernels had another agent, say, than now."""
    now = dict(_common_parts(campaign))
    for record in records:
        for name, then in record.virtual.part_digests.items() if record.virtual else ():
            _refuse_other(record, name, then, now.get(name))


def _common_parts(campaign: PreparedCampaign) -> Iterator[tuple[str, str]]:
    for _, prepared in campaign.runs:
        for part in prepared.parts:
            if part.name.startswith(COMMON_PARTS):
                yield part.name, part.digest


def _refuse_other(record: RunRecord, name: str, then: str, now: str | None) -> None:
    if now is not None and then != now:
        raise UsageError(
            f"{record.run.id} was measured with another {name} than there is now "
            f"({then[:DIGITS]}, now {now[:DIGITS]}); put the former back, or measure "
            "all of it again, into another directory"
        )
