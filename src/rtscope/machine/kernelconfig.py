"""
A kernel's configuration: where it is found, what it sets, what make wrote into it.

Read as scripts/kconfig/confdata.c does, from top to bottom: the last line about a
symbol counts, `CONFIG_X=y` or `# CONFIG_X is not set`. Searched in the order of trust:
in the running kernel itself, then where distributions install it beside the kernel of
that release.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rtscope.host.errors import RecordError, TargetError
from rtscope.host.files.archive import packed_with, unpacked
from rtscope.host.files.plaintext import plain_bytes
from rtscope.host.files.prefixes import without_prefix
from rtscope.machine.reader import Content, Missing, Reader

RUNNING_CONFIG = "/proc/config.gz"
"""The only source that cannot belong to another build (CONFIG_IKCONFIG_PROC)."""

MAX_CONFIG_BYTES = 16 * 1024 * 1024
"""A configuration has some 300 KB; more would be a decompression bomb."""

_SET = re.compile(r'(CONFIG_\w+)=(?:"((?:[^"\\]|\\.)*)"|(.*))')
# Old kernels take whatever follows.
_NOT_SET = re.compile(r"# (CONFIG_\w+) is not set\s*")
# confdata.c looks at the first letter of a bool or tristate, and at no space before it.
_TRISTATE = re.compile(r"[ymn]")
_MEANT_TRISTATE = re.compile(r"\s+[ymn]\s*|\s*(?:[YMN]|yes|no|YES|NO|Yes|No)\s*")
# What looks like a setting and is a comment, or nothing, to kconfig.
_NEARLY = re.compile(
    r"\s*#*\s*CONFIG_\w+\s+(?:is\s+not\s+set)\W*|\s+CONFIG_\w+\s*=.*|CONFIG_\w+\s+=.*",
    re.IGNORECASE,
)
# scripts/diffconfig: `-NAME value`, `+NAME value`, ` NAME old -> new`.
_ADDED = re.compile(r"\+(?:CONFIG_)?([A-Z0-9]\w*) (\S.*)")
_REMOVED = re.compile(r"-(?:CONFIG_)?([A-Z0-9]\w*) (\S.*)")
_CHANGED = re.compile(r" (?:CONFIG_)?([A-Z0-9]\w*) (\S.*) -> (\S.*)")
# scripts/kconfig writes it above every configuration; until 2.6.38 with other words.
_HEAD = re.compile(
    r"^# Automatically generated .*(?:DO NOT EDIT|don't edit)", re.MULTILINE
)
_OF_RELEASE = re.compile(
    r"^# Linux(?:/\S+ (\S+) Kernel Configuration| kernel version: (\S+))$", re.MULTILINE
)
_RELEASE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+~-]{0,127}")
_OWN_LINE = re.compile(r"CONFIG_\w+=|# CONFIG_\w+ is not set")
IKCONFIG = re.compile(rb"IKCFG_ST(\x1f\x8b.{1,4194304}?)IKCFG_ED", re.DOTALL)
"""kernel/configs.c: in an image, or in the module `configs`."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A symbol that a configuration sets on several lines."""

    name: str
    """With CONFIG_."""
    lines: tuple[tuple[int, str], ...]
    """Line number and value of each; the last one counts."""


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
    lines: Mapping[str, int] = field(default_factory=dict)
    """The number of the line that counts, by symbol."""
    repeated: tuple[Repeated, ...] = ()
    ignored: tuple[tuple[int, str], ...] = ()
    """Lines that look like settings and that kconfig passes over, with their number."""
    prefix: str = ""
    """What stood before each line and was removed, in words; empty: nothing."""

    def is_on(self, name: str) -> bool:
        """Whether CONFIG_name is `y`: built in, not a module."""
        return self.options.get(f"CONFIG_{name}") == "y"

    def lacks(self, name: str) -> bool:
        """Whether CONFIG_name is certainly not set, neither built in nor a module."""
        return self.options.get(f"CONFIG_{name}", "n" if self.whole else "") == "n"

    @property
    def called(self) -> str:
        """What it is, in words: an excerpt is no configuration."""
        if self.whole:
            return "a whole configuration"
        count = len(self.options)
        return (
            f"an excerpt of {count} symbol{'s' * (count != 1)}, no whole configuration"
        )

    def was_made_with(self, name: str) -> bool:
        """
        Whether make resolved PREEMPT_RT here although CONFIG_name says n.

        make writes its version, EXPERT in any case, and PREEMPT_RT above PREEMPT_COUNT,
        which follows it in kernel/Kconfig.preempt; a line that somebody added stands at
        the end.
        """
        follows = ("PREEMPTION", "PREEMPT_COUNT", "PREEMPT_RCU")
        named = {"CONFIG_PREEMPT_RT", "CONFIG_EXPERT", f"CONFIG_{name}"}
        if any(one.name in named for one in self.repeated):
            return False
        return (
            self.whole
            and self.release is not None
            and "CONFIG_EXPERT" in self.options
            and self.is_on("PREEMPT_RT")
            and all(map(self.is_on, follows))
            and not self.is_on("PREEMPT_NONE")
            and not self.is_on("PREEMPT_VOLUNTARY")
            and self.lines["CONFIG_PREEMPT_RT"] < self.lines["CONFIG_PREEMPT_COUNT"]
        )


@dataclass(frozen=True, slots=True)
class ConfigSearch:
    """What the search for a configuration gave; `why` is the reason for none."""

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
    search = _first_usable({RUNNING_CONFIG: running})
    installed = config_paths(release)
    if search.config is not None or not installed:
        return search
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


@dataclass(slots=True)
class _Parsed:
    """What the lines said so far; each symbol with all of its lines."""

    seen: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    ignored: list[tuple[int, str]] = field(default_factory=list)

    def take(self, number: int, line: str) -> None:
        if match := _NOT_SET.fullmatch(line):
            self._set(match[1], number, "n")
        elif match := _SET.match(line):
            name, quoted, bare = match.groups()
            if quoted is not None:
                self._set(name, number, quoted)
            elif _TRISTATE.match(bare):
                self._set(name, number, bare[0])
            elif _MEANT_TRISTATE.fullmatch(bare):
                self.ignored.append((number, line))
            else:
                self._set(name, number, bare.rstrip())
        elif _NEARLY.fullmatch(line):
            self.ignored.append((number, line))

    def _set(self, name: str, number: int, value: str) -> None:
        self.seen.setdefault(name, []).append((number, value))


def parse_config(content: bytes, *, source: str) -> KernelConfig:
    """
    Parse a configuration: compressed, in UTF-16, with a prefix, in a module `configs`.

    Raises TargetError if it is damaged, absurdly large, or no configuration.
    """
    try:
        plain = _plain(content, source=source)
    except RecordError as error:
        raise TargetError(str(error)) from error
    text, prefix = plain.decode("utf-8", "replace"), ""
    if text.count("CONFIG_") > 2 * sum(map(bool, map(_OWN_LINE.match, _lines(text)))):
        text, prefix = without_prefix(text, _OWN_LINE.match)
    parsed = _Parsed()
    for number, line in enumerate(_lines(text), start=1):
        parsed.take(number, line)
    if not parsed.seen:
        parsed.seen = _diffconfig(text)
    if not parsed.seen:
        raise TargetError(f"{source}: not a kernel configuration")
    of_release = _OF_RELEASE.search(text)
    return KernelConfig(
        {name: lines[-1][1] for name, lines in parsed.seen.items()},
        source,
        hashlib.sha256(text.encode() if prefix else plain).hexdigest(),
        whole=bool(_HEAD.search(text)),
        release=(of_release[1] or of_release[2]) if of_release else None,
        lines={name: lines[-1][0] for name, lines in parsed.seen.items()},
        repeated=tuple(
            Repeated(name, tuple(lines))
            for name, lines in parsed.seen.items()
            if len(lines) > 1
        ),
        ignored=tuple(parsed.ignored),
        prefix=prefix,
    )


def _plain(content: bytes, *, source: str) -> bytes:
    """Return the text of a file, or of the configuration that a module has inside."""
    if packed_with(content, name=source):
        content = b"".join(unpacked([content], name=source, limit=MAX_CONFIG_BYTES))
    inside = IKCONFIG.search(content)
    text = inside[1] if inside else content
    return plain_bytes(text, name=source, limit=MAX_CONFIG_BYTES).content


def _lines(text: str) -> list[str]:
    return text.split("\n")


def _diffconfig(text: str) -> dict[str, list[tuple[int, str]]]:
    """Read what scripts/diffconfig prints: the new values, if all lines are its own."""
    seen: dict[str, list[tuple[int, str]]] = {}
    for number, line in enumerate(text.rstrip("\n").split("\n"), start=1):
        if match := _CHANGED.fullmatch(line):
            name, value = match[1], match[3]
        elif match := _ADDED.fullmatch(line):
            name, value = match[1], match[2]
        elif match := _REMOVED.fullmatch(line):
            name, value = match[1], "n"
        else:
            return {}
        seen.setdefault(f"CONFIG_{name}", []).append((number, value.strip('"')))
    return seen


def oddities(config: KernelConfig) -> Iterator[str]:
    """Yield a sentence for the prefix, each repeated symbol and each ignored line."""
    if config.prefix:
        yield config.prefix
    for one in config.repeated:
        lines = ", ".join(f"line {number} ={value}" for number, value in one.lines[-3:])
        yield f"{one.name}: {lines}: the last one counts"
    for number, line in config.ignored:
        yield f"line {number}: kconfig ignores {' '.join(line.split())[:80]!r}"


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
