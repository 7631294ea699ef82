"""A target that plays back prepared lines: for exact tests of order and failure."""

from collections.abc import Mapping, Sequence

from rtscope.contract import Line
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import Reader

Script = Sequence[Sequence[Line]]
"""Lines of a fake agent: one batch for each call; then it has ended."""


class FakeStream:
    """An agent that plays its script, and ends when stopped or at its end."""

    def __init__(
        self, script: Script, *, log: list[str], name: str, on_stop: Script = ()
    ) -> None:
        self._batches = [list(batch) for batch in script]
        self._on_stop = [list(batch) for batch in on_stop]
        self._log = log
        self._name = name

    @property
    def ended(self) -> bool:
        """Whether the script is over."""
        return not self._batches

    @property
    def patience(self) -> None:
        """There is no time to wait for."""
        return

    @property
    def memory_bytes(self) -> int:
        """Lines from memory take none."""
        return 0

    def fileno(self) -> int | None:
        """Return None: lines are ready at any time."""
        return None

    def take_lines(self) -> list[Line]:
        """Return the next batch."""
        return self._batches.pop(0) if self._batches else []

    def ask_stop(self) -> None:
        """Note it, and go on with what the script has for this case."""
        self._log.append(f"stop {self._name}")
        self._batches = self._on_stop

    def kill(self) -> None:
        """Note it, and end."""
        self._log.append(f"kill {self._name}")
        self._batches = []

    def stderr_tail(self) -> str:
        """Return nothing."""
        return ""


class FakeTarget:
    """Keeps all calls in `log`; answers from prepared scripts."""

    def __init__(
        self,
        scripts: Mapping[str, Script],
        *,
        on_stop: Mapping[str, Script] | None = None,
        reader: Reader | None = None,
        programs: Mapping[str, str] | None = None,
        storage_dir: str = "/var/tmp",
    ) -> None:
        self.name = "fake"
        self.reader = reader or FileReader()
        self.default_storage_dir = storage_dir
        self.log: list[str] = []
        self._scripts = scripts
        self._on_stop = on_stop or {}
        self._programs = programs or {}

    def start_agent(
        self, args: Sequence[str], *, privileged: bool = False
    ) -> FakeStream:
        """Play the script of the subcommand."""
        self.log.append(" ".join([*(["root"] if privileged else []), *args]))
        return FakeStream(
            self._scripts.get(args[0], ()),
            log=self.log,
            name=args[0],
            on_stop=self._on_stop.get(args[0], ()),
        )

    def work_path(self, name: str) -> str:
        """Return a path that nobody opens."""
        return f"/fake/{name}"

    def begin_run(self) -> None:
        """There is no time to wait for."""

    def load_user(self) -> tuple[int, int] | None:
        """Return None: nobody changes users here."""
        return None

    def first_line(self, command: Sequence[str]) -> str | None:
        """Look the program up in the table."""
        return self._programs.get(command[0])
