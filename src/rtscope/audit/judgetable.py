"""Every judge by the name that the rows of `checks/*.toml` use."""

from collections.abc import Mapping

from rtscope.audit import (
    bootline,
    firmware,
    interrupts,
    isolation,
    judges,
    power,
    rights,
    surroundings,
    threads,
    unitjudges,
)
from rtscope.audit.judges import Judge

JUDGES: Mapping[str, Judge] = {
    **judges.JUDGES,
    **{
        judge.__name__: judge
        for judge in (
            *bootline.JUDGES,
            *firmware.JUDGES,
            *interrupts.JUDGES,
            *isolation.JUDGES,
            *power.JUDGES,
            *rights.JUDGES,
            *surroundings.JUDGES,
            *threads.JUDGES,
            *unitjudges.JUDGES,
        )
    },
}
