"""A picture on standard error that is drawn anew while work goes on, on a terminal."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn

REFRESH_PER_S = 2


class Redrawn(ABC):
    """Shows a bar and what `_picture` puts below it. A context manager."""

    def __init__(self, console: Console, *, left: str) -> None:
        """Take the console, and the template of what is right of the bar."""
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn(left),
            console=console,
            expand=True,
        )
        self._live: Live | None = None

    @abstractmethod
    def _picture(self) -> Group: ...

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(
                console=self._console,
                get_renderable=self._picture,
                refresh_per_second=REFRESH_PER_S,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def talk(self, text: str) -> None:
        """Print a line, above the picture if there is one."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
