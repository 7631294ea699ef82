"""
Find and parse the configuration that a kernel was built with.

Where it may lie, in the order of trust: in the running kernel itself, then where
distributions install it beside the kernel of that release.
"""

import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from rtscope.errors import TargetError
from rtscope.machine.reader import Content, Missing, Reader

RUNNING_CONFIG = "/proc/config.gz"
"""The only source that cannot belong to another build (CONFIG_IKCONFIG_PROC)."""

MAX_CONFIG_BYTES = 16 * 1024 * 1024
"""A configuration has some 300 KB; more would be a decompression bomb."""

_SET = re.compile(r'^(CONFIG_\w+)=(?:"(.*)"|(.*?))\s*$', re.MULTILINE)
_NOT_SET = re.compile(r"^# (CONFIG_\w+) is not set\s*$", re.MULTILINE)
# scripts/kconfig writes it above every configuration.
_HEAD = re.compile(r"^# Automatically generated .*DO NOT EDIT", re.MULTILINE)
_OF_RELEASE = re.compile(r"^# Linux/\S+ (\S+) Kernel Configuration$", re.MULTILINE)
_RELEASE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+~-]{0,127}")
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """A configuration; `options` has `n` for what it says is not set."""

    options: Mapping[str, str]
    source: str
    digest: str
    """SHA-256 of the plain text: the same wherever it was found."""
    whole: bool = True
    """False for an extract: what it leaves out may still be set."""
    release: str | None = None
    """The version of the source, as the head of the file tells it."""

    def is_on(self, name: str) -> bool:
        """Whether CONFIG_name is `y`: built in, not a module."""
        return self.options.get(f"CONFIG_{name}") == "y"


@dataclass(frozen=True, slots=True)
class ConfigSearch:
    """What the search for a configuration gave; `why` tells why nothing, if so."""

    config: KernelConfig | None
    why: str


def find_config(
    reader: Reader, release: str | None, *, running: Content | None = None
) -> ConfigSearch:
    """
    Find the configuration of the kernel with this `uname -r`.

    `running` is the content of RUNNING_CONFIG if the caller has read it already;
    the other places are read, in one round trip, only if it is of no use.
    """
    if running is None:
        running = reader.read_many([RUNNING_CONFIG]).get(RUNNING_CONFIG, Missing())
    found = _first_usable({RUNNING_CONFIG: running})
    installed = config_paths(release)
    if found.config is not None or not installed:
        return found
    contents = reader.read_many(installed)
    ordered = {path: contents.get(path, Missing()) for path in installed}
    return _first_usable({RUNNING_CONFIG: running} | ordered)


def config_paths(release: str | None) -> tuple[str, ...]:
    """Return where distributions install a release's configuration, likeliest first."""
    # The release comes from the machine: it must not lead to another directory.
    if release is None or not _RELEASE.fullmatch(release):
        return ()
    return (
        f"/boot/config-{release}",
        f"/lib/modules/{release}/config",
        f"/lib/modules/{release}/build/.config",
        f"/usr/lib/kernel/config-{release}",
        f"/usr/lib/modules/{release}/config",
    )


def parse_config(content: bytes, *, source: str) -> KernelConfig:
    """
    Parse a configuration, plain or compressed with gzip.

    Raises TargetError if it is damaged, absurdly large, or no configuration.
    """
    plain = _unzip(content, source=source) if content[:2] == _GZIP_MAGIC else content
    text = plain.decode("utf-8", "replace")
    options = {name: "n" for name in _NOT_SET.findall(text)}
    options |= {name: quoted or bare for name, quoted, bare in _SET.findall(text)}
    if not options:
        raise TargetError(f"{source}: not a kernel configuration")
    digest = hashlib.sha256(plain).hexdigest()
    of_release = _OF_RELEASE.search(text)
    return KernelConfig(
        options,
        source,
        digest,
        whole=bool(_HEAD.search(text)),
        release=of_release[1] if of_release else None,
    )


def _first_usable(contents: Mapping[str, Content]) -> ConfigSearch:
    problems: list[str] = []
    for path, content in contents.items():
        if isinstance(content, bytes):
            try:
                return ConfigSearch(parse_config(content, source=path), why="")
            except TargetError as error:
                problems.append(str(error))
        elif not isinstance(content, Missing):
            problems.append(f"{path}: {content.reason}")
    looked_at = ", ".join(contents)
    return ConfigSearch(None, "; ".join(problems) or f"none of {looked_at} is there")


def _unzip(content: bytes, *, source: str) -> bytes:
    # wbits 31: a gzip header and trailer, nothing else.
    unzipper = zlib.decompressobj(wbits=31)
    try:
        plain = unzipper.decompress(content, MAX_CONFIG_BYTES)
    except zlib.error as error:
        raise TargetError(f"{source}: damaged: {error}") from error
    if not unzipper.eof:
        raise TargetError(f"{source}: cut short, or more than {MAX_CONFIG_BYTES} bytes")
    return plain
