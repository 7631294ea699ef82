"""The determinism checks of a sweep in words."""

from collections.abc import Iterator

from rich.text import Text

from rtscope.host.escape import printable
from rtscope.host.units import plural
from rtscope.verbs.sweep.checks import Checks


def lines_of_checks(checks: Checks) -> Iterator[Text]:
    """Yield how many checks were equal, and why others could not be made."""
    if not checks.planned:
        return
    text = f"{checks.equal} of {plural(checks.planned, 'determinism check')} equal"
    if not checks.failures:
        yield Text(text)
        return
    first = printable(checks.failures[0])
    yield Text(f"{text}, {len(checks.failures)} failed: {first}", style="yellow")
