"""
Packages of Debian: exact inputs, fetched and unpacked without root.

A lock file keeps, for every part of a board, the packages that it was made of and the
SHA-256 of each, so that another machine makes it of the same ones. apt gets a
directory of its own (sources, lists, an empty list of installed packages), leaves the
system's alone, and resolves and fetches there, with the signature and hash checks it
always makes. Packages are unpacked as archives; none of their scripts or programs runs.
"""

import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from rtscope.boards.parts.cache import NoSpaceError
from rtscope.host import process
from rtscope.host.errors import BoardError, TargetError, UsageError
from rtscope.host.files import first_mistake
from rtscope.host.files.opening import read_named

SCHEMA = 1

MAX_PACKAGE_BYTES = 1 << 30
MAX_LOCK_BYTES = 8 << 20

SOURCE_ARCHES = ("source-orig", "source-debian")
"""What stands for the architecture of the two files of a source package."""

_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, config=_STRICT)
class Package:
    """One binary package, exactly."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]{0,127}$")]
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9.+:~-]{1,128}$")]
    arch: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
    url: Annotated[str, Field(pattern=r"^https?://[!-~]{1,500}$")]
    size_bytes: Annotated[int, Field(gt=0, le=MAX_PACKAGE_BYTES)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True, config=_STRICT)
class Lock:
    """The packages of each part, by the part's name."""

    schema: Annotated[int, Field(ge=1, le=SCHEMA)]
    parts: Mapping[str, tuple[Package, ...]]

    def with_part(self, name: str, packages: Sequence[Package]) -> "Lock":
        """Return the lock with one part added or replaced."""
        return Lock(self.schema, {**self.parts, name: tuple(packages)})


NO_LOCK = Lock(SCHEMA, {})

_LOCK = TypeAdapter(Lock)


def read_lock(path: Path) -> Lock:
    """Read a lock file; UsageError names the mistake."""
    text = read_named(path, limit=MAX_LOCK_BYTES, kind="lock file", error=UsageError)
    try:
        lock = _LOCK.validate_json(text)
    except ValidationError as error:
        raise UsageError(f"{path}: {first_mistake(error)}") from error
    for packages in lock.parts.values():
        for package in packages:
            if not _is_of(package):
                raise UsageError(
                    f"{path}: {package.name} {package.version} for {package.arch}: "
                    f"its url is another package's: {package.url}"
                )
    return lock


def _is_of(package: Package) -> bool:
    """Whether the address ends in the package's file; an epoch is not part of that."""
    version = package.version.split(":", 1)[-1]
    file = unquote(package.url.rsplit("/", 1)[-1])
    if package.arch in SOURCE_ARCHES:
        # The first file is of all packages that the distribution made of a release.
        upstream = version.rpartition("-")[0] or version
        kind = package.arch.removeprefix("source-")
        stem = f"{package.name}_{upstream if kind == 'orig' else version}.{kind}.tar."
        return file.startswith(stem)
    return file == f"{package.name}_{version}_{package.arch}.deb"


def lock_text(lock: Lock) -> str:
    """Write a lock file: sorted, one package to a line, so that a diff can be read."""
    parts = []
    for name, packages in sorted(lock.parts.items()):
        rows = [json.dumps(asdict(p)) for p in sorted(packages, key=lambda p: p.name)]
        body = ",\n".join(f"      {row}" for row in rows)
        parts.append(f"    {json.dumps(name)}: [\n{body}\n    ]")
    inside = ",\n".join(parts)
    return f'{{\n  "schema": {lock.schema},\n  "parts": {{\n{inside}\n  }}\n}}\n'


def as_rows(packages: Sequence[Package]) -> list[dict[str, Any]]:
    """Return packages for a manifest or a key: sorted, plain values."""
    return [asdict(p) for p in sorted(packages, key=lambda p: (p.name, p.arch))]


# --- apt with a directory of its own ------------------------------------------------

SUITE = "trixie"
MIRROR = "http://deb.debian.org/debian"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
HELPER = "/usr/lib/apt/apt-helper"

MAX_NAMED = 8

APT_LOG = "apt.log"
"""What apt said of its last download, in the cache."""

UPDATE_PATIENCE_S = 600.0
FETCH_PATIENCE_S = 3600.0
UNPACK_PATIENCE_S = 600.0

# What `apt-get --print-uris` writes: 'URL' FILE SIZE SHA256:DIGEST
_PRINTED = re.compile(r"'([^']+)' (\S+) ([0-9]+) SHA256:([0-9a-f]{64})")
# A package's file: NAME_VERSION_ARCH.deb, with the colon of an epoch as %3a.
_FILE = re.compile(r"([^_/]+)_([^_/]+)_([^_/]+)\.deb")

# Of a source package: NAME_VERSION.orig.tar.xz and NAME_VERSION.debian.tar.xz.
_SOURCE_FILE = re.compile(r"([^_/]+)_[^_/]+\.(orig|debian)\.tar\.[a-z0-9]+")


def check_programs() -> None:
    """Raise BoardError if this machine lacks what fetches and unpacks packages."""
    for program in ("apt-get", "apt-config", HELPER, "dpkg-deb"):
        if shutil.which(program) is None:
            raise BoardError(
                f"{program}: not installed on this machine; install it: on Debian and "
                "Ubuntu it is part of apt or dpkg; elsewhere, import a bundle from "
                "another computer (rtscope board import FILE)"
            )
    if not KEYRING.exists():
        raise BoardError(
            f"{KEYRING}: missing, and Debian's archive cannot be verified without it; "
            "install it: apt install debian-archive-keyring"
        )


def resolve(
    names: Sequence[str],
    *,
    arch: str,
    root: Path,
    dependencies: bool,
    suite: str = SUITE,
) -> tuple[Package, ...]:
    """
    Return the newest packages of these names, and what they depend on if asked.

    A name may be a pattern (regular expression) of which the newest match is meant.
    `arch` is Debian's name. Raises BoardError if the archive does not answer, cannot be
    verified, or has no such package.
    """
    config = _prepare(root, arch, suite=suite)
    exact = [_newest(config, name, suite=suite) for name in names]
    verb = ("install", "-y") if dependencies else ("download",)
    try:
        printed = _apt(config, "apt-get", *verb, "--print-uris", "-qq", *exact)
    except NoSpaceError:
        raise
    except BoardError as error:
        lacking = re.findall(r"Unable to locate package (\S+)", str(error))
        if not lacking:
            raise
        raise BoardError(
            f"Debian ({suite}, {arch}) has no package {', '.join(lacking)}: look "
            "for its name with apt-cache search"
        ) from error
    packages = parse_printed(printed)
    if not packages:
        raise BoardError(f"apt named no packages for {', '.join(exact)}")
    return packages


def resolve_source(
    name: str, version: str, *, suite: str, root: Path
) -> tuple[Package, ...]:
    """
    Return the files of a source package in exactly this version.

    Their architectures are `source-orig` and `source-debian`. Raises BoardError as
    `resolve` does; that names the versions that the archive has.
    """
    config = _prepare(root, "amd64", suite=suite, kind="deb-src")
    argv = ("apt-get", "source", "--download-only", "--print-uris", "-qq")
    try:
        printed = _apt(config, *argv, f"{name}={version}")
    except NoSpaceError:
        raise
    except BoardError as error:
        listing = _apt(config, "apt-cache", "showsrc", name)
        there = ", ".join(re.findall(r"^Version: (.*)$", listing, re.M))
        raise BoardError(
            f"{suite} has no source package {name} {version} (it has {there or 'none'})"
            ": a distribution keeps only its newest packages. Write one of these "
            "versions into the recipe, or run from a bundle with this kernel: "
            "rtscope run --bundle FILE"
        ) from error
    return parse_printed(printed, source_version=version)


def parse_printed(
    text: str, *, source_version: str | None = None
) -> tuple[Package, ...]:
    """
    Read what `apt-get --print-uris` writes; BoardError for any other line.

    With a version it is about a source package, of which the archives are returned.
    """
    packages = []
    for line in text.splitlines():
        printed = _PRINTED.fullmatch(line.strip())
        if printed and source_version:
            if source := _SOURCE_FILE.fullmatch(printed[2]):
                packages.append(
                    Package(
                        name=source[1],
                        version=source_version,
                        arch=f"source-{source[2]}",
                        url=printed[1],
                        size_bytes=int(printed[3]),
                        sha256=printed[4],
                    )
                )
            continue
        file = _FILE.fullmatch(printed[2]) if printed else None
        if printed is None or file is None:
            raise BoardError(f"unexpected output of apt: {line[:200]!r}")
        packages.append(
            Package(
                name=file[1],
                version=unquote(file[2]),
                arch=file[3],
                url=printed[1],
                size_bytes=int(printed[3]),
                sha256=printed[4],
            )
        )
    return tuple(sorted(packages, key=lambda p: p.name))


def _ignored(_step: process.Step) -> None:
    pass


def fetch(
    packages: Sequence[Package],
    downloads: Path,
    *,
    log: Callable[[str], None],
    progress: process.Progress = _ignored,
) -> list[Path]:
    """
    Fetch packages that are not there yet; return their files, in the same order.

    A file is called by its digest and appears only when that is right. Raises
    BoardError if the archive no longer has one.
    """
    downloads.mkdir(parents=True, exist_ok=True)
    files = [downloads / f"{package.sha256}.deb" for package in packages]
    missing = [
        (package, file)
        for package, file in zip(packages, files, strict=True)
        if not file.exists()
    ]
    if missing:
        total = sum(package.size_bytes for package, _ in missing)
        log(f"fetching {len(missing)} packages, {total / 1e6:.0f} MB")
        _fetch_all(missing, progress)
    return files


def unpack(file: Path, into: Path) -> None:
    """Unpack a package's files below a directory; none of its scripts runs."""
    into.mkdir(parents=True, exist_ok=True)
    argv = ["dpkg-deb", "--extract", str(file), str(into)]
    _run(argv, patience_s=UNPACK_PATIENCE_S)


def fetch_file(
    url: str, sha256: str, downloads: Path, *, progress: process.Progress = _ignored
) -> Path:
    """Fetch one file whose digest is known, if it is not there; return where it is."""
    downloads.mkdir(parents=True, exist_ok=True)
    file = downloads / f"{sha256}.tar"
    if not file.exists():
        part = file.with_suffix(".part")
        part.unlink(missing_ok=True)
        argv = [HELPER, "download-file", url, str(part), f"SHA256:{sha256}"]
        try:
            _download(argv, [part], 0, progress)
        except NoSpaceError:
            part.unlink(missing_ok=True)
            raise
        except BoardError as error:
            part.unlink(missing_ok=True)
            # apt prints warnings and its command line before the error.
            said = re.search(r"E: Failed to fetch \S+ +(.*?)(?: E: |$)", str(error))
            why = said[1] if said else error
            raise BoardError(f"cannot fetch {url}: {why}") from error
        part.replace(file)
    return file


def _fetch_all(
    wanted: Sequence[tuple[Package, Path]], progress: process.Progress
) -> None:
    argv, parts = [HELPER, "download-file"], []
    for package, file in wanted:
        part = file.with_suffix(".part")
        part.unlink(missing_ok=True)
        parts.append(part)
        argv += [package.url, str(part), f"SHA256:{package.sha256}"]
    total = sum(package.size_bytes for package, _ in wanted)
    try:
        _download(argv, parts, total, progress)
    except BoardError as error:
        for _, file in wanted:
            file.with_suffix(".part").unlink(missing_ok=True)
        # "E: Failed to fetch URL  404  Not Found [IP: ...]"
        gone = [p for p, _ in wanted if f"{p.url} 404" in str(error)]
        if not gone:
            raise
        raise BoardError(
            f"the archive no longer has {gone[0].name} {gone[0].version} for "
            f"{gone[0].arch}: a distribution keeps only its newest packages. Run from "
            "a bundle with it (rtscope run --bundle FILE), or build from the newest "
            "packages with --upgrade and without --lockfile"
        ) from error
    for _, file in wanted:
        file.with_suffix(".part").replace(file)


def _download(
    argv: Sequence[str], parts: Sequence[Path], total: int, progress: process.Progress
) -> None:
    """Let apt download these files; its own talk goes to a log beside them."""
    log = parts[0].parent.with_name(APT_LOG)

    def watch() -> None:
        there = sum(part.stat().st_size for part in parts if part.exists())
        progress(process.Step("downloading", there, total, unit="bytes"))

    try:
        status = process.run_watched(
            argv, timeout_s=FETCH_PATIENCE_S, log=log, watch=watch
        )
    except TargetError as error:
        raise BoardError(f"{error} (Debian, Ubuntu: it is part of apt)") from error
    _check(argv, status, log.read_text("utf-8", "replace"), of=f" (apt's log: {log})")
    progress(process.Step("downloading", total, total, unit="bytes"))


def _prepare(root: Path, arch: str, *, suite: str, kind: str = "deb") -> Path:
    """Make apt's own directory and fetch its lists; return its configuration file."""
    check_programs()
    for folder in ("state/lists/partial", "cache/archives/partial", "etc"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
    source = f"{kind} [signed-by={KEYRING}] {MIRROR} {suite} main\n"
    (root / "etc" / "sources.list").write_text(source)
    config = root / "apt.conf"
    ours = (
        resources.files("rtscope.boards.parts").joinpath("apt.conf").read_text("utf-8")
    )
    config.write_text(ours.format(root=root, arch=arch, proxy=_system_proxy()))
    _update(config)
    return config


def _system_proxy() -> str:
    """Return the system's proxy settings, all that we need of its configuration."""
    dump = _run(["apt-config", "dump", "Acquire::http"], patience_s=UNPACK_PATIENCE_S)
    return "\n".join(line for line in dump.splitlines() if "::Proxy" in line)


def _update(config: Path) -> None:
    """Fetch the lists; apt by itself only warns if the archive does not answer."""
    try:
        _apt(config, "apt-get", "update", "-qq", patience_s=UPDATE_PATIENCE_S)
    except NoSpaceError:
        raise
    except BoardError as error:
        raise BoardError(
            f"cannot fetch the package lists of {MIRROR}: {error}; {_advice(error)}, "
            "or import a bundle from another computer (rtscope board import FILE)"
        ) from error


def _advice(error: BoardError) -> str:
    if "Mirror sync in progress" in str(error):
        return (
            "its lists do not fit each other while it is being updated: try again "
            "later, or name a lock file (rtscope board build --lockfile FILE)"
        )
    return "check the network and the proxy"


def _newest(config: Path, pattern: str, *, suite: str) -> str:
    if re.fullmatch(r"[a-z0-9+.-]+", pattern):
        return pattern
    prefix = re.split(r"[^a-z0-9-]", pattern)[0]
    names = _apt(config, "apt-cache", "pkgnames", prefix).split()
    matches = [name for name in names if re.fullmatch(pattern, name)]
    if not matches:
        stem = prefix.rstrip("0123456789")
        like = _apt(config, "apt-cache", "pkgnames", stem).split() if stem else []
        alike = [name for name in like if name[len(stem) :][:1].isdigit()]
        there = ", ".join(sorted(alike, key=_numbers)[-MAX_NAMED:])
        raise BoardError(
            f"{suite} has no package like {pattern} (it has {there or 'none'}): a "
            "distribution keeps only its newest packages. Name one of these, or run "
            "from a bundle with the package: rtscope run --bundle FILE"
        )
    return max(matches, key=_numbers)


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]+", name))


def _apt(config: Path, *argv: str, patience_s: float = UNPACK_PATIENCE_S) -> str:
    prefix = ("env", f"APT_CONFIG={config}", "LC_ALL=C")
    return _run([*prefix, *argv], patience_s=patience_s)


def _run(argv: Sequence[str], *, patience_s: float) -> str:
    try:
        done = process.run(argv, timeout_s=patience_s)
    except TargetError as error:
        raise BoardError(f"{error} (Debian, Ubuntu: it is part of apt)") from error
    _check(argv, done.status, done.stderr)
    return done.stdout.decode("utf-8", "replace")


def _check(argv: Sequence[str], status: int, said: str, *, of: str = "") -> None:
    if status != 0 and os.strerror(errno.ENOSPC) in said:
        raise NoSpaceError(f"no space left for {argv[0]}")  # all of it is in the cache
    if status != 0:
        words = " ".join(said.split())[-600:]
        raise BoardError(f"{' '.join(argv)[:160]}: {words or status}{of}")
