"""A shield of CPUs that is held: what was changed and what stays, as text and JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from rtscope.host.errors import first_of
from rtscope.host.escape import printable
from rtscope.host.units import plural
from rtscope.machine.settings.shield import GROUP, Shield, Stays
from rtscope.present.document import Block, Item

SCHEMA = 1
MAX_NAMED = 6

_KINDS = {
    "isolated": "an isolated partition: nothing spreads threads over its CPUs",
    "root": "a partition that balances its load: this kernel has no isolated ones",
}


def shield_blocks(shield: Shield) -> Iterator[Block]:
    """Yield what the shield is, what was moved, and what stays, with the reason."""
    yield (f"CPU {shield.cpu_list} is shielded: {_KINDS[shield.partition]}.", "strong")
    settings = plural(len(shield.changed), "setting")
    yield (
        f"{plural(shield.moved, 'thread')} moved away; {settings} changed, read back, "
        "to be put back."
    )
    for (what, reason), group in _by_reason(shield).items():
        names = first_of(MAX_NAMED, [printable(one.name) for one in group])
        yield Item(f"{plural(len(group), what)} not moved: {reason} ({names}).")
    if shield.undone_by:
        yield Item(
            f"{shield.undone_by} runs and moves interrupts back: systemctl stop "
            f"{shield.undone_by}",
        )


def _by_reason(shield: Shield) -> Mapping[tuple[str, str], list[Stays]]:
    groups: dict[tuple[str, str], list[Stays]] = {}
    for one in shield.stays:
        groups.setdefault((one.what, one.reason), []).append(one)
    return groups


def shield_document(shield: Shield) -> Mapping[str, Any]:
    """Return the same for a JSON document."""
    return {
        "schema": SCHEMA,
        "cpus": list(shield.cpus),
        "partition": shield.partition,
        "group": GROUP,
        "threads_moved": shield.moved,
        "changed": [
            {"path": change.path, "before": change.old, "value": change.value}
            for change in shield.changed
        ],
        "not_moved": [
            {
                "what": one.what,
                "name": one.name,
                "tid": one.tid,
                "cpus": one.cpus,
                "reason": one.reason,
            }
            for one in shield.stays
        ],
        "undone_by": shield.undone_by,
    }
