"""
Where systemd finds the files of a unit: its search paths, templates and drop-ins.

A unit that is given as a path is read from there, with the drop-ins that lie beside it:
it need not be installed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files.plaintext import plain_bytes
from rtscope.machine.audit.unit import SECTIONS, Unit, merge
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import Content, Denied, Reader, text_of

SEARCH_PATH = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
"""Of the system's manager, the directory that counts more first (table 1)."""

USER_PATH = (
    "/etc/systemd/user",
    "/run/systemd/user",
    "/usr/local/share/systemd/user",
    "/usr/share/systemd/user",
    "/usr/local/lib/systemd/user",
    "/usr/lib/systemd/user",
)
"""Of a user's manager, behind that user's own (table 2)."""
USERS_OWN = (
    ".config/systemd/user.control",
    ".config/systemd/user",
    ".local/share/systemd/user",
)
_USERS_PLACES = ("/systemd/user", "/systemd/user.control")

CGROUPS = "/proc/[0-9]*/cgroup"


def load_unit(
    unit: str, reader: Reader, *, of_user: bool = False, home: str | None = None
) -> Unit:
    """
    Return a unit by its name on a machine, or by its path on this one.

    `of_user`: of a user's manager, which looks in that user's `home` too. UsageError if
    there is none, if it is masked, or if it starts no process.
    """
    path = Path(unit)
    if "/" in unit or (path.exists() and not path.is_dir()):
        place = str(path.absolute().parent)
        users = of_user or place.endswith(_USERS_PLACES)
        found = _load(path.name, (place,), FileReader())
        return replace(found, of_user=users)
    name = unit if "." in unit else f"{unit}.service"
    places: tuple[str, ...] = SEARCH_PATH
    if of_user:
        places = (*(f"{home}/{own}" for own in USERS_OWN if home), *USER_PATH)
    return replace(_load(name, places, reader), installed=True, of_user=of_user)


def processes_of(unit: Unit, reader: Reader) -> frozenset[int]:
    """Return the processes in the unit's control group, or in one below it."""
    files = reader.read_many([CGROUPS])
    return frozenset(
        int(path.split("/")[2])
        for path, content in files.items()
        for line in (text_of(content) or "").splitlines()
        if unit.name in line.split("/")
    )


def _load(name: str, path: tuple[str, ...], reader: Reader) -> Unit:
    kind = name.rpartition(".")[2]
    if kind == "conf":
        raise UsageError(
            f"--unit {name}: no unit; limits.conf and limits.d are checked by "
            "`rtscope audit`, or in DIR/etc/security by `rtscope audit --root DIR`"
        )
    if kind not in SECTIONS:
        raise UsageError(
            f"--unit {name}: units that start processes end in .{', .'.join(SECTIONS)}"
        )
    names = [name, *([template] if (template := _template(name)) else [])]
    wanted = [f"{place}/{one}" for one in names for place in path]
    dirs = _dropin_dirs(names, path, kind)
    files = reader.read_many([*wanted, *(f"{place}/*.conf" for place in dirs)])
    main = next((p for p in wanted if isinstance(files.get(p), bytes | Denied)), None)
    if main is None:
        where = path[0] if len(path) == 1 else "systemd's search path"
        raise UsageError(f"--unit {name}: no such unit in {where}")
    return merge(name, {main: _text(name, main, files[main]), **_dropins(dirs, files)})


def _text(name: str, path: str, content: Content) -> str:
    if isinstance(content, Denied):
        raise UsageError(
            f"--unit {name}: {path} cannot be read ({content.reason}); a link to "
            "/dev/null masks a unit"
        )
    assert isinstance(content, bytes)
    if not content:
        raise UsageError(f"--unit {name}: {path} is empty: the unit is masked")
    return _plain(content, path)


def _plain(content: bytes, path: str) -> str:
    try:
        plain = plain_bytes(content, name=path)
    except RecordError as error:
        raise UsageError(str(error)) from error
    return plain.content.decode("utf-8", "replace")


def _template(name: str) -> str | None:
    """Return the template of an instance: getty@tty3.service is of getty@.service."""
    stem, at, rest = name.partition("@")
    instance, _, kind = rest.rpartition(".")
    return f"{stem}@.{kind}" if at and instance else None


def _dropin_dirs(names: list[str], path: tuple[str, ...], kind: str) -> list[str]:
    """Return the directories of drop-ins: of files with one name the first counts."""
    dirs = [
        f"{place}/{one}.d"
        for place in path
        for name in names
        for one in (name, *_prefixes(name))
    ]
    return list(dict.fromkeys([*dirs, *(f"{place}/{kind}.d" for place in path)]))


def _prefixes(name: str) -> Iterator[str]:
    """Yield foo-bar-.service and foo-.service for foo-bar-baz.service."""
    stem, _, kind = name.rpartition(".")
    stem = stem.partition("@")[0]
    for end in range(len(stem) - 1, 0, -1):
        if stem[end - 1] == "-":
            yield f"{stem[:end]}.{kind}"


def _dropins(dirs: list[str], files: Mapping[str, Content]) -> dict[str, str]:
    """Return the texts of the drop-ins that count, in the order of their names."""
    chosen: dict[str, str] = {}
    for place in dirs:
        for path in sorted(files):
            directory, _, file = path.rpartition("/")
            if directory == place and file.endswith(".conf") and "*" not in file:
                chosen.setdefault(file, path)
    contents = {path: files[path] for _, path in sorted(chosen.items())}
    return {
        path: _plain(content, path)
        for path, content in contents.items()
        # A drop-in is masked as a unit is, and may then not be read.
        if isinstance(content, bytes)
    }
