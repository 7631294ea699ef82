"""
Run a case in this process, and keep what it says and writes.

The program is entered by the console script that is installed, and by nothing else.
"""

import contextlib
import datetime
import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import re
import shlex
import shutil
import signal
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from net.cases import ROOT, Case
from net.fakes import FAKES

ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PATH": "/usr/bin:/bin",
}

NORMALISED = (
    (r"{place}", "PLACE"),
    (r"\b2071-03-04([T ])\d\d:\d\d(:\d\d)?", r"TODAY\1NOW"),
    (r"\b2071-03-04\b", "TODAY"),
    (r"\b20710304-\d{{6}}\b", "TODAY-NOW"),
    (r"\brtscope-crash-\w+", "rtscope-crash-NAME"),
    (
        r'("(host_duration_s|build_seconds|build_cpu_seconds)": ?)[0-9.e-]+',
        r"\1DURATION",
    ),
    (r"\bcompiling \S+: \d+ of .* files\n", ""),
    (r"\b(rtscope-scratch|load)-[0-9a-f]{{8}}\b", r"\1-NAME"),
)
"""
All that may vary from run to run: the directory, the time, host time, progress, and
names of temporary files. The day is that of `Clock`.
"""


GROUPS = ("app", "board", "kernel", "history")
MANY = 5

NOT_COMPARED = re.compile(
    r"cache/matplotlib/|linux/\.git/|state/rtscope/installation\.key|out/build\.log"
    r"|history\.db"
)
"""Files of other programs, an index of times of files, and a key drawn at random."""

_PRE = re.compile(r"(<pre>.*?</pre>)", re.DOTALL)
_BLOCK = re.compile(
    r"\s*(</?(?:html|head|meta|title|style|body|header|main|footer|section|div|h[1-6]|p"
    r"|ul|li|dl|dt|dd|table|caption|thead|tbody|tr|th|td|figure|figcaption|details"
    r"|summary)\b[^>]*>|<!doctype html>)\s*"
)
"""Tags beside which a browser shows no white space."""


class Clock(datetime.datetime):
    """A clock that shows a day which no text of rtscope and no input has."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Self:
        """Return the time of day on the day of the net."""
        return super().now(tz).replace(year=2071, month=3, day=4)


@dataclass(slots=True)
class Outcome:
    """What a case gave, normalised."""

    statuses: list[int] = field(default_factory=list)
    out: str = ""
    err: str = ""
    files: dict[str, str] = field(default_factory=dict)
    """What was written, by its path."""
    keys: dict[str, set[str]] = field(default_factory=dict)
    """Paths of keys of JSON: of standard output by the verb, of files by their name."""

    def digests(self) -> dict[str, Any]:
        """Return the case as `digests.toml` has it; what is empty is left out."""
        status = self.statuses[0] if len(self.statuses) == 1 else self.statuses
        texts = {"out": self.out, "err": self.err}
        files = _by_name({name: _sha256(one) for name, one in self.files.items()})
        return {
            "status": status,
            **{name: _sha256(text) for name, text in texts.items() if text},
            **({"files": files} if files else {}),
        }


def _by_name(digests: Mapping[str, str]) -> dict[str, str]:
    """Return the digests; files of one name count as one if they are many."""
    names: dict[str, list[str]] = {}
    for path in sorted(digests):
        names.setdefault(Path(path).name, []).append(path)
    found: dict[str, str] = {}
    for name, paths in sorted(names.items()):
        if len(paths) < MANY:
            found |= {path: digests[path] for path in paths}
        else:
            lines = "".join(f"{path} {digests[path]}\n" for path in paths)
            found[f"{len(paths)} of {name}"] = _sha256(lines)
    return found


def run_case(case: Case) -> Outcome:
    """Type the commands of a case in a new directory."""
    outcome = Outcome()
    # Lines break elsewhere if paths are longer: always the same length.
    with tempfile.TemporaryDirectory(prefix="net-", dir="/tmp") as made:
        place = Path(made).resolve() / "here"
        place.mkdir()
        for one in case.inputs:
            _put_input(ROOT / one, place)
        with _in_place(place, case.columns), _on_the_day(), FAKES[case.fake]():
            before = _contents(place)
            for command in case.commands:
                _run_command(command, outcome, alone=len(case.commands) == 1)
        written = {
            name: content
            for name, content in _contents(place).items()
            if before.get(name) != content
        }
        normalise = _normaliser(place)
    documents = [(verb_of(case.commands[0]), outcome.out)]
    outcome.out, outcome.err = normalise(outcome.out), normalise(outcome.err)
    for name, content in written.items():
        text = _text_of(name, content)
        name = normalise(name)
        outcome.files[name] = normalise(text)
        if name.endswith(".json"):
            documents.append((Path(name).name, text))
    for name, text in documents:
        with contextlib.suppress(ValueError):
            keys = set(_key_paths(json.loads(text)))
            outcome.keys[name] = outcome.keys.get(name, set()) | keys
    return outcome


def verb_of(command: str) -> str:
    """Return the verb of a command, with an option that makes another document."""
    words = command.split()
    verb = words[: 2 if words[:1] and words[0] in GROUPS else 1]
    options = [word for word in words if word in ("--dry-run", "--measured")]
    return " ".join([*verb, *options])


def _run_command(command: str, outcome: Outcome, *, alone: bool) -> None:
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="rtscope")
    main = entry.load()
    out, err = io.StringIO(), io.StringIO()
    status: object = None
    sys.argv = ["rtscope", *shlex.split(command)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = end.code
    assert isinstance(status, int), f"{command}: it ended with {status!r}"
    head = "" if alone else f"$ rtscope {command}\n"
    outcome.statuses.append(status)
    outcome.out += head + out.getvalue()
    outcome.err += (head if err.getvalue() else "") + err.getvalue()


def _key_paths(value: object, path: str = "") -> Iterator[str]:
    """Yield the path of each value: [] is any item of a list, * any key of a table."""
    if isinstance(value, Mapping) and value:
        alike = _alike(list(value.values()))
        for name, inner in value.items():
            key = "*" if alike else name
            yield from _key_paths(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _key_paths(inner, f"{path}[]")
    elif path:
        yield path


def _alike(values: Sequence[object]) -> bool:
    """Whether these are tables with the same keys, as of facts by their names."""
    keys = {tuple(sorted(one)) for one in values if isinstance(one, Mapping)}
    tables = all(isinstance(one, Mapping) for one in values)
    return len(values) >= MANY and tables and len(keys) == 1


@contextlib.contextmanager
def _in_place(place: Path, columns: int) -> Iterator[None]:
    """Work in a directory, and put all that a command changes of the process back."""
    names = ("argv", "stdin")
    kept = {name: getattr(sys, name) for name in names}
    environment, directory = dict(os.environ), Path.cwd()
    ending = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    handlers = {number: signal.getsignal(number) for number in ending}
    os.environ.clear()
    os.environ.update(ENVIRONMENT | {"COLUMNS": str(columns), "HOME": str(place)})
    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    os.environ["XDG_STATE_HOME"] = str(place / "state")
    os.chdir(place)
    sys.stdin = io.StringIO()
    try:
        yield
    finally:
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for name, value in kept.items():
            setattr(sys, name, value)


@contextlib.contextmanager
def _on_the_day() -> Iterator[None]:
    """Let rtscope read `Clock`, also modules that are first imported meanwhile."""
    real = datetime.datetime
    _set_clock(real, Clock)
    try:
        yield
    finally:
        _set_clock(Clock, real)


def _set_clock(old: type, new: type) -> None:
    for name, module in [("datetime", datetime), *sys.modules.items()]:
        own = name == "datetime" or name.partition(".")[0] == "rtscope"
        if own and getattr(module, "datetime", None) is old:
            setattr(module, "datetime", new)  # noqa: B010


def _put_input(source: Path, place: Path) -> None:
    if source.name.endswith(".tar.gz"):
        with tarfile.open(source) as archive:
            # Python 3.11.2, of Debian 12, has no filters yet.
            archive.extraction_filter = getattr(
                tarfile, "data_filter", lambda member, path: member
            )
            archive.extractall(place)
    elif source.is_dir():
        shutil.copytree(source, place / source.name)
    else:
        shutil.copy(source, place)


def _contents(place: Path) -> dict[str, bytes]:
    files = sorted(path for path in place.rglob("*") if path.is_file())
    named = {str(path.relative_to(place)): path.read_bytes() for path in files}
    return {n: text for n, text in named.items() if not NOT_COMPARED.match(n)}


def _text_of(name: str, content: bytes) -> str:
    """Return a file as text; an archive as its members, each with its digest."""
    if name.endswith((".tar.gz", ".tgz")):
        return "".join(_members(content))
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    try:
        text = content.decode()
        return as_shown(text) if name.endswith(".html") else text
    except UnicodeDecodeError:
        return f"{len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}\n"


def as_shown(page: str) -> str:
    """Return a page without the white space that no browser shows: a line a tag."""
    parts = _PRE.split(page)
    for number in range(0, len(parts), 2):
        spaced = re.sub(r"\s+", " ", parts[number])
        parts[number] = re.sub(r"\n+", "\n", _BLOCK.sub(r"\n\1\n", spaced))
    return "".join(parts).strip()


def _members(content: bytes) -> Iterator[str]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            file = archive.extractfile(member)
            text = _text_of(member.name, file.read()) if file is not None else ""
            yield f"{member.mode:o} {member.name} {_sha256(text)}\n"


def _normaliser(place: Path) -> Any:
    path = re.escape(str(place))
    rules = [(re.compile(old.format(place=path)), new) for old, new in NORMALISED]

    def normalise(text: str) -> str:
        for old, new in rules:
            text = old.sub(new, text)
        return text

    return normalise


def _sha256(text: str) -> str:
    """Return the first half of the digest, which is enough to see a change."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
