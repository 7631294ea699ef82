"""`rtscope history schedule`: a measurement every night, by a timer of systemd."""

import os
import pwd
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
import typer.core
from typer.main import get_command

from rtscope.cli.app import make_app
from rtscope.cli.console import Json, own_command, put, put_json, say
from rtscope.host.errors import UsageError, quote
from rtscope.host.escape import printable
from rtscope.host.files import write_atomically
from rtscope.host.files.systemdunit import unit_argument, unit_command, unit_directory
from rtscope.host.units import NS_PER_S, parse_duration, parse_size
from rtscope.record.directory.place import make_directory
from rtscope.verbs.history import database
from rtscope.verbs.history.thin import MOST

WORSE = 1
"""The exit status of `history check` that is an alarm."""
NOT_COMPARED = 4

MAX_JITTER_S = 12 * 3600
MAX_WORDS = 1000

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,30}")
_MADE = "# Made by rtscope history schedule."
"""The first line of each unit: no other file is replaced."""

_OWN = re.compile(r"(--(out|resume|json|help)(=.*)?$)|-[oh]", re.DOTALL)
"""Options that a night has already, or cannot have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRequest:
    """The arguments and options of `rtscope history schedule`."""

    directory: Annotated[Path, typer.Argument(metavar="DIR")]
    """Folder of the nights, with their index history.db, e.g. nights."""
    words: Annotated[list[str] | None, typer.Argument(metavar="OPTIONS")] = None
    """Options of rtscope run, after --, e.g. -- --lab lab.toml -l idle,memory."""
    at: str = "02:00"
    """Time of day when a night begins (default: 02:00), e.g. 23:30."""
    jitter: str = "30m"
    """
    Longest random delay, so that boards of several timers do not begin at once
    (default: 30m), e.g. 10m.
    """
    name: str = "rtscope-nights"
    """Name of the units (default: rtscope-nights), e.g. rack-2."""
    keep_nights: Annotated[int, typer.Option(min=1, max=MOST)] = 30
    """Newest nights that keep all files (default: 30), e.g. 60."""
    keep_worst: Annotated[int, typer.Option(min=0, max=MOST)] = 5
    """Worst older runs of each series that keep all files (default: 5), e.g. 10."""
    budget: str | None = None
    """
    Size that recordings, traces and samples may take in all (default: none), e.g. 20G.
    """
    on_alarm: str | None = None
    """
    Command that is started when a series is worse (default: none), e.g. 'mail -s worse
    lab@example.org'.
    """
    user: bool = False
    """Units of your own systemd, for systemctl --user."""
    out: Path | None = None
    """Directory of the units (default: printed), e.g. /etc/systemd/system."""
    json: Json = False


def schedule(request: ScheduleRequest) -> int:
    """
    Write a timer and services of systemd that measure every night.

    Each night is measured into a new result directory, then indexed, thinned and
    checked. The services run as you, in the current directory. A check that finds a
    series worse (exit status 1) starts the command of --on-alarm and fails its service;
    a night that cannot be compared yet does not.
    """
    files = units_of(request)
    if request.json:
        put_json({"units": files, "enable": _enable(request)})
    elif request.out is None:
        for name, text in files.items():
            put(f"# --- {name}\n{text}\n")
    if request.out is not None:
        make_directory(request.out)
        for name in files:
            _refuse_foreign(request.out / name)
        for name, text in reversed([*files.items()]):  # the timer, when it has its work
            write_atomically(request.out / name, text.encode())
        say(f"wrote {', '.join(files)} into {request.out}")
    if not request.json:
        say(f"try a night first: {shlex.join(['rtscope', 'run', *_words(request)])}")
        say(f"then type: {' && '.join(_enable(request))}")
    return 0


def _refuse_foreign(path: Path) -> None:
    """Raise UsageError for a file that is there, and is no unit of ours."""
    if not path.exists() and not path.is_symlink():
        return
    if path.is_symlink() or not path.is_file() or not _is_ours(path):
        raise UsageError(
            f"{path}: another file, which is left as it is; choose another --name"
        )


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.readline(200).strip() == _MADE.encode()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def units_of(request: ScheduleRequest) -> Mapping[str, str]:
    """Return the text of each unit by its file's name; UsageError for a mistake."""
    name = request.name
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--name {quote(name)}: write small letters, digits, - and _, 64 at most"
        )
    if not _TIME.fullmatch(request.at):
        raise UsageError(f"--at {quote(request.at)}: write a time of day, e.g. 02:00")
    jitter_s = _jitter_s(request.jitter)
    if jitter_s > MAX_JITTER_S:
        raise UsageError(f"--jitter {quote(request.jitter)}: write 12h or less")
    return {
        f"{name}.timer": "\n".join(_timer(request, jitter_s)),
        f"{name}.service": "\n".join(_measuring(request)),
        f"{name}-check.service": "\n".join(_checking(request)),
    }


def _jitter_s(text: str) -> int:
    """Return whole seconds, rounded up: a short delay is none no more than 0 is one."""
    return 0 if text in ("0", "0s") else -(-parse_duration(text) // NS_PER_S)


def _timer(request: ScheduleRequest, jitter_s: int) -> Iterator[str]:
    yield _MADE
    yield "[Unit]"
    yield f"Description=Nights of {_described(request)}"
    yield ""
    yield "[Timer]"
    yield f"OnCalendar=*-*-* {request.at}:00"
    yield f"RandomizedDelaySec={jitter_s}"
    yield "AccuracySec=1"
    yield "# The check starts the measurement, and waits for its end."
    yield f"Unit={request.name}-check.service"
    yield ""
    yield "[Install]"
    yield "WantedBy=timers.target"
    yield ""


def _measuring(request: ScheduleRequest) -> Iterator[str]:
    yield _MADE
    yield "[Unit]"
    yield f"Description=A night of {_described(request)}"
    if not request.user:  # the user's own systemd has no such target
        yield "Wants=network-online.target"
        yield "After=network-online.target"
    yield ""
    yield "[Service]"
    yield "Type=oneshot"
    yield from _surroundings(request)
    yield "# A night is a new directory, by its date."
    yield f"ExecStart={_run(request)}"
    yield "# rtscope itself ends what it started, and puts settings back."
    yield "KillMode=mixed"
    yield "TimeoutStopSec=180"
    yield ""


def _run(request: ScheduleRequest) -> str:
    """Write the command of a night; a shell makes the name of its directory."""
    own = (*own_command(), "run")
    names = [f"a{number}" for number in range(len(own))]
    taken = " ".join(f"{name}=${{{at}}}" for at, name in enumerate(names, start=2))
    command = " ".join(f'"${name}"' for name in names)
    script = (
        f"d=$1 {taken}; shift {1 + len(own)}; "
        f'exec {command} --out "$d/$(date +%F-%H%M%S)" "$@"'
    )
    words = ["rtscope", str(_place(request)), *own, *_words(request)]
    return " ".join(map(unit_argument, ["/bin/sh", "-c", script, *words]))


def _words(request: ScheduleRequest) -> Sequence[str]:
    """Return the options of a night; UsageError for what no night can have."""
    words = request.words or []
    if len(words) > MAX_WORDS:
        raise UsageError(f"{len(words):,} words after --: write {MAX_WORDS:,} at most")
    for word in words:
        if _OWN.match(word):
            raise UsageError(f"{quote(word)} after --: leave it out of a night")
    _refuse_unknown(words)
    return words


def _refuse_unknown(words: Sequence[str]) -> None:
    """Refuse options that `rtscope run` has not, as it does; what only prints, too."""
    verbs = get_command(make_app(("run",)))
    assert isinstance(verbs, typer.core.TyperGroup)
    parsed = verbs.commands["run"].make_context("rtscope run", list(words))
    if parsed.params.get("event") == "list":
        raise UsageError("--event list after --: it measures nothing; name an event")


def _checking(request: ScheduleRequest) -> Iterator[str]:
    place = str(_place(request))
    own = (*own_command(), "history")
    index = ("--index", f"{place}/{database.NAME}")
    thin = [*own, "thin", place, "--keep-nights", f"{request.keep_nights}"]
    thin += ["--keep-worst", f"{request.keep_worst}"]
    if request.budget is not None:
        parse_size(request.budget)
        thin += ["--budget", request.budget]
    yield _MADE
    yield "[Unit]"
    yield f"Description=Whether {_described(request)} got worse"
    yield "# It follows the measurement, also where a board of that failed."
    yield f"Wants={request.name}.service"
    yield f"After={request.name}.service"
    yield ""
    yield "[Service]"
    yield "Type=oneshot"
    yield from _surroundings(request)
    yield f"ExecStart={unit_command([*own, 'index', place, *index])}"
    yield f"ExecStart=-{unit_command(thin)}"
    yield f"ExecStart={unit_command([*own, 'check', *index])}"
    yield f"# {NOT_COMPARED}: not compared, as in the first nights."
    yield f"SuccessExitStatus={NOT_COMPARED}"
    if request.on_alarm is not None:
        yield f"# {WORSE}: a series is worse."
        yield f"ExecStopPost={_hook(request.on_alarm)}"
    yield ""


def _hook(text: str) -> str:
    """Write what starts a command after an alarm alone."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--on-alarm {quote(text)}: {error}".lower()) from error
    if not words or len(words) > MAX_WORDS:
        raise UsageError("--on-alarm: write a command such as 'mail -s worse lab@host'")
    script = f'[ "$EXIT_STATUS" != {WORSE} ] || exec "$@"'
    return " ".join(map(unit_argument, ["/bin/sh", "-c", script, "alarm", *words]))


def _surroundings(request: ScheduleRequest) -> Iterator[str]:
    here = str(Path.cwd())
    directory = unit_directory(here)
    if directory is None:
        raise UsageError(f"{here}: no unit can name this directory; use another one")
    yield f"WorkingDirectory={directory}"
    if not request.user and os.getuid() != 0:
        yield f"User={_own_name()}"


def _own_name() -> str:
    """Return the name of this user where every systemd takes it, else the number."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"{os.getuid()}"
    return name if _USER.fullmatch(name) else f"{os.getuid()}"


def _place(request: ScheduleRequest) -> Path:
    return request.directory.absolute()


def _described(request: ScheduleRequest) -> str:
    words = printable(str(_place(request)), limit=200).rstrip("\\")
    return words.replace("%", "%%")


def _enable(request: ScheduleRequest) -> Sequence[str]:
    """Return the commands that put the units to work."""
    control = "systemctl --user" if request.user else "sudo systemctl"
    timer = f"{request.name}.timer"
    return [f"{control} daemon-reload", f"{control} enable --now {timer}"]
