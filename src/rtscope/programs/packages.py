"""Which debug package names the functions of a file: of Debian and its descendants."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rtscope.host.errors import TargetError
from rtscope.host.process import run

_DATABASE = Path("/var/lib/dpkg/info")
_TIMEOUT_S = 20.0
_MAX_FILES = 32
_NAMED_OTHERWISE = {"libc6": "libc6-dbg", "libc6-i386": "libc6-dbg"}


def packages_of(paths: Sequence[str]) -> Mapping[str, str]:
    """Return the debug packages of files of this machine, as far as known."""
    if not _DATABASE.is_dir():
        return {}
    asked = [spelling for path in paths[:_MAX_FILES] for spelling in _spellings(path)]
    if not asked:
        return {}
    owners: dict[str, str] = {}
    with suppress(TargetError):
        done = run(["dpkg-query", "-S", "--", *asked], timeout_s=_TIMEOUT_S)
        owners = owners_in(done.stdout.decode("utf-8", "replace"))
    return {
        path: debug_package(owners[spelling])
        for path in paths
        for spelling in _spellings(path)
        if spelling in owners
    }


def owners_in(text: str) -> dict[str, str]:
    """Return packages by paths, from the output of dpkg-query --search."""
    owners: dict[str, str] = {}
    for line in text.splitlines():
        packages, mark, path = line.partition(": ")
        if mark and not packages.startswith("diversion "):
            owners[path] = packages.partition(",")[0].partition(":")[0]
    return owners


def debug_package(package: str) -> str:
    """Return the package with the debug information of another."""
    return _NAMED_OTHERWISE.get(package, f"{package}-dbgsym")


def _spellings(path: str) -> tuple[str, ...]:
    """Return how a package may call it: /usr/lib is /lib to those from before 2020."""
    if not path.startswith("/") or any(letter in path for letter in "*?[\\"):
        return ()
    if path.startswith("/usr/"):
        return path, path.removeprefix("/usr")
    return path, f"/usr{path}"
