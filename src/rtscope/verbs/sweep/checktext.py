"""The determinism checks of a sweep in words."""

from collections.abc import Iterator

from rtscope.host.escape import printable
from rtscope.host.units import plural
from rtscope.present.document import Block, words
from rtscope.verbs.sweep.checks import Checks


def lines_of_checks(checks: Checks) -> Iterator[Block]:
    """Yield how many checks were equal, and why others could not be made."""
    if not checks.planned:
        return
    text = f"{checks.equal} of {plural(checks.planned, 'determinism check')} equal"
    if not checks.failures:
        yield text
        return
    first = printable(checks.failures[0])
    yield words((f"{text}, {len(checks.failures)} failed: {first}", "limit"))
