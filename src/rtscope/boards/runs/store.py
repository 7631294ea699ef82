"""
Results of boots that were computed before, by the digest of their inputs.

A virtual board's result follows from its inputs, so one that is there need not be
computed again. Only results of this installation count: each is signed with a key
that no other user can read, and whatever else lies there is left alone and measured.
The folder can be deleted at any time, and loses its oldest results when it grows.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean

from pydantic import TypeAdapter

from rtscope.boards.parts.cache import user_dir
from rtscope.boards.parts.qemu import Recording
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.outcome import pack_booted, read_booted
from rtscope.boards.runs.prepare import RunRequest
from rtscope.contract import sha256_of_json
from rtscope.host.errors import BoardError, RecordError
from rtscope.host.files import read_bounded, write_atomically
from rtscope.host.version import __version__
from rtscope.measure.campaign.model import Campaign
from rtscope.record.model import InputDigests, Run

# --- the time that boots take of this machine, from boots that it has measured --------


@dataclass(frozen=True, slots=True)
class Kind:
    """Boots that take about the same time."""

    board: str
    load: str
    virtual_ns: int
    """With settling and warm-up."""
    records: bool = True
    """Whether paths are recorded, which takes time."""


@dataclass(frozen=True, slots=True)
class Took:
    """What one boot took."""

    kind: Kind
    host_s: float


@dataclass(frozen=True, slots=True)
class HostTime:
    """An estimate, and from how many boots it is."""

    seconds: float
    runs: int


def kind_of(run: Run, campaign: Campaign) -> Kind:
    """Return the kind of a run's boot."""
    waits_ns = campaign.settling_ns + campaign.warmup_ns
    virtual_ns = run.duration_ns + waits_ns
    return Kind(campaign.board or "", run.load, virtual_ns, campaign.record)


def took(request: RunRequest, booted: Booted) -> Took:
    """Return what the boot of a run took."""
    return Took(kind_of(request.run, request.campaign), booted.host_seconds)


def host_time(
    kinds: Sequence[Kind], earlier: Iterable[Took], *, at_once: int
) -> HostTime | None:
    """Return how long boots take together; None if of one kind no boot is known."""
    host_times: dict[Kind, list[float]] = {kind: [] for kind in kinds}
    for one in earlier:
        if one.kind in host_times:
            host_times[one.kind].append(one.host_s)
    if not host_times or not all(host_times.values()):
        return None
    means = {kind: fmean(times) for kind, times in host_times.items()}
    seconds = sum(means[kind] for kind in kinds) / at_once
    return HostTime(seconds, sum(map(len, host_times.values())))


# --- results of boots that were computed before, by the digest of their inputs --------

FOLDER = "results"
"""Beside the key."""
KEY = "installation.key"
KEY_BYTES = 32
OWNER_DIGITS = 12
MAX_STORED_BYTES = 2 << 30
"""Of all results; the oldest go first."""
MAX_FILE_BYTES = 256 << 20
MAX_HEAD_BYTES = 4096
PLAIN = "plain"
"""Instead of the digest of a recording: nothing was recorded."""

# As `_path` makes them; in front of that a dot while `write_atomically` writes it.
_NAME = re.compile(rf"\.?[0-9a-f]{{64}}-({PLAIN}|[0-9a-f]{{16}})(\..*)?")

Log = Callable[[str], None]

_TOOK = TypeAdapter(Took)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and when a result was computed."""

    started: str
    """When its boot began, ISO 8601, UTC."""
    worker: str = ""
    """The worker of a cluster that booted it; empty: this machine."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A result that was computed before."""

    booted: Booted
    origin: Origin


@dataclass(frozen=True, slots=True)
class StoredResults:
    """The results that this installation has computed."""

    folder: Path
    key: bytes
    log: Log
    logged: set[str] = field(default_factory=set)
    """What need not be logged again."""

    def find(self, inputs: InputDigests, recording: Recording | None) -> Stored | None:
        """Return a result with these inputs and recordings; None without one."""
        path = self._path(inputs, recording)
        try:
            content = read_bounded(path, limit=MAX_FILE_BYTES, kind="result")
        except RecordError:
            return None
        try:
            stored = self._read(content, path)
        except (BoardError, ValueError) as error:
            self.log(f"{path}: {error}: left aside, and measured again")
            return None
        with suppress(OSError):
            os.utime(path)  # the oldest go first
        return stored

    def keep(
        self,
        inputs: InputDigests,
        recording: Recording | None,
        booted: Booted,
        origin: Origin,
        *,
        took: Took | None = None,
    ) -> None:
        """Store a result; one that cannot be written is logged, and no error."""
        path = self._path(inputs, recording)
        about = {"name": path.name, "rtscope": __version__, **asdict(origin)}
        head = json.dumps({**about, "took": None if took is None else asdict(took)})
        signed = head.encode() + b"\n" + pack_booted(booted)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, self._seal(signed) + b"\n" + signed)
        except (RecordError, OSError) as error:
            why = getattr(error.__cause__ or error, "strerror", None) or error
            self._log_once(
                f"{self.folder}: {why}: results are not stored there for the next time"
            )

    def _log_once(self, text: str) -> None:
        """Log what would be so for each of hundreds of results."""
        if text not in self.logged:
            self.logged.add(text)
            self.log(text)

    def drop(self, inputs: InputDigests) -> None:
        """Remove the results of inputs that gave another one too."""
        for path in self.folder.glob(f"{inputs.digest[:2]}/{inputs.digest}-*"):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                self.log(f"{path}: {error.strerror}: delete it, it may be wrong")

    def prune(self, max_bytes: int = MAX_STORED_BYTES) -> None:
        """
        Remove the results that were not used for longest, down to a total size.

        Of all keys: they share the disk.
        """
        results = sorted(_results_in(self.folder.parent))
        total = sum(size for _, size, _ in results)
        for _, size, path in results:
            if total <= max_bytes:
                return
            with suppress(OSError):
                path.unlink(missing_ok=True)
                total -= size

    def _path(self, inputs: InputDigests, recording: Recording | None) -> Path:
        digest = inputs.digest
        return self.folder / digest[:2] / f"{digest}-{recording_digest(recording)}"

    def _seal(self, signed: bytes) -> bytes:
        return hmac.new(self.key, signed, hashlib.sha256).hexdigest().encode()

    def _read(self, content: bytes, path: Path) -> Stored:
        seal, _, signed = content.partition(b"\n")
        if not hmac.compare_digest(seal, self._seal(signed)):
            raise ValueError("not computed by this installation, or damaged")
        head, _, packed = signed.partition(b"\n")
        about: Mapping[str, str] = json.loads(head[:MAX_HEAD_BYTES])
        if about["name"] != path.name:
            raise ValueError("the result of other inputs")
        booted = read_booted(packed, source="result")
        return Stored(booted, Origin(about["started"], about["worker"]))


def earlier_boots(state: Path) -> Iterator[Took]:
    """
    Yield what the boots of stored results took here, for an estimate.

    Not those of other machines; the seals are not looked at.
    """
    for _, _, path in _results_in(state / FOLDER):
        with suppress(OSError, ValueError, KeyError, TypeError):
            with path.open("rb") as file:
                file.readline(MAX_HEAD_BYTES)
                about = json.loads(file.readline(MAX_HEAD_BYTES))
            took = _TOOK.validate_python(about["took"])
            if not about["worker"]:
                yield took


def open_stored(*, log: Log) -> StoredResults | None:
    """
    Return the stored results of this installation; None if that cannot be.

    Logs why: what is measured does not depend on it.
    """
    state = state_dir()
    try:
        key = _installation_key(state)
    except OSError as error:
        log(f"results are not stored: {error.filename or state}: {error.strerror}")
        return None
    except ValueError as error:
        log(f"results are not stored: {error}")
        return None
    # A new key does not overwrite the results of the old one.
    owner = hashlib.sha256(key).hexdigest()[:OWNER_DIGITS]
    results = StoredResults(state / FOLDER / owner, key, log)
    results.prune()
    return results


def _results_in(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """
    Yield when each result was used, its size and its path.

    Also one that was not written to its end. What is behind a link, or has another
    name, is not ours to remove.
    """
    for path in folder.glob("*/*/*"):
        with suppress(OSError):
            about = path.lstat()
            owner = path.parent.parent
            if (
                _NAME.fullmatch(path.name)
                and stat.S_ISREG(about.st_mode)
                and not path.parent.is_symlink()
                and not owner.is_symlink()
            ):
                yield about.st_mtime, about.st_size, path


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory for state, by the XDG base directory specification."""
    return user_dir("XDG_STATE_HOME", ".local/state", environ)


def recording_digest(recording: Recording | None) -> str:
    """Return what tells apart recordings of the same run."""
    return PLAIN if recording is None else sha256_of_json(asdict(recording))[:16]


def _installation_key(folder: Path) -> bytes:
    """Return the key of this installation, made if there is none."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / KEY
    if not path.exists():
        number, new = tempfile.mkstemp(prefix=f".{KEY}.", dir=folder)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
            with suppress(FileExistsError):  # another rtscope was faster
                os.link(new, path)
        finally:
            Path(new).unlink()
    about = path.lstat()
    private = stat.S_ISREG(about.st_mode) and not about.st_mode & 0o077
    if not private or about.st_uid != os.geteuid():
        raise ValueError(
            f"others can read or replace {path}: delete it; a new one is made"
        )
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise ValueError(f"{path} is damaged: delete it; a new one is made")
    return key
