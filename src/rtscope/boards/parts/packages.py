"""
Packages of a distribution as exact inputs: which, and the SHA-256 of each.

A lock file keeps, for every part of a board, the packages that it was made of, so that
another machine makes it of the very same ones.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from rtscope.host.errors import UsageError
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
